"""A long range in pieces: together the range, and none with too many cells."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
from cells import cell_of, observed
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from meter import a_meter

from strandline.engine.calendar.pieces import divided_by_cells
from strandline.engine.history.history import History, history_of
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Observed
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange
from strandline.reference.records import Record

HOUR_MS = 3_600_000
HOURLY = a_meter({"tumbling": "1h"}, {"strategy": "ascending", "emit": "per_record"})
AN_HOURLY = (HOURLY, Axis.of(HOURLY, 0))


def a_past(of_days: list[int], window: dict[str, str]) -> History:
    """So many records on each day, spread over it."""
    times = [
        day * DAY_MS + number * DAY_MS // records
        for day, records in enumerate(of_days)
        for number in range(records)
    ]
    return of_times(times, window)


def of_times(times: list[int], window: dict[str, str]) -> History:
    """Records of some event times, each in a cell of its own."""
    spec = a_meter(window, {"strategy": "ascending", "emit": "per_record"})
    axis = Axis.of(spec, 0)
    rows = [
        cell_of(spec, axis, Record(arrival_ms=ms, ts_ms=ms, record_id=str(ms), gap_ms=HOUR_MS))
        for ms in times
    ]
    return history_of(observed(*rows), spec, axis)


WINDOWS = st.sampled_from(
    [
        {"tumbling": "1h"},
        {"tumbling": "5h", "offset": "2h"},
        {"sliding": "6h", "every": "2h"},
        {"cumulative": "12h", "step": "4h"},
        {"session": "30m"},
    ]
)


@DEAR
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), WINDOWS, st.integers(5, 60))
def test_pieces_follow_each_other_and_are_the_range(of_days, window, most):
    history = a_past(of_days, window)
    within = TimeRange(3 * HOUR_MS, len(of_days) * DAY_MS - HOUR_MS)
    pieces = divided_by_cells(history, within, most)
    assert (pieces[0].start_ms, pieces[-1].end_ms) == (within.start_ms, within.end_ms)
    for one, other in pairwise(pieces):
        assert one.start_ms < one.end_ms == other.start_ms
        # a grid's windows of one start stay together, and sessions' slots whole
        (start_ms,) = history.grid.newest_starts(pd.Series([other.start_ms]).to_numpy())
        assert start_ms == other.start_ms


def test_a_range_with_few_records_is_one_piece():
    history = a_past([10, 10, 10], {"tumbling": "1h"})
    assert divided_by_cells(history, EVERYTHING, 30) == [EVERYTHING]


def test_days_are_put_together_as_long_as_they_have_not_too_many_records():
    history = a_past([10, 10, 10, 10], {"tumbling": "1h"})
    borders = [piece.start_ms for piece in divided_by_cells(history, EVERYTHING, 20)[1:]]
    assert borders == [2 * DAY_MS]


def test_a_day_with_too_many_cells_is_cut_within():
    history = a_past([24], {"tumbling": "1h"})
    borders = [piece.start_ms for piece in divided_by_cells(history, TimeRange(0, DAY_MS), 12)[1:]]
    assert borders == [12 * HOUR_MS]


def test_a_day_is_cut_where_its_records_lie():
    times = [9 * HOUR_MS + number * HOUR_MS // 8 for number in range(24)]
    history = of_times(times, {"tumbling": "15m"})
    borders = [piece.start_ms for piece in divided_by_cells(history, TimeRange(0, DAY_MS), 12)[1:]]
    assert borders == [10 * HOUR_MS + HOUR_MS // 2]


def test_a_day_of_many_records_in_few_cells_is_one_piece():
    one_cell = cell_of(*AN_HOURLY, Record(arrival_ms=0, ts_ms=0, record_id="0"))
    cells = observed(one_cell).every
    history = history_of(Observed(cells.assign(records=1_000)), *AN_HOURLY)
    assert divided_by_cells(history, TimeRange(0, DAY_MS), 12) == [TimeRange(0, DAY_MS)]
