"""The JSON document of a command in a file, beside the page for people. No engine."""

from __future__ import annotations

import json

import pytest
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli.main import main


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    a_lake_of(2, SPEC, folder / "lake")
    (folder / "meter.yaml").write_text(FILE, encoding="utf-8")
    return folder


@pytest.fixture
def call(home, capfd):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["--pipelines", str(home), "--lake", str(home / "lake"), *arguments])
        return ended.value.code or 0, *capfd.readouterr()

    return call


def test_the_document_is_in_the_file_and_the_page_for_people_on_stdout(call, tmp_path, monkeypatch):
    code, printed, _ = call("status", "meter", "--json")
    _, page, _ = call("status", "meter")
    monkeypatch.setenv("STRANDLINE_JSON_FILE", str(tmp_path / "answer.json"))
    assert call("status", "meter", "--json") == (code, page, "")
    assert json.loads((tmp_path / "answer.json").read_text()) == json.loads(printed)


def test_without_json_nothing_is_written(call, tmp_path, monkeypatch):
    monkeypatch.setenv("STRANDLINE_JSON_FILE", str(tmp_path / "answer.json"))
    call("status", "meter")
    assert not [*tmp_path.iterdir()]


def test_an_error_is_in_the_file_and_on_stderr(call, tmp_path, monkeypatch):
    monkeypatch.setenv("STRANDLINE_JSON_FILE", str(tmp_path / "answer.json"))
    code, printed, said = call("status", "nobody", "--json")
    written = json.loads((tmp_path / "answer.json").read_text())
    assert (code, printed, written["exit_code"]) == (2, "", 2)
    assert written["error"]["problem"] in " ".join(said.split())


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(call, tmp_path, monkeypatch):
    monkeypatch.setenv("STRANDLINE_JSON_FILE", str(tmp_path / "gone" / "answer.json"))
    code, _, said = call("status", "meter", "--json")
    assert code == 2
    assert "cannot be written" in said
    assert "answer.json" in said


def test_a_document_at_a_uri_is_there_for_another_machine_and_is_read_once(
    call, tmp_path, monkeypatch
):
    there, here = tmp_path / "lake/meter/_reports/answers/1.json", tmp_path / "here.json"
    monkeypatch.setenv("STRANDLINE_JSON_FILE", there.as_uri())
    code, page, _ = call("status", "nobody", "--json")
    assert (code, page) == (2, "")
    written = json.loads(there.read_text())
    monkeypatch.setenv("STRANDLINE_JSON_FILE", str(here))
    assert call("document", there.as_uri())[0] == 0
    assert json.loads(here.read_text()) == written
    assert not there.exists()
    code, _, said = call("document", there.as_uri())
    assert (code, "no command has left a document" in said) == (2, True)
