"""The timeline in slices: from the table as from memory, and no more of it than a range needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import pandas as pd
import pytest
from cells import axis_of, cell_of, counted, older_slots, slots_in
from cells import observed as observed_cells
from hypothesis import assume, given, settings
from meter import a_meter
from strategies import Stream, streams

from strandline.engine.history.history import history_of
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock
from strandline.engine.timeline import CellQuery, CombinedTimeline, Observed, Timeline
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.commit import DaysToWrite, commit_days
from strandline.lake.timeline.rows import SCHEMA, TimelineTable
from strandline.lake.timeline.timeline import StoredTimeline
from strandline.model.facts import DayFacts
from strandline.model.intervals import DAY_MS, TimeRange, day_of, midnight_of
from strandline.reference.records import Record

FEW = settings(max_examples=10)
MINUTE_MS = 60_000


def observed(stream: Stream) -> Observed:
    known = [record for record in stream.records if record.arrival_ms < stream.horizon_ms]
    rows = [
        *counted(stream, known),
        (day_of(stream.start_ms), "null_event_time", *[None] * 5, 3, *[None] * 8),
    ]
    return observed_cells(*rows)


def stored(stream: Stream, cells: Observed, folder: str) -> StoredTimeline:
    """The same, written into a table."""
    store, days = Lake.at(folder).pipeline("stream"), set(cells.every["arrival_date"])
    store.create("timeline", SCHEMA, ["arrival_date"])
    facts = {day: DayFacts(1, "", 0) for day in days}
    written = DaysToWrite(stream.spec, {"": axis_of(stream)}, cells, [], days, facts)
    commit_days(store, written, replace=False)
    return StoredTimeline(
        TimelineTable.open(store), stream.spec.timeline_fingerprint, stream.horizon_ms + 9 * DAY_MS
    )


def rows(table: pd.DataFrame) -> list[tuple]:
    plain = table.astype(object).where(table.notna(), None)
    return sorted(plain.itertuples(index=False, name=None), key=str)


@FEW
@given(streams())
def test_the_table_answers_as_what_was_observed_does(tmp_path_factory, stream):
    assume(any(record.arrival_ms < stream.horizon_ms for record in stream.records))
    cells = observed(stream)
    table = stored(stream, cells, str(tmp_path_factory.mktemp("lake")))
    for name in ("channel_days", "day_map", "malformed"):
        assert rows(getattr(table, name)) == rows(getattr(cells, name)), name
    days = cells.day_map["arrival_date"].unique()
    middle_ms = stream.start_ms + 30
    for asked in (
        {},
        {"slots": TimeRange(middle_ms - 20, middle_ms)},
        {"least_threshold_ms": middle_ms},
    ):
        query = CellQuery(days, **asked)
        assert rows(table.cells(query)) == rows(cells.cells(query)), asked
    assert not len(table.cells(CellQuery(())))
    without = replace(table, without=frozenset(days))
    assert without.channel_days.empty
    assert without.day_map.empty
    assert without.cells(CellQuery(days)).empty


@FEW
@given(streams())
def test_days_that_are_kept_and_days_that_are_fresh_answer_as_one(stream):
    cells = observed(stream)
    is_fresh = cells.every["channel"] == "a"
    both = CombinedTimeline(Observed(cells.every[~is_fresh]), Observed(cells.every[is_fresh]))
    days = cells.day_map["arrival_date"].unique()
    assert rows(both.cells(CellQuery(days))) == rows(cells.cells(CellQuery(days)))
    assert rows(both.channel_days) == rows(cells.channel_days)


# ------------------------------------------------------------------ what a day needs of a long past


@dataclass(frozen=True)
class Watched:
    """A timeline that counts the cells which it was asked for."""

    timeline: Timeline
    given: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> pd.DataFrame:
        return getattr(self.timeline, name)

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        found = self.timeline.cells(asked)
        self.given.append(len(found))
        return found


def a_past(days: int) -> tuple[Watched, Axis, object]:
    """Days of two channels that speak every ten minutes, with a straggler of the day before."""
    spec = a_meter(
        {"tumbling": "10m"},
        {"strategy": "bounded_out_of_orderness", "bound": "1m", "emit": {"every": "1m"}},
        channel="channel",
        channels=["a", "b"],
    )
    axis = Axis.of(spec, 0)
    records = [
        Record(
            arrival_ms=day * DAY_MS + minute * MINUTE_MS,
            ts_ms=day * DAY_MS + minute * MINUTE_MS - (30_000 if minute else 25 * 3_600_000),
            record_id=f"{day}-{minute}-{channel}",
            channel=channel,
        )
        for day in range(days)
        for minute in range(0, 24 * 60, 10)
        for channel in "ab"
    ]
    counted_rows = [cell_of(spec, axis, record) for record in records]
    return Watched(observed_cells(*counted_rows)), axis, spec


def asked_of(days: int, day: int) -> int:
    """How many cells a day and its stragglers ask for, of a history of so many days."""
    watched, axis, spec = a_past(days)
    history = history_of(watched, spec, axis)
    clock = Clock(days * DAY_MS)
    slots = slots_in(history, TimeRange(day * DAY_MS, (day + 1) * DAY_MS), clock)
    assert len(slots) > 140
    _, older = older_slots(history, (days - 1) * DAY_MS, (days - 1) * DAY_MS, clock)
    assert len(older)
    assert history.crossings.watermark_reached(days * DAY_MS) > (days - 1) * DAY_MS
    return sum(watched.given)


@pytest.mark.parametrize("back", [1, 3])
def test_a_day_asks_for_as_many_cells_however_long_the_history(back):
    assert asked_of(24, 24 - back) == asked_of(6, 6 - back)


def test_a_long_range_in_pieces_keeps_cells_of_its_last_days_only():
    watched, axis, spec = a_past(24)
    history = history_of(watched, spec, axis)
    for day in range(24):
        slots_in(history, TimeRange(day * DAY_MS, (day + 1) * DAY_MS), Clock(24 * DAY_MS))
    kept = sum(len(cells) for _, cells in history.crossings._read.values())
    assert kept < len(watched.timeline.every) / 3


def test_a_day_is_found_by_the_day_that_its_stragglers_arrived_on():
    watched, axis, spec = a_past(9)
    days = history_of(watched, spec, axis).days
    first = date(1970, 1, 1)
    within = TimeRange(midnight_of(first) + 3 * DAY_MS, midnight_of(first) + 4 * DAY_MS)
    assert days.of_windows(within) == [first + timedelta(days=n) for n in (3, 5)]
