"""Scenario files are found, read, and refused with the place where they are broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from strandline.conformance.run import read_cases, scenario_files
from strandline.errors import InputError

PAIR = {"scenario": {"name": "one"}, "expected": {}}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def test_a_file_is_itself_and_a_folder_all_scenario_files_below_it_by_name(tmp_path):
    names = ["a.json", "deep/c.json", "b.json.gz"]
    for name in names:
        write(tmp_path / name, [PAIR])
    (tmp_path / "README.md").write_text("not a scenario")
    found = scenario_files([tmp_path / "b.json.gz", tmp_path])
    assert [path.name for path in found] == ["b.json.gz", "a.json", "b.json.gz", "c.json"]


@pytest.mark.parametrize("name", ["one.json", "one.json.gz"])
def test_plain_and_gzipped_files_read_the_same(tmp_path, name):
    (case,) = read_cases(write(tmp_path / name, [PAIR]))
    assert (case.file, case.name) == (name, "one")


def test_a_missing_path_a_foreign_file_and_an_empty_folder_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    for name, problem in [
        ("gone.json", "no such file or folder; check the path"),
        ("notes.txt", r"not a scenario file; scenario files end in \.json or \.json\.gz"),
        ("empty", r"no scenario in this folder; scenario files end in"),
    ]:
        with pytest.raises(InputError, match=f"{name}: {problem}"):
            scenario_files([tmp_path / name])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"scenario": {}}, "is JSON, but not a list"),
        ([PAIR, {"scenario": {}}], r'\[1\]: not a case; it lacks "scenario" or "expected"'),
        ([7], r"\[0\]: not a case"),
        ([{"scenario": [], "expected": {}}], r"\[0\]: .* are not both objects"),
        ([{"scenario": {}, "expected": {}}], r"\[0\]: scenario\.name: None is not a name"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_the_place(tmp_path, content, problem):
    with pytest.raises(InputError, match=rf"odd\.json: {problem}"):
        list(read_cases(write(tmp_path / "odd.json", content)))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("cut.json", b'[{"scenario"', "not JSON"),
        ("cut.json.gz", gzip.compress(b"[]", mtime=0)[:-6], "cannot be read"),
        ("plain.json.gz", b"[]", "cannot be read"),
        ("latin.json", b'["\xe9"]', "not JSON"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, name, content, problem):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: {problem}"):
        list(read_cases(path))
