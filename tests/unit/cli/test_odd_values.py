"""Whatever a person types, and wherever it is to be written: one line says what to do; never 1."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE
from small_disks import a_small_disk, filled, read_only

from strandline.cli.main import main
from strandline.errors import InputError, RetryableError, not_writable, storage_error
from strandline.lake.export import export

HUGE = ("999999999999", "99999999999999999999999")
HOSTILE = "\x1b[31m\u202e"
RANGE = "--start 2013-01-01 --end 2013-01-02"
VALUES = {
    "maintain meter --keep-days": (*HUGE, "0", "-1", "1.5", ""),
    "maintain meter --staging-days": (HUGE[0], "0"),
    "maintain meter --report-days": (HUGE[0], "0"),
    "maintain meter --ledger-days": (HUGE[0], "0"),
    "maintain --all --pipelines": ("/etc/passwd", ""),
    "read meter": ("timeline", ""),
    "read meter windows --limit": ("-1", HOSTILE),
    "read meter windows --as-of-ledger": ("-1", "1.5"),
    "read meter windows --since": ("10000-01-01", HOSTILE),
    "read meter windows --since 2013-01-02 --until": ("2013-01-01",),
    "read meter windows --columns": (",", "", "records,", HOSTILE),
    "read meter windows --run": ("../..",),
    "read meter windows --output": ("", ".", ".csv", "/etc/passwd/x.csv", "/proc/x.parquet"),
    "report meter --output": ("", "r.html", "/etc/passwd", "/etc/passwd/x", "/proc/x"),
    "status": ("a/b", "..", "", HOSTILE, "x" * 5000),
    "status meter --until": ("0000-01-01", "99999-12-31"),
    "status meter --pipelines": ("/etc/passwd", ""),
    "status meter --lake": ("", "file://elsewhere/x", "file:///a#b", "a[1]", "a\nb", "\udcff"),
    "plan meter --to 2013-01-02 --preview-rows": (HUGE[0], "-1"),
    "plan meter --to 2013-01-02 --max-bytes": (HUGE[1], "0", "٣GB"),
    "advance meter --to": ("99999-12-31", "2013-02-30", "", HOSTILE),
    "backfill meter --end 2013-01-02 --start": ("2013-01-02", HUGE[0]),
    f"backfill meter {RANGE} --as-of": ("", "10000-01-01"),
    f"backfill meter {RANGE} --reason x --allowed-lateness": ("1y", HUGE[1], HOSTILE),
    f"backfill meter {RANGE} --reason x --bound": ("-1h", "99999999999999d"),
    f"backfill meter {RANGE} --engine": ("SAIL", HOSTILE),
    f"backfill meter {RANGE} --engine connect --remote": ("sc://", HOSTILE),
    f"backfill meter {RANGE} --accept-loss": ("", " "),
    "runs show meter": ("", HOSTILE),
    "runs cancel meter": ("../..",),
    "runs drop meter --reason x": ("../..",),
    "erase meter --reason x --where": ("1", "CAST(reason AS INT) = 1", HOSTILE),
    "erase meter --where a=1 --reason": ("", " "),
    "erase meter --reason x --where a=1 --wait": ("-1", "nan"),
    f"backfill meter {RANGE} --run-key": ("",),
    f"backfill meter {RANGE} --requested-by": ("",),
    "runs cancel meter r-1 --requested-by": ("",),
    "acknowledge meter --reason x": ("", HOSTILE),
    "status --since": ("2013-01-01",),
    "validate": ("../x", "/etc/passwd", HOSTILE),
}
CALLS = [(call.split(), value) for call, values in VALUES.items() for value in values]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A lake of two days, and the file of its pipeline."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "meter.yaml").write_text(FILE, encoding="utf-8")
    a_lake_of(2, SPEC, folder / "lake")
    return folder


@pytest.fixture
def command(home, monkeypatch, capsys, tmp_path):
    """`strandline …`: its exit code, and what it says."""
    monkeypatch.setenv("STRANDLINE_PIPELINES", str(home))
    monkeypatch.setenv("STRANDLINE_LAKE", str(home / "lake"))
    monkeypatch.setenv("STRANDLINE_ENGINE", "sail")
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, arguments)))
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out + printed.err

    return call


def test_no_value_of_an_option_is_a_defect_and_none_sends_a_sign_or_leaves_a_file(
    command, home, tmp_path
):
    before = {path for path in home.rglob("*") if path.name not in {"_lock", "_ledger_lock"}}
    for call, value in CALLS:
        code, said = command(*call, value)
        assert code == 2, (call, value, said)
        assert not {"\x1b", "\u202e"} & {*said}, (call, value)
        assert "Traceback" not in said
    after = {path for path in home.rglob("*") if path.name not in {"_lock", "_ledger_lock"}}
    assert after == before
    assert not [*tmp_path.iterdir()]


def test_more_rows_than_there_are_may_be_asked_for(command):
    for limit in HUGE:
        code, said = command("read", "meter", "windows", "--limit", limit)
        assert (code, "4 rows" in said) == (0, True)


def test_the_error_of_an_odd_value_shows_it(command):
    assert "--output: . names no format" in command("read", "meter", "windows", "--output", ".")[1]
    empty = command("acknowledge", "meter", "", "--reason", "x")
    assert "FINDING: empty" in empty[1]


def test_with_something_to_compute_repeat_only_says_so(command):
    code, said = command("backfill", "meter", *RANGE.split(), "--repeat-only")
    assert (code, "note: there is something to compute" in said) == (5, True)


def test_a_status_of_a_lake_that_does_not_exist_says_so_and_is_not_green(command, tmp_path):
    nowhere = tmp_path / "nowhere"
    code, said = command("status", "--lake", nowhere)
    assert (code, f"note: there is no folder {nowhere}" in said) == (2, True)
    code, said = command("status")
    assert (code, "there is no folder" in said) == (0, False)


def test_a_status_of_a_lake_without_any_run_is_not_green(command, tmp_path):
    code, said = command("status", "--lake", tmp_path)
    assert (code, "has no runs yet in the lake" in said) == (2, True)


def test_a_panic_of_rust_is_one_line(command, monkeypatch):
    class PanicException(BaseException):
        """As pyo3's: no Exception."""

    def panics(*_, **__):
        raise PanicException("out of bounds")

    monkeypatch.setattr("strandline.pipeline.views.status.status_of", panics)
    code, said = command("status", "meter")
    assert code == 1
    assert len(said.strip().splitlines()) == 1
    assert "PanicException: out of bounds; running it again is safe" in said


@pytest.mark.parametrize("error", [OSError("a broken pipe"), RetryableError("a store", "is away")])
def test_an_error_as_an_interruption_is_cleaned_up_is_the_interruption(command, monkeypatch, error):
    def interrupted(*_, **__):
        try:
            raise KeyboardInterrupt
        finally:
            raise error

    monkeypatch.setattr("strandline.pipeline.views.status.status_of", interrupted)
    monkeypatch.setattr("os._exit", sys.exit)
    code, said = command("status", "meter")
    assert code == 130
    assert said.strip().endswith("interrupted; running it again is safe")


# ------------------------------------------------------------------ disks that are full, or closed


@pytest.fixture
def on_a_disk(home, command, monkeypatch, tmp_path_factory):
    """A lake on a small disk, and the disk."""
    folder = tmp_path_factory.mktemp("small") / "disk"
    with a_small_disk(folder, megabytes=2) as disk:
        a_lake_of(2, SPEC, disk / "lake")
        monkeypatch.setenv("STRANDLINE_LAKE", str(disk / "lake"))
        yield disk


WRITING = [
    ("report", "meter"),
    ("runs", "drop", "meter", "r-1", "--reason", "x"),
    ("erase", "meter", "--where", "reason = 'late'", "--reason", "x"),
]


def test_on_a_full_disk_a_command_ends_with_4_and_leaves_no_half_of_a_file(on_a_disk, command):
    exports = [
        ("read", "meter", "completeness", "--output", on_a_disk / f"x{suffix}")
        for suffix in (".csv", ".parquet", ".arrow")
    ]
    with filled(on_a_disk):
        for call in (WRITING[0], *exports):
            code, said = command(*call)
            assert code == 4, said
            assert "the disk is full; free space there" in said
        assert {path.name for path in on_a_disk.iterdir()} == {"lake", "filler"}
    assert not [*on_a_disk.rglob("*.unfinished")]
    assert not [*on_a_disk.rglob("report.html")]


def test_a_lake_that_cannot_be_written_is_read_and_every_command_that_writes_ends_with_2(
    on_a_disk, command, tmp_path
):
    with read_only(on_a_disk):
        for call in (*WRITING, ("maintain", "meter")):
            code, said = command(*call)
            assert code == 2, said
            assert "check the path and its rights" in said or "has published" in said
        for call in (
            ("status", "meter"),
            ("runs", "meter"),
            ("read", "meter", "windows"),
            ("report", "meter", "--output", tmp_path / "pages"),
        ):
            assert command(*call)[0] == 0
    assert (tmp_path / "pages" / "report.html").is_file()


def test_a_full_disk_is_one_whoever_says_so():
    """An engine hands the system's words over in an error of its own."""
    jvm = RuntimeError("An error occurred\n: x.SparkException: [TASK_WRITE_FAILED]\nCaused by: "
                       "java.io.IOException: No space left on device")  # fmt: skip
    limit = (
        "Generic LocalFileSystem error: Unable to copy data to file: File too large (os error 27)"
    )
    assert "ulimit -f" in str(storage_error("lake", OSError(limit)))
    full = OSError(28, "No space left on device"), OSError(122, "Disk quota exceeded")
    for error in (jvm, *full, OSError(27, "File too large")):
        assert isinstance(storage_error("lake", error), RetryableError)
        assert isinstance(not_writable("lake", error), RetryableError)
    assert storage_error("lake", ValueError("no")) is None
    assert storage_error("lake", FileNotFoundError("no")) is None


def test_a_file_below_a_file_is_refused_without_a_trace(tmp_path):
    import pyarrow as pa

    (tmp_path / "file").write_text("of others")
    with pytest.raises(Exception, match="cannot be written") as caught:
        export(tmp_path / "file/x.csv", pa.schema([("a", pa.int64())]), [])
    assert caught.value.exit_code == 2
    assert (tmp_path / "file").read_text() == "of others"


@pytest.mark.parametrize("damage", ["broken", "cut", "gap", "checkpoint"])
def test_a_damaged_log_of_a_table_is_an_input_error_with_its_way_out(tmp_path, damage):
    uri = str(tmp_path / "t")
    for number in range(3):
        write_deltalake(uri, pa.table({"a": [number]}), mode="append")
    commits = sorted(Path(uri, "_delta_log").glob("*.json"))
    if damage == "gap":
        commits[1].unlink()
    elif damage == "checkpoint":
        DeltaTable(uri).create_checkpoint()
        (checkpoint,) = Path(uri, "_delta_log").glob("*.parquet")
        checkpoint.write_bytes(b"x" * 300)
    else:
        commits[-1].write_text({"broken": '{"add": broken', "cut": '{"commitInfo":{"tim'}[damage])
    with pytest.raises(DeltaError) as raised:
        DeltaTable(uri)
    error = storage_error("lake", raised.value)
    assert isinstance(error, InputError)
    assert "log is damaged" in str(error) and "_delta_log" in str(error)


def test_a_commit_that_is_missing_on_sail_is_not_the_fault_of_an_expression():
    said = "Missing commit file: expected final version 0, replay reached -1"
    message = str(storage_error("meter", RuntimeError(f"External error: {said}")))
    assert message.startswith("meter: a table lacks a commit (External error: Missing commit file")
    assert "--engine spark" in message
