"""A run that could change nothing is told without Spark; whatever could change something is not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakes import SCHEMA, Line, a_record, a_spec, a_week, instant, land

from strandline.lake.ledger.ledger import Ledger
from strandline.model.intervals import TimeRange
from strandline.pipeline.request import answered
from strandline.pipeline.request.answered import repeat, run_repeated
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.request import Request

pytestmark = pytest.mark.spark

TO_THE_5TH = Request("advance", to_ms=instant("5 06:00"), now_ms=instant("20"))
BY_HAND = Request("backfill", TimeRange(instant("1"), instant("3")), now_ms=instant("20"))
KNOWN_ON_THE_5TH = replace(BY_HAND, as_of_ms=instant("5"))


@pytest.fixture(scope="module")
def advanced(spark, tmp_path_factory) -> Line:
    """A week has landed; a scheduled run has published what was known on the 5th."""
    return _line_after(spark, tmp_path_factory.mktemp("advanced"), TO_THE_5TH)


@pytest.fixture(scope="module")
def rebuilt(spark, tmp_path_factory) -> Line:
    """A week has landed; a run by hand has published a range, by all that has arrived."""
    return _line_after(spark, tmp_path_factory.mktemp("rebuilt"), BY_HAND)


def _line_after(spark, folder, request: Request) -> Line:
    land(folder, a_week())
    line = Line(spark, folder, a_spec())
    assert line.run(request).status == "published"
    return line


@pytest.fixture
def line(advanced, tmp_path) -> Line:
    """A lake of its own, to change."""
    return advanced.copy(tmp_path)


def repeats(line: Line, request: Request = TO_THE_5TH) -> str | None:
    """The run that a request would repeat."""
    found = run_repeated(line.spec, OpenedLog.newest(line.lake, line.spec), request)
    return None if found is None else found.run_id


def published(line: Line):
    """The last step of the only run."""
    return line.ledger[-1]


def note(line: Line, **changes) -> None:
    """A step of another run, as the ledger would have it."""
    step = replace(published(line), run_id="another-1", request_fingerprint="another", **changes)
    Ledger(line.lake.pipeline("meter")).append(step, datetime.now(UTC))


def landing(line: Line) -> DeltaTable:
    return DeltaTable(str(line.folder / "landing/meter"))


def test_the_same_again_leaves_a_step_that_names_the_run(line):
    first, before = published(line).run_id, line.versions()
    asked = replace(TO_THE_5TH, reason="cleared by hand")
    told = repeat(line.spec, OpenedLog.newest(line.lake, line.spec), asked)
    assert (told.status, told.repeats, told.frontier_ms) == ("repeated", first, instant("5"))
    assert line.versions() == before
    assert (line.ledger[-1].step, line.ledger[-1].reason) == ("repeated", "cleared by hand")
    assert first in line.ledger[-1].message
    assert repeats(line) == first  # a repetition is nothing that has happened since


def test_the_same_by_hand_again_is_a_repetition(rebuilt):
    assert repeats(rebuilt, BY_HAND) == published(rebuilt).run_id


def test_one_run_repeats_another_at_any_hour_before_the_next_midnight(advanced):
    assert repeats(advanced, replace(TO_THE_5TH, to_ms=instant("5 23:59")))


@pytest.mark.parametrize(
    "request_",
    [
        replace(TO_THE_5TH, to_ms=instant("6")),
        replace(TO_THE_5TH, accept_loss="they are gone"),
        replace(TO_THE_5TH, dry_run=True),
        KNOWN_ON_THE_5TH,
    ],
    ids=["another midnight", "a loss accepted", "a dry run", "by hand"],
)
def test_another_request_is_no_repetition(advanced, request_):
    assert repeats(advanced, request_) is None


@pytest.mark.parametrize(
    "request_",
    [
        replace(BY_HAND, range=TimeRange(instant("1"), instant("4"))),
        replace(BY_HAND, close=True),
        replace(BY_HAND, reopen=True),
        KNOWN_ON_THE_5TH,
    ],
    ids=["another range", "closing", "reopening", "another horizon"],
)
def test_another_request_by_hand_is_no_repetition(rebuilt, request_):
    assert repeats(rebuilt, request_) is None


def test_a_change_of_the_file_is_computed_but_for_schedule_and_spark(advanced):
    changed = {
        "aggregates__most": "max(amount)",
        "allowed_lateness": "2h",
        "quality__gaps": "allow",
        "firings": True,
    }
    for name, value in changed.items():
        assert repeats(advanced.of(a_spec(**{name: value}))) is None, name
    assert repeats(advanced.of(a_spec(schedule="0 7 * * *")))
    assert repeats(advanced.of(a_spec(spark={"spark.sql.shuffle.partitions": "3"})))


def test_another_program_computes(advanced, monkeypatch):
    monkeypatch.setattr(answered, "program", lambda: "another")
    assert repeats(advanced) is None


def test_rows_below_the_horizon_are_computed_and_rows_after_it_are_not_asked_for(line):
    land(line.folder, [a_record("6 10:00", "6 09:00")], mode="append")
    assert repeats(line)
    land(line.folder, [a_record("4 10:00", "4 09:00")], mode="append")
    assert repeats(line) is None


def test_by_hand_every_landed_row_may_move_the_horizon(rebuilt, tmp_path):
    line = rebuilt.copy(tmp_path)
    land(line.folder, [a_record("9 10:00", "9 09:00")], mode="append")
    assert repeats(line, BY_HAND) is None


@pytest.mark.parametrize("now", ["7 12:00", "20"])
def test_a_horizon_that_the_clock_has_cut_is_not_repeated(rebuilt, tmp_path, now):
    """By then the clock has moved; and a day that had not begun may have."""
    line = rebuilt.copy(tmp_path)
    if now == "20":
        land(line.folder, [a_record("21 10:00", "9 09:00")], mode="append")
    asked = replace(BY_HAND, range=TimeRange(instant("1"), instant("2")), now_ms=instant(now))
    assert line.run(asked).status == "published"
    assert repeats(line, replace(asked, now_ms=instant("22"))) is None


def test_rows_that_go_and_columns_that_come_are_computed(advanced, tmp_path):
    def copy(name: str) -> Line:
        return advanced.copy(tmp_path / name)

    gone = copy("gone")
    landing(gone).delete("arrived_on = '2024-03-02' AND amount < 50")
    wider = copy("wider")
    more = pa.Table.from_pylist([a_record("6 10:00", "6 09:00")], SCHEMA)
    more = more.append_column("note", pa.array(["x"]))
    write_deltalake(landing(wider), more, mode="append", schema_mode="merge")
    anew = copy("anew")
    shutil.rmtree(anew.folder / "landing/meter")
    land(anew.folder, a_week())
    forgotten = copy("forgotten")  # what it was cannot be looked up any more
    land(forgotten.folder, [a_record("6 10:00", "6 09:00")], mode="append")
    assert repeats(forgotten)
    landing(forgotten).create_checkpoint()
    (forgotten.folder / "landing/meter/_delta_log/00000000000000000000.json").unlink()
    computed = {"gone": gone, "wider": wider, "anew": anew, "forgotten": forgotten}
    assert {name: repeats(line) for name, line in computed.items()} == dict.fromkeys(computed)


def test_owed_days_and_an_unfinished_publish_are_computed(advanced, tmp_path):
    owing = advanced.copy(tmp_path / "owing")
    note(owing, step="owed", owed=[datetime(2024, 3, 2, tzinfo=UTC).date()])
    assert repeats(owing) is None
    publishing = advanced.copy(tmp_path / "publishing")
    note(publishing, step="publishing")
    assert repeats(publishing) is None


def test_what_was_published_into_the_range_since_is_computed(advanced, tmp_path):
    def since(name: str, **changes) -> str | None:
        line = advanced.copy(tmp_path / name)
        note(line, step="published", touched_from_ms=None, **changes)
        return repeats(line)

    end_ms = published(advanced).range.end_ms
    hour_ms = int(timedelta(hours=1).total_seconds() * 1000)
    behind = TimeRange(end_ms, end_ms + hour_ms)
    assert since("elsewhere", range=behind)
    assert since("inside", range=TimeRange(end_ms - hour_ms, end_ms)) is None
    assert since("closed", range=behind, closed=True) is None


def test_a_published_table_that_others_have_written_or_dropped_is_computed(advanced, tmp_path):
    written = advanced.copy(tmp_path / "written")
    written.table("windows").delete("device = 'd1'")
    assert repeats(written) is None
    dropped = advanced.copy(tmp_path / "dropped")
    shutil.rmtree(dropped.root / "completeness")
    assert repeats(dropped) is None


def test_before_the_first_run_there_is_nothing_to_repeat(tmp_path):
    land(tmp_path, a_week())
    assert repeats(Line(None, tmp_path, a_spec())) is None
