"""A JSON document is one whatever happens: of values that JSON lacks, and of a wrong option."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from strandline.cli.console import as_json
from strandline.cli.main import main


def no_constant(name):
    raise AssertionError(name)


def test_numbers_that_json_lacks_are_texts():
    rows = [{"mean": float("nan"), "all": (float("inf"), -float("inf"), -0.0, 1e308)}]
    assert json.loads(as_json(rows), parse_constant=no_constant) == [
        {"mean": "NaN", "all": ["Infinity", "-Infinity", -0.0, 1e308]}
    ]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("read meter windows --limit -1", "greater than or equal to 0"),
        ("maintain meter --keep-days many", "valid integer"),
        ("status --nothing", "No such option: --nothing"),
        ("advance meter", "Missing option '--to'"),
        ("statuss", "No such command 'statuss'"),
    ],
)
def test_a_wrong_option_has_a_document_too(typed, problem, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*typed.split(), "--json"])
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert ended.value.code == document["exit_code"] == 2
    assert problem in document["error"]["problem"]
    assert problem in said.err
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert problem in said.err


@pytest.mark.parametrize("typed", ["--help", "status -h", "--version"])
def test_help_is_no_error(typed, capsys):
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert not ended.value.code
    assert capsys.readouterr().out


@pytest.mark.parametrize("machine", [True, False])
def test_a_result_that_nobody_reads_to_its_end_is_no_failure(machine):
    script = (
        "from strandline.cli import show\n"
        f"show.document('a', as_json={machine}, human=lambda _: show.out.print('a'))\n"
        "raise SystemExit(3)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize("step", ["observe", "x" * 100_000])
def test_progress_and_an_error_that_nobody_reads_stop_no_command(step):
    script = (
        "from strandline.cli import show\n"
        "from strandline.cli.progress import progress\n"
        "from strandline.errors import InputError\n"
        "with progress(quiet=False) as begin:\n"
        f"    [begin(name) for name in ('start', {step!r}, 'end')]\n"
        "show.failure(InputError('a', 'b'), as_json=False)\n"
        "print('done')\n"
        "raise SystemExit(3)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=writing, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stdout) == (3, b"done\n")


def test_conformance_names_the_engines_that_it_has_and_looks_at_its_files_first(capsys, tmp_path):
    for option, problem in (
        ("--engine=foo", "--engine: 'foo' is no engine; give one of reference, spark, connect"),
        ("--engine=sail", "no scenario in this folder"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["conformance", str(tmp_path), option])
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert problem in said
        assert "start" not in said


@pytest.mark.parametrize("option", ["--remote=sc://x", "--trust-this-machine"])
def test_the_reference_takes_no_option_of_an_engine(capsys, tmp_path, option):
    with pytest.raises(SystemExit) as ended:
        main(["conformance", str(tmp_path), "--engine=reference", option])
    assert ended.value.code == 2
    assert f"{option.partition('=')[0]}: is no option of the reference" in capsys.readouterr().err
