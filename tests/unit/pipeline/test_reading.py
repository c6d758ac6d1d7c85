"""What readers see: tables that belong together, and nothing of half a publish. No JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from many_days import a_lake_of, day
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE
from rich.console import Console
from vacuums import vacuum_all

from strandline.cli import show
from strandline.cli.main import main
from strandline.cli.read import print_rows
from strandline.errors import InputError
from strandline.lake.export import export
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.read import published_tables
from strandline.model.intervals import TimeRange
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.status import status_of

FIGURES = ("slots", "records", "quarantine", "totals", "rules", "open_behind_watermark")


@pytest.fixture
def lake(tmp_path):
    """Four days that run `r-2` has published; position 2 of the ledger says in which versions."""
    lake = a_lake_of(4, SPEC, tmp_path / "lake")
    note(lake, "r-2", "published")
    return lake


def test_a_table_that_a_pipeline_does_not_have_is_refused_with_those_that_it_has(lake):
    with pytest.raises(
        InputError, match=r"meter: pairs: there is no such table .*; read windows, "
    ):
        published_tables(lake, "meter").columns("pairs")


def test_a_position_after_the_ledgers_end_is_of_another_lake(lake):
    assert published_tables(lake, "meter", as_of_ledger=2).step.position == 2
    with pytest.raises(InputError, match="3 is not a position of the ledger, which ends at 2"):
        published_tables(lake, "meter", as_of_ledger=3)


@pytest.fixture
def command(lake, tmp_path, capsys):
    """`strandline read meter …`: its exit code, and what it has printed."""
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--pipelines", str(tmp_path), "--lake", lake.root]

    def call(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main([*places, "read", "meter", *map(str, arguments)])
        printed = capsys.readouterr()
        return ended.value.code or 0, " ".join((printed.out + printed.err).split())

    return call


def note(lake, run_id, step, **more):
    store = lake.pipeline("meter")
    said = {"versions": {n: v for n, v in store.versions().items() if n != "runs"}} | more
    entry = Entry(run_id, 1, step, "advance", TimeRange(0, 1), **said)
    return Ledger(store).append(entry, datetime.now(UTC))


def write(lake, name, **values):
    """A row more, as a publish brings it."""
    table = DeltaTable(lake.pipeline("meter").uri(name))
    rows = table.to_pyarrow_table().slice(0, 1).to_pylist()
    schema = pa.schema(table.schema().to_arrow())
    write_deltalake(table, pa.Table.from_pylist([{**rows[0], **values}], schema), mode="append")


def die_half_way(lake):
    """Run `r-3` has begun to publish, has written two of its tables, and is no more."""
    note(lake, "r-3", "publishing")
    write(lake, "quarantine", reason="no_window")
    write(lake, "completeness", state="fired", on_time=77)


def rows(tables, name):
    return tables.dataset(name).count_rows()


def test_half_a_publish_is_not_shown_by_status(lake):
    before = status_of(SPEC, lake)
    die_half_way(lake)
    found = status_of(SPEC, lake)
    assert {name: found[name] for name in FIGURES} == {name: before[name] for name in FIGURES}
    assert before["notice"] is None
    assert "run r-3 has begun to publish and has not ended" in found["notice"]


def test_half_a_publish_is_not_shown_by_the_report(lake, tmp_path):
    totals = write_report(SPEC, lake, tmp_path)["totals"]
    die_half_way(lake)
    written = write_report(SPEC, lake, tmp_path)
    assert written["totals"] == totals
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "run r-3 has begun to publish and has not ended" in page
    assert "no_window</td>" not in page


def test_half_a_publish_is_not_read(lake):
    die_half_way(lake)
    tables = published_tables(lake, "meter")
    assert (tables.step.run_id, rows(tables, "quarantine")) == ("r-2", 8)
    assert rows(tables, "completeness") == 8
    assert "run r-3" in tables.notice


def test_once_the_publish_has_ended_all_of_it_is_shown(lake):
    die_half_way(lake)
    note(lake, "r-3", "published")
    assert status_of(SPEC, lake)["quarantine"] == {"late": 8, "no_window": 1}
    assert status_of(SPEC, lake)["notice"] is None
    assert rows(published_tables(lake, "meter"), "quarantine") == 9


def test_tables_are_read_as_a_run_has_published_them_or_as_of_a_position(lake):
    die_half_way(lake)
    note(lake, "r-3", "published")
    assert rows(published_tables(lake, "meter", run="r-2"), "quarantine") == 8
    assert rows(published_tables(lake, "meter", run="r-2"), "runs") == 2
    assert rows(published_tables(lake, "meter", as_of_ledger=3), "quarantine") == 8
    assert rows(published_tables(lake, "meter", as_of_ledger=4), "quarantine") == 9


def test_what_an_unfinished_publish_does_not_write_is_shown_as_it_is(lake):
    before = status_of(SPEC, lake)
    note(lake, "r-3", "publishing", versions={"quarantine": 0})
    write(lake, "quarantine", reason="no_window")
    found = status_of(SPEC, lake)
    assert {name: found[name] for name in FIGURES} == {name: before[name] for name in FIGURES}


def test_malformed_rows_that_were_observed_since_are_shown_though_no_run_has_published(lake):
    write(lake, "quarantine", reason="null_key")
    assert status_of(SPEC, lake)["quarantine"] == {"late": 8, "null_key": 1}


def test_quarantine_is_read_with_malformed_rows_of_a_rejected_run(lake, command):
    """A first run was rejected for them, and nobody could read which rows they were."""
    note(lake, "r-3", "rejected")
    write(lake, "quarantine", reason="null_key")
    assert "9 rows" in command("quarantine")[1]
    assert ", the newest" in command("quarantine")[1]
    assert "8 rows" in command("quarantine", "--run", "r-2")[1]
    runs = DeltaTable(lake.pipeline("meter").uri("runs"))
    runs.delete("step = 'published'")
    assert "9 rows" in command("quarantine")[1]
    assert "has published nothing yet" in command("windows")[1]
    runs.delete()
    assert "has no runs yet" in command("quarantine")[1]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"run": "r-9"}, "r-9: no such run"),
        ({"run": "r-3"}, "r-3: has published nothing"),
        ({"as_of_ledger": 0}, "nothing was published at position 0"),
        ({"run": "r-2", "as_of_ledger": 2}, "--run: contradicts --as-of-ledger"),
    ],
)
def test_what_was_never_published_is_refused(lake, asked, told):
    die_half_way(lake)
    with pytest.raises(InputError, match=told):
        published_tables(lake, "meter", **asked)


def test_a_pipeline_that_has_published_nothing_says_so(tmp_path):
    with pytest.raises(InputError, match="has published nothing yet"):
        published_tables(str(tmp_path), "meter")


def test_a_version_that_was_vacuumed_says_how_to_go_on(lake):
    table = DeltaTable(lake.pipeline("meter").uri("windows"))
    table.delete(f"window_date = '{day(0)}'")
    vacuum_all(table)
    with pytest.raises(InputError, match=r"windows: version 0 is not there any more.*--keep-days"):
        list(published_tables(lake, "meter").batches("windows"))


def test_a_file_that_is_gone_from_the_newest_version_is_no_vacuum(lake, command):
    for path in DeltaTable(lake.pipeline("meter").uri("windows")).file_uris():
        Path(path).unlink()
    code, said = command("windows")
    assert code == 2
    assert "meter: windows: a file that the table's log names is missing" in said
    assert "--recreate" in said


def test_a_file_holds_the_rows_whatever_its_format(command, tmp_path):
    for suffix in ("parquet", "csv", "arrow"):
        told = command("windows", "--output", tmp_path / f"w.{suffix}")
        assert told[0] == 0
        assert "8 rows in" in told[1]
    of_parquet = pq.read_table(tmp_path / "w.parquet")
    assert (of_parquet.num_rows, of_parquet["device"][0].as_py()) == (8, "d-1")
    assert pa.ipc.open_file(tmp_path / "w.arrow").read_all() == of_parquet
    assert pa.csv.read_csv(tmp_path / "w.csv").num_rows == 8
    assert sorted(path.name for path in tmp_path.glob("*w.*")) == ["w.arrow", "w.csv", "w.parquet"]


def test_lists_are_json_in_csv(tmp_path):
    rows = pa.record_batch({"n": [1, 2], "heard": [["a", "b"], None]})
    assert export(tmp_path / "rows.csv", rows.schema, [rows]) == 2
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert text.splitlines() == ['"n","heard"', '1,"[""a"", ""b""]"', "2,"]


def test_rows_of_some_days_and_columns_are_printed(command):
    days = ("--since", day(1), "--until", day(2))
    code, told = command("windows", *days, "--columns", "window_start,records", "--json")
    found = json.loads(told)
    starts = [f"{d}T{hour}" for d in (day(1), day(2)) for hour in ("00", "12")]
    assert code == 0
    assert found["columns"] == ["window_start", "records"]
    assert [row["window_start"][:13] for row in found["rows"]] == starts
    assert (found["run_id"], found["ledger"], found["version"]) == ("r-2", 2, 0)


def test_bytes_are_printed_in_hexadecimal_digits_and_times_in_values_as_all_others(lake, command):
    store, noon = lake.pipeline("meter"), datetime(2013, 1, 1, 12, tzinfo=UTC)
    windows = store.table("windows").to_pyarrow_table()
    seen = [{"at": noon, "tags": [b"\x04\xfb"]}] * len(windows)
    kind = pa.map_(pa.binary(), pa.timestamp("us", tz="UTC"))
    by_tag = pa.array([[(b"\x04", noon)]] * len(windows), kind)
    windows = windows.append_column("tag", pa.array([b"\x04\x00\xfb"] * len(windows)))
    windows = windows.append_column("seen", pa.array(seen)).append_column("by_tag", by_tag)
    write_deltalake(store.uri("windows"), windows, mode="overwrite", schema_mode="overwrite")
    note(lake, "r-3", "published")
    code, printed = command("windows", "--limit", 1, "--json")
    (row,) = json.loads(printed)["rows"]
    assert (code, row["tag"]) == (0, "0400FB")
    assert row["seen"] == {"at": "2013-01-01T12:00:00Z", "tags": ["04FB"]}
    assert row["by_tag"] == [["04", "2013-01-01T12:00:00Z"]]
    assert "0400FB" in command("windows", "--limit", 1)[1]


def test_the_first_rows_are_printed_and_how_to_see_more(command):
    told = command("windows", "--limit", 2)[1]
    assert "version 0, as of position 2 of the ledger" in told
    assert "2 rows; --limit shows more, --output writes all" in told


@pytest.mark.parametrize("terminal", [False, True])
def test_a_row_is_a_line_or_where_a_terminal_is_too_narrow_a_block_of_lines(monkeypatch, terminal):
    printed = StringIO()
    console = Console(file=printed, width=40, force_terminal=terminal, color_system=None)
    monkeypatch.setattr(show, "out", console)
    names = [f"column_{number}" for number in range(9)]
    row = dict.fromkeys(names, "2024-03-01T00:00:00Z") | {"column_8": None}
    print_rows(names, [row, row])
    lines = [line.split() for line in printed.getvalue().splitlines()]
    told = "2024-03-01T00:00:00Z"
    if terminal:
        block = [*([name, told] for name in names[:8]), ["column_8"], []]
        assert lines == block * 2
    else:
        assert lines == [names, *[[told] * 8] * 2]
        print_rows(["key", "n"], [{"key": "k" * 3_000, "n": 1}, {"key": "[b]k", "n": 2}])
        long, short = printed.getvalue().splitlines()[-2:]
        assert (len(long), short) == (3_003, "[b]k" + " " * 62 + "2")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing",), "nothing: is not a published table; read one of windows"),
        (("windows", "--columns", "nope"), "nope: no column of windows"),
        (("windows", "--output", "w.xlsx"), "w.xlsx names no format"),
        (("windows", "--output", "/proc/w.csv"), "--output /proc/w.csv: cannot be written"),
        (("runs", "--since", "2013-01-01"), "runs has no days"),
    ],
)
def test_what_cannot_be_read_or_written_is_refused(command, arguments, told):
    code, printed = command(*arguments)
    assert code == 2
    assert told in printed
