"""The published rows of gaps that a run replaces, and the parts of them that stay."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from calendars import NEW_YEAR, SCHEMA, a_slot, write_calendar
from dear import DEAR
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from meter import HALF_DAYS as SPEC
from meter import a_meter

from strandline.engine.position.grid import Grid
from strandline.lake.store.lake import Lake
from strandline.model.intervals import EVERYTHING, HOUR_MS, TimeRange, instant_of, merged
from strandline.pipeline.rebuild.gaps import EDGES, GapRows, StagedGaps

GRID = Grid.of(SPEC)
STEP, FIRST = GRID.step_ms, instant_of(NEW_YEAR)


def ids(start: int, stop: int) -> range:
    """Half days, by their numbers since New Year."""
    return range(FIRST + start * STEP, FIRST + stop * STEP, STEP)


def a_row(first: int, slots: int, **values):
    row = a_slot(first, gap=True, on_time=0, run_id="then", **values)
    end = row["slot_start"] + slots * timedelta(hours=12)
    return row | {"slot_end": end, "slots": slots if slots > 1 else None}


def numbers(rows) -> list[int]:
    """The numbers of the half days of some rows."""
    starts = [(instant_of(row["slot_start"]) - FIRST) // STEP for row in rows]
    return [
        start + n for start, row in zip(starts, rows, strict=True) for n in range(row["slots"] or 1)
    ]


@pytest.fixture
def store(tmp_path):
    return Lake.at(str(tmp_path)).pipeline("meter")


def test_a_row_for_many_gaps_is_cut_where_a_run_computes_slots_and_keeps_its_own_values(store):
    write_calendar(store, [a_slot(0), a_row(1, 1), a_row(2, 9, state="fired"), a_row(11, 3)])
    found = GapRows.among([ids(4, 5), ids(7, 9)], store, GRID, TimeRange(0, 0))
    assert numbers(found.rows.to_pylist()) == [*range(2, 11)]
    parts = [*found.stay([ids(0, 10)], "now")]
    assert [numbers([part]) for part in parts] == [[2, 3], [5, 6], [9]]
    assert [part["slots"] for part in parts] == [2, 2, None]
    assert {(part["state"], part["run_id"]) for part in parts} == {("fired", "now")}
    assert [part["slot_date"] for part in parts] == [part["slot_start"].date() for part in parts]


def test_single_gaps_are_replaced_outside_the_range_and_its_own_go_with_the_range(store):
    write_calendar(store, [a_row(number, 1) for number in range(8)])
    within = TimeRange(ids(2, 3).start, ids(4, 5).start)
    found = GapRows.among([ids(1, 6)], store, GRID, within)
    assert sorted(numbers(found.rows.to_pylist())) == [1, 4, 5]
    assert [*found.stay([ids(0, 8)], "now")] == []


def test_a_row_of_other_windows_goes_whole_with_the_slot_where_it_starts(store):
    daily = Grid.of(a_meter({"tumbling": "1d"}, channel="source", channels=["a"]))
    write_calendar(store, [a_row(1, 9)])
    day = range(FIRST, FIRST + daily.step_ms, daily.step_ms)
    found = GapRows.among([day], store, daily, TimeRange(0, 0))
    assert numbers(found.rows.to_pylist()) == [*range(1, 10)]
    assert [*found.stay([day], "now")] == []
    behind = range(day.stop, day.stop + daily.step_ms, daily.step_ms)
    assert GapRows.among([behind], store, daily, TimeRange(0, 0)).rows.num_rows == 0


def test_a_calendar_of_an_earlier_version_has_single_gaps_alone(store):
    write_calendar(store, [a_row(number, 1) for number in range(3)])
    old = pa.Table.from_pylist([a_row(n, 1) for n in range(3)], SCHEMA).drop_columns(["slots"])

    write_deltalake(
        store.uri("completeness"),
        old,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["slot_date"],
    )
    found = GapRows.among([ids(1, 2)], store, GRID, TimeRange(0, 0))
    assert numbers([row | {"slots": None} for row in found.rows.to_pylist()]) == [1]
    assert [*found.stay([ids(0, 3)], "now")] == []


@st.composite
def calendars(draw):
    """Rows of gaps side by side, the slots that a run computes, and those that stay."""
    lengths = draw(st.lists(st.integers(1, 5), max_size=5))
    rows, first = [], 0
    for length in lengths:
        first += draw(st.integers(0, 2))
        rows.append(a_row(first, length))
        first += length
    ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=3)
    computed, stay = ([ids(start, start + n) for start, n in draw(ranges)] for _ in "12")
    apart = merged(TimeRange(one.start, one.stop) for one in stay if one)
    return rows, computed, [range(one.start_ms, one.end_ms, STEP) for one in apart]


@DEAR
@given(calendars())
def test_afterwards_each_gap_that_stays_or_is_in_no_changed_row_is_in_one_row(drawn):
    rows, computed, stay = drawn
    table = pa.Table.from_pylist(rows, SCHEMA)
    apart = merged(TimeRange(one.start, one.stop) for one in computed if one)
    some = {(one - FIRST) // STEP for of in computed for one in of}
    staying = {(one - FIRST) // STEP for of in stay for one in of}
    changed = [row for row in rows if some & {*numbers([row])}]
    again = table.filter(pa.array([row in changed for row in rows], pa.bool_()))
    after = [row for row in rows if row not in changed]
    after += GapRows(GRID, apart, again).stay(stay, "now")
    many = [row for row in changed if row["slots"]]
    expected = {*numbers([row for row in rows if row not in changed])}
    expected |= ({*numbers(many)} & staying) - some
    assert sorted(numbers(after)) == sorted(expected)


def test_twenty_thousand_rows_are_one_condition_that_arrow_can_evaluate():
    """Each range of gaps was one level of a tree, of which the process died without a word."""
    at = [NEW_YEAR + n * timedelta(hours=12) for n in range(20_000)]
    edges = {"slot_start": at[::2], "slot_end": at[1::2]}
    gaps = StagedGaps(None, 0, 0, 0, (), pa.table(edges, EDGES), None)
    slots = pa.table({"slot_start": at[:-1], "slot_end": at[1:], "gap": [True] * 19_999})
    assert ds.dataset(slots).to_table(filter=gaps.again).num_rows == 10_000
    first, last = (instant_of(one) for one in (at[0], at[-2]))
    assert gaps.around(TimeRange(first, first + HOUR_MS)) == TimeRange(first, last + 1)
    assert gaps.around(EVERYTHING) == EVERYTHING
