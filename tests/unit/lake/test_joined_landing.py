"""Two landing tables as one: their versions, their days, and what has become of these."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from joined import JOIN
from lakes import FIRST_DAY, a_record, land

from strandline.errors import InputError
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.landing.results_log import ResultsLog, log_of
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.model.facts import KnownDays
from strandline.model.intervals import EVERYTHING
from strandline.pipeline.publish.stale import changed_since
from strandline.spec import parse_spec

if TYPE_CHECKING:
    from pathlib import Path

    from strandline.lake.landing.joined_landing import JoinedLanding

SPEC = parse_spec(JOIN, origin="near.yaml")


def opened(folder: Path) -> JoinedLanding:
    return open_landing(None, Lake.at(str(folder)), SPEC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    land(tmp_path, [a_record("1 10:00", "1 09:00")], table="landing/left")
    land(tmp_path, [a_record("2 10:00", "1 09:00")] * 2, table="landing/right")
    return tmp_path


def test_the_days_of_both_tables_are_observed_together(folder):
    landing = opened(folder)
    assert [day.day for day in landing.days] == [1, 2]
    assert [landing.facts[day].rows for day in landing.days] == [1, 2]
    assert landing.weight(landing.days)["rows"] == 3
    assert landing.inputs["left"].landed == {FIRST_DAY: 1}


def test_an_earlier_version_is_readable_while_both_tables_have_their_files_of_then(folder):
    """What is decided of rows that have landed since is not known without the rows of one side."""
    before = opened(folder).log.version
    of_right = [*(folder / "landing/right").rglob("*.parquet")]
    for side in ("left", "right"):
        land(folder, [a_record("2 10:00", "1 09:30")], table=f"landing/{side}")
    log = opened(folder).log
    assert log.version != before == log.readable_at(before).version
    for file in of_right:
        file.unlink()
    assert log.readable_at(before) is None
    assert log.readable_at(log.version) is not None


@pytest.mark.parametrize(
    ("sides", "named"),
    [
        (["right"], "landing/right was created again since"),
        (["left", "right"], "landing/left and landing/right were created again since"),
    ],
)
def test_a_prepared_run_names_the_table_of_two_that_was_created_again(folder, sides, named):
    step = Entry(
        *("r-1", 1, "prepared", "backfill"),
        landing_id=opened(folder).log.table_id,
        spec_fingerprint=SPEC.spec_fingerprint,
        timeline_fingerprint=SPEC.timeline_fingerprint,
        publish=ToPublish(key=("device",), parts=("pairs",)),
    )
    for side in sides:
        shutil.rmtree(folder / "landing" / side)
        land(folder, [a_record("1 10:00", "1 09:00")], table=f"landing/{side}")
    assert changed_since(SPEC, PipelineState.of([]), step, opened(folder).log) == named


def test_more_rows_of_either_table_are_another_version_and_other_rows(folder):
    before = opened(folder)
    land(folder, [a_record("3 10:00", "1 09:00")], table="landing/right", mode="append")
    log, known = log_of(Lake.at(str(folder)), SPEC), before.begun
    assert isinstance(log, JoinedLog)
    assert log.version == before.version + 1
    days = {"days_by": None, "last_day": None}
    assert not log.same_rows_since(before.version, **days)
    assert log.same_rows_since(before.version, days_by=None, last_day=FIRST_DAY)
    found = opened(folder).changes(
        KnownDays(known, frontier_ms=EVERYTHING.end_ms, published_ms=EVERYTHING.end_ms)
    )
    assert {day.day for day in found.behind} == {3}
    assert not (found.changed | found.missing | found.rewritten)


def test_results_of_both_are_read_as_they_were_when_these_were_published(folder):
    before = opened(folder).version
    more = [a_record("2 11:00", "2 09:00")]
    for name in ("left", "right"):
        land(folder, more, table=f"landing/{name}", mode="append")
    landing = opened(folder)
    newest = landing.log
    published = Entry("r-1", 1, "published", "advance", landing_version=before)
    results = ResultsLog(newest.uri, newest.table, None, PipelineState.of([published]))
    pinned = landing.by_log(results.source_log(newest))
    assert (pinned.version, newest.version) == (before, before + 2**31 + 1)
    assert [pinned.facts[day].rows for day in pinned.days] == [1, 2]
    nothing = ResultsLog(newest.uri, newest.table, None, PipelineState())
    assert nothing.source_log(newest) is newest
    gone = replace(published, landing_version=before + 2**40 + 9)
    by_gone = replace(results, state=PipelineState.of([gone]))
    assert by_gone.source_log(newest).version == newest.version


def test_one_of_both_that_is_created_anew_is_another_table(folder):
    """Its first version is of other rows, and no results were made of it."""
    before = opened(folder)
    shutil.rmtree(folder / "landing/right")
    land(folder, [a_record("2 10:00", "1 09:00", amount=5)] * 2, table="landing/right")
    landing, log = opened(folder), log_of(Lake.at(str(folder)), SPEC)
    assert log.version == before.version
    days = {"days_by": None, "last_day": None}
    assert before.log.same_rows_since(before.version, before.log.table_id, **days)
    assert not log.same_rows_since(before.version, before.log.table_id, **days)
    found = landing.changes(KnownDays(before.begun, published_ms=EVERYTHING.end_ms))
    assert {day.day for day in found.recreated} == {2}

    land(folder, [a_record("2 11:00", "2 09:00")], table="landing/left", mode="append")
    newest = log_of(Lake.at(str(folder)), SPEC)
    of = {"landing_version": before.version, "landing_id": before.log.table_id}
    published = Entry("r-1", 1, "published", "advance", **of)
    results = ResultsLog(newest.uri, newest.table, None, PipelineState.of([published]))
    assert results.source_log(newest) is newest


def test_a_table_that_is_missing_is_told_with_its_side(tmp_path):
    land(tmp_path, [a_record("1 10:00", "1 09:00")], table="landing/left")
    with pytest.raises(InputError, match=r"near: sources\.right\.table: no Delta table"):
        opened(tmp_path)


def test_a_table_of_a_catalog_is_refused(tmp_path):
    sources = JOIN["sources"]
    left = sources["left"] | {"table": "spark_catalog.default.left"}
    spec = parse_spec(JOIN | {"sources": sources | {"left": left}}, origin="near.yaml")
    with pytest.raises(InputError, match=r"sources\.left\.table: a table of a catalog"):
        log_of(Lake.at(str(tmp_path)), spec)
