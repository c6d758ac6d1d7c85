"""A scheduled run to a midnight before the frontier computes nothing, and says how it would."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from lakes import a_record, a_spec, instant, land

from strandline.errors import InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange
from strandline.pipeline.request.answered import already_processed
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.request import Request

SPEC = a_spec()
OLDER = Request("advance", to_ms=instant("3 06:00"), now_ms=instant("20"))


class Processed:
    """A lake whose pipeline has published all up to the 5th, as its ledger says."""

    def __init__(self, folder) -> None:
        self.folder = folder
        land(folder, [a_record("2 10:00", "2 09:00")])
        self.lake = Lake.at(str(folder))
        self.ledger = Ledger(self.lake.pipeline("meter"))
        self.note("published", frontier_ms=instant("5"), completes_ms=instant("5"))

    @property
    def log(self) -> LandingLog:
        return LandingLog.of(self.lake, SPEC)

    def note(self, step: str, run_id: str = "r-1", **more) -> None:
        within = TimeRange(instant("1"), instant("5"))
        more = {"landing_version": self.log.version, **more}
        self.ledger.append(Entry(run_id, 1, step, "advance", within, **more), datetime.now(UTC))

    def answer(self, request: Request = OLDER):
        return already_processed(SPEC, OpenedLog.newest(self.lake, SPEC), request)


@pytest.fixture
def processed(tmp_path):
    return Processed(tmp_path)


def test_it_says_up_to_where_all_is_processed_and_the_way_to_compute_it_again(processed):
    told = processed.answer()
    assert (told.status, told.frontier_ms) == ("already_processed", instant("5"))
    (note,) = told.notes
    assert "already processed up to 2024-03-05T00:00:00Z" in note
    assert "strandline backfill meter --start" in note
    assert not told.changed


def test_it_leaves_one_step_and_a_dry_run_leaves_none(processed):
    before = len(processed.ledger.entries())
    assert processed.answer(replace(OLDER, dry_run=True)).status == "already_processed"
    assert len(processed.ledger.entries()) == before
    processed.answer(replace(OLDER, reason="a cleared task"))
    last = processed.ledger.entries()[-1]
    assert (last.step, last.reason) == ("already_processed", "a cleared task")
    assert processed.answer().frontier_ms == instant("5")  # the step moves no frontier


@pytest.mark.parametrize("to", ["5", "5 23:00", "6"])
def test_a_run_to_the_frontier_or_beyond_is_computed(processed, to):
    assert processed.answer(replace(OLDER, to_ms=instant(to))) is None


def test_a_run_by_hand_is_computed(processed):
    within = TimeRange(instant("1"), instant("2"))
    assert processed.answer(Request("backfill", within, now_ms=instant("20"))) is None


def test_one_that_creates_the_tables_again_reaches_as_far_as_what_it_replaces(processed):
    again = replace(OLDER, recreate=True, reason="another key")
    with pytest.raises(InputError, match="all is processed up to 2024-03-05") as caught:
        processed.answer(again)
    assert (caught.value.place, caught.value.exit_code) == ("--recreate", 2)
    assert "--to 2024-03-05T00:00" in caught.value.way_out
    assert processed.answer(replace(again, to_ms=instant("5"))) is None


def test_a_pipeline_that_has_published_nothing_is_computed(tmp_path):
    land(tmp_path, [a_record("2 10:00", "2 09:00")])
    lake = Lake.at(str(tmp_path))
    assert already_processed(SPEC, OpenedLog.newest(lake, SPEC), OLDER) is None


def test_it_names_the_days_that_are_to_be_recomputed_and_the_run_that_does_it(processed):
    processed.note("owed", owed=[date(2024, 3, 2)])
    assert "2024-03-02 changed or landed late" in processed.answer().notes[-1]
    assert "strandline advance meter --to 2024-03-05T00:00" in processed.answer().notes[-1]


def test_it_names_rows_that_have_landed_since_for_days_that_were_processed(processed):
    land(processed.folder, [a_record("8 10:00", "8 09:00")], mode="append")
    assert len(processed.answer().notes) == 1  # a day to come is none of them
    land(processed.folder, [a_record("3 10:00", "3 09:00")], mode="append")
    said = "rows of 2024-03-03 have changed in the landing table"
    assert said in processed.answer().notes[-1]


def test_it_names_a_publish_that_has_not_ended(processed):
    processed.note("publishing", "r-2")
    assert "run r-2 has begun to publish" in processed.answer().notes[-1]


def test_a_chained_pipeline_is_processed_no_further_than_its_upstream_stands(
    processed, monkeypatch
):
    monkeypatch.setattr(LandingLog, "known_until_ms", property(lambda log: instant("3")))
    assert processed.answer() is None
    assert processed.answer(replace(OLDER, to_ms=instant("2"))).frontier_ms == instant("3")
