"""runs publish: just what was shown is published, whatever dies, and nothing that is stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from killed import Killed
from lakes import Line, a_record, a_spec, a_week, instant, land
from replayed import assert_told_by_replay

from strandline.errors import (
    AuditFailedError,
    InputError,
    RetryableError,
    StaleStagingError,
)
from strandline.lake.publish import apply_diff
from strandline.lake.store.places import path_of
from strandline.model.intervals import TimeRange
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request
from strandline.quality.audit.result import Audit, AuditResult

pytestmark = pytest.mark.spark

ROWS = a_week(days=3)
MENDED = a_spec(allowed_lateness="0s")
WRITTEN = ("windows", "completeness", "firings")


@pytest.fixture(scope="module")
def prepared(spark, tmp_path_factory):
    """Two days are published; a rebuild by other rules is prepared."""
    line = Line(spark, tmp_path_factory.mktemp("prepared"), a_spec())
    land(line.folder, ROWS)
    line.advance("3")
    mended = line.of(MENDED)
    before = mended.versions()
    outcome = mended.backfill("1", "3", as_of="3", prepare=True)
    assert (outcome.status, outcome.changed) == ("prepared", True)
    after = mended.versions()  # what was observed anew counts, malformed rows too
    assert [after[name] for name in WRITTEN] == [before[name] for name in WRITTEN]
    return mended


def publish(line: Line, **more: str) -> Outcome:
    run_id = line.ledger[-1].run_id
    return publish_prepared(line.spec, line.lake, run_id, line.spark, **more)


def test_a_prepared_run_publishes_just_what_it_has_shown_and_once(prepared, tmp_path):
    line = prepared.copy(tmp_path)
    shown = line.ledger[-1]
    first = publish(line, requested_by="ann")
    assert (first.status, first.diff) == ("published", shown.diff)
    assert_told_by_replay(line, ROWS, "3")
    done = line.ledger[-1]
    assert (done.step, done.requested_by, done.frontier_ms) == ("published", "ann", done.horizon_ms)
    assert not (line.root / "_staging" / shown.run_id).exists()
    versions = line.versions()
    assert publish(line).to_json() == first.to_json()
    assert line.versions() == versions
    assert line.ledger[-1] == done


def test_a_publish_that_died_is_ended_by_the_same_command(prepared, tmp_path, monkeypatch):
    line = prepared.copy(tmp_path)
    real = apply_diff.apply

    def dying(store, change, attempt):
        if change.target.name == "windows":
            raise Killed
        real(store, change, attempt)

    monkeypatch.setattr(apply_diff, "apply", dying)
    with pytest.raises(Killed):
        publish(line)
    monkeypatch.undo()
    assert line.ledger[-1].step == "publishing"
    assert publish(line).status == "published"
    assert_told_by_replay(line, ROWS, "3")


def test_what_was_prepared_of_rows_that_are_others_by_now_is_stale(prepared, tmp_path):
    line = prepared.copy(tmp_path)
    land(line.folder, [a_record("3 10:00", "3 10:00")], mode="append")
    assert line.ledger[-1].step == "prepared"
    land(line.folder, [a_record("2 10:00", "2 10:00")], mode="append")
    with pytest.raises(StaleStagingError, match="is out of date: landing/meter has other files"):
        publish(line)


def test_a_staging_that_has_lost_rows_is_not_published(prepared, tmp_path):
    line = prepared.copy(tmp_path)
    parts = [*(line.root / "_staging" / line.ledger[-1].run_id / "windows_diff").glob("part-*")]
    rows = pq.read_table(parts[0], partitioning=None)
    pq.write_table(rows.slice(1), parts[0])
    counts = r"its staged rows are \d+ to insert, .*; the run counted \d+ to insert, "
    with pytest.raises(InputError, match=rf"staging is broken \(.*{counts}.*--prepare"):
        publish(line)
    for part in parts:
        part.unlink()
    with pytest.raises(InputError, match=r"staging is broken.*--prepare"):
        publish(line)
    assert line.ledger[-1].step == "prepared"


def staged_windows(line: Line) -> list[Path]:
    folder = line.root / "_staging" / line.ledger[-1].run_id / "windows"
    return [*folder.rglob("*.parquet")]


@pytest.mark.parametrize("window", [{"tumbling": "1h"}, {"sliding": "1h", "every": "30m"}])
def test_staged_windows_are_rows_to_publish_and_become_the_tables_also_while_others_are_open(
    spark, tmp_path, window
):
    line = Line(spark, tmp_path, a_spec(window=window))
    times = [f"1 {hour:02}:30" for hour in range(24)]
    land(line.folder, [a_record(at, at, source) for at in times for source in "ab"])
    outcome = line.advance("2", prepare=True)
    assert {"open", "closed"} <= {*outcome.slots}
    assert_not_published_as_staged_by_an_earlier_version(line.copy(tmp_path / "earlier"))
    files = {
        file.stat().st_ino: pq.read_table(file, partitioning=None) for file in staged_windows(line)
    }
    assert publish(line).status == "published"
    for rows in files.values():
        assert rows.column_names == line.table("windows").schema().to_arrow().names
        assert {*rows["state"].to_pylist()} <= {"fired", "closed"}
    there = {Path(path_of(uri)).stat().st_ino for uri in line.table("windows").file_uris()}
    assert there == {*files}


def assert_not_published_as_staged_by_an_earlier_version(line: Line) -> None:
    """It is to be prepared again."""
    for file in staged_windows(line):
        rows = pq.read_table(file, partitioning=None)
        counted = pa.array([1] * len(rows), pa.int64())
        pq.write_table(rows.append_column("_strandline_in_newest_window", counted), file)
    with pytest.raises(InputError, match=r"an earlier version of Strandline.*--prepare"):
        publish(line)


def test_a_rejected_run_is_published_once_somebody_says_why(prepared, tmp_path, monkeypatch):
    def unmet(spec, staged, **_):
        said = AuditResult("expect_quiet", "windows", "critical", success=False, figures="no")
        return Audit((said,))

    line = replace(prepared.copy(tmp_path), audited=True)
    monkeypatch.setattr("strandline.quality.audit.run.audit", unmet)
    with pytest.raises(AuditFailedError, match=r"expect_quiet: no.*--accept REASON"):
        line.backfill("1", "3", as_of="3")
    rejected = line.ledger[-1]
    with pytest.raises(InputError, match=r"rejected: expect_quiet: no; .*--accept REASON"):
        publish(line)
    assert publish(line, accept="it is right").diff == rejected.diff
    assert (line.ledger[-1].step, line.ledger[-1].reason) == ("published", "it is right")
    assert_told_by_replay(line, ROWS, "3")


def test_of_two_drivers_of_the_same_run_one_publishes_and_the_other_ends_with_4(prepared, tmp_path):
    line = prepared.copy(tmp_path)
    within = TimeRange(instant("1"), instant("2"))
    request = Request("backfill", within, as_of_ms=instant("3"), run_key="a task")

    def sleeping(step: str) -> None:
        if step == "publish":  # past the other's publish
            line.run(request)

    with pytest.raises(RetryableError, match="has published into its range") as caught:
        line.run(request, sleeping)
    assert caught.value.exit_code == 4
    overtaken, quicker = line.ledger[-1], line.ledger[-2]
    assert (overtaken.step, overtaken.attempt) == ("failed", 1)
    assert (quicker.step, quicker.attempt) == ("published", 2)
