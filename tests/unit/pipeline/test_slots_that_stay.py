"""Slots that stay as they are published, while late records arrive for them."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pandas as pd
import pytest
from calendars import a_slot, write_calendar
from meter import HALF_DAYS as SPEC

from strandline.engine.position.grid import Grid
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import HOUR_MS, TimeRange, instant_of
from strandline.pipeline.rebuild.gaps import _by_their_rules
from strandline.pipeline.rebuild.piece import calendar_of
from strandline.pipeline.rebuild.slots import published_slots, with_published_values
from strandline.quality.completeness import completeness

HALF_DAY_MS = 12 * HOUR_MS
CLOSED_LATER = timedelta(hours=3)


def slots_of(*numbers: int) -> pd.DataFrame:
    """Closed slots that two channels have records for."""
    starts = [instant_of(a_slot(number)["slot_start"]) for number in numbers]
    slots = pd.DataFrame({"slot_ms": starts, "window_id": starts, "state": "closed"})
    slots["slot_end_ms"] = slots["fire_at_ms"] = slots["slot_ms"] + HALF_DAY_MS
    slots["close_at_ms"] = slots["slot_end_ms"] + HOUR_MS
    return slots.assign(channels_heard=[["a", "b"] for _ in numbers])


@pytest.fixture
def now(tmp_path):
    """Gives the rows of slots, each with a late record or a gap, in a run after published rows."""

    def rows(
        *numbers: int, published: list[dict], gap: bool = False, take=with_published_values
    ) -> pd.DataFrame:
        store = Lake.at(str(tmp_path)).pipeline("meter")
        if published:
            write_calendar(store, published)
        slots = slots_of(*numbers)
        refused = {} if gap else {(start, "late"): 1 for start in slots["window_id"]}
        computed = completeness(slots, SPEC, run_id="now", accepted={}, refused=refused, gap=gap)
        state = PipelineState.of([Entry("r-0", 0, "published", "backfill")])
        ledger = SimpleNamespace(state=lambda: state)
        return take(SimpleNamespace(store=store, spec=SPEC, ledger=ledger), computed)

    return rows


def published(number: int, **outcome) -> dict:
    row = a_slot(number, channels_heard=["a"], spec_fingerprint="then", late_accepted=2, **outcome)
    return row | {"closed_at": row["slot_end"] + CLOSED_LATER}


def test_a_slot_keeps_all_but_its_refused_records(now):
    (slot,) = now(3, published=[published(n, missed_pairs=4) for n in (2, 3)]).to_dict("records")
    assert (slot["late"], slot["no_window"], slot["run_id"]) == (1, 0, "now")
    assert (slot["on_time"], slot["late_accepted"], slot["missed_pairs"]) == (10, 2, 4)
    assert slot["closed_at"] - slot["slot_end"] == CLOSED_LATER
    assert (slot["spec_fingerprint"], slot["channels_heard"]) == ("then", ["a"])


def test_an_older_slot_takes_only_the_channels_of_a_run_with_late_records_for_it(tmp_path):
    """A late record may be the first one of its channel."""
    store, older = Lake.at(str(tmp_path)).pipeline("meter"), slots_of(3)
    write_calendar(store, [published(3)])
    history = SimpleNamespace(grid=Grid.of(SPEC))
    rebuild = SimpleNamespace(slots=older[:0], older=older, history=history)
    clock = SimpleNamespace(horizon_ms=int(older["slot_end_ms"].max()))
    plan = SimpleNamespace(scope=SimpleNamespace(older_since_ms=0), clock=clock)
    ctx = SimpleNamespace(store=store, spec=SPEC, run_id="now")
    (slot,) = calendar_of(ctx, plan, rebuild, {}, {}, None).to_dict("records")
    assert (slot["channels_heard"], slot["run_id"]) == (["a", "b"], "now")
    assert (slot["on_time"], slot["late_accepted"], slot["spec_fingerprint"]) == (10, 2, "then")


@pytest.mark.parametrize("rows", [[], [published(9)]], ids=["no table", "another slot"])
def test_a_slot_that_is_not_published_stays_as_computed(now, rows):
    (slot,) = now(3, published=rows).to_dict("records")
    assert (slot["on_time"], slot["late"], slot["channels_heard"]) == (0, 1, ["a", "b"])
    assert slot["spec_fingerprint"] == SPEC.spec_fingerprint


def test_a_slot_that_was_open_keeps_its_records_and_is_closed_as_computed(now):
    was_open = published(3, state="open") | {"closed_at": None, "fired_at": None}
    (slot,) = now(3, published=[was_open]).to_dict("records")
    assert (slot["on_time"], slot["late"], slot["state"]) == (10, 1, "closed")
    assert slot["closed_at"] - slot["slot_end"] == timedelta(hours=1)
    assert slot["spec_fingerprint"] == SPEC.spec_fingerprint


def test_a_former_gap_and_a_new_one_keep_only_how_they_were_closed(now):
    gap = published(3, gap=True, slots=1) | {"on_time": 0, "late_accepted": 0}
    filled, emptied = now(3, published=[gap]), now(3, published=[published(3, late=7)], gap=True)
    for rows, is_gap, late in ((filled, False, 1), (emptied, True, 0)):
        (slot,) = rows.to_dict("records")
        assert (slot["gap"], slot["late"], slot["on_time"]) == (is_gap, late, 0)
        assert slot["closed_at"] - slot["slot_end"] == CLOSED_LATER
        assert slot["spec_fingerprint"] == "then"


def test_only_a_gap_that_other_rules_have_closed_is_listed_again_as_they_closed_it(now):
    """The first part of a row for many gaps has the times of the row's last gap until then."""
    present = {"spec_fingerprint": SPEC.spec_fingerprint}
    rows = [published(n, gap=True, slots=1) | (present if n < 4 else {}) for n in (3, 4)]
    listed = now(
        3,
        4,
        5,
        published=rows,
        gap=True,
        take=lambda ctx, gaps: _by_their_rules(gaps, ctx, TimeRange(0, 0)),
    )
    closing = listed["closed_at"] - listed["slot_end"]
    assert closing.tolist() == [timedelta(hours=1), CLOSED_LATER, timedelta(hours=1)]
    assert [*listed["spec_fingerprint"]] == [SPEC.spec_fingerprint, "then", SPEC.spec_fingerprint]


def test_slots_on_the_days_of_eighty_years_are_read_from_their_own_days(tmp_path):
    """Each day was one term of a condition, of which the process died without a word."""
    store = Lake.at(str(tmp_path)).pipeline("meter")
    write_calendar(store, [published(n) for n in (-2, 0, 6, 60_000)])
    starts = [instant_of(a_slot(n)["slot_start"]) for n in range(0, 60_000, 2)]
    found = published_slots(SimpleNamespace(store=store), starts)
    assert sorted(start for start, _ in found) == [starts[0], starts[3]]
