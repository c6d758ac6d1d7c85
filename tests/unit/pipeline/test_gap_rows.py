"""Rows that stand for many gaps: every view of some days counts the gaps of these days alone."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from calendars import NEW_YEAR, a_slot, write_calendar
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC

from strandline.engine.position.grid import Grid
from strandline.errors import InputError
from strandline.lake.store.days import Days, shown_days
from strandline.model.intervals import EVERYTHING, HOUR_MS, TimeRange, datetime_of, instant_of
from strandline.pipeline.views.calendar import calendar_page
from strandline.pipeline.views.calendar_rows import gaps_on
from strandline.pipeline.views.incomplete import incomplete_in
from strandline.pipeline.views.report import report_tables
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.slot import slot_at
from strandline.pipeline.views.status import status_of
from strandline.quality.report.calendar import calendar
from strandline.spec import parse_spec

GAPS = 1_200
"""The slots of half a day of one row, from 2 January 2013 on: 600 days."""
END = NEW_YEAR + timedelta(days=601)
SINCE, UNTIL = date(2014, 1, 1), date(2014, 1, 10)


def many_gaps(first: int, slots: int, hours: float = 12, size: float | None = None):
    row = a_slot(first, hours=hours, gap=True, on_time=0)
    last = row["slot_start"] + (slots - 1) * timedelta(hours=hours)
    return row | {"slots": slots, "slot_end": last + timedelta(hours=size or hours)}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A year of silence between two slots with records, in one row."""
    lake = a_lake_of(3, SPEC, tmp_path_factory.mktemp("lake"))
    rows = [a_slot(0), a_slot(1), many_gaps(2, GAPS), a_slot(2 + GAPS)]
    write_calendar(lake.pipeline("meter"), rows)
    return lake


def test_status_counts_the_gaps_of_the_days_that_it_shows(lake):
    shown = status_of(SPEC, lake, since=SINCE, until=UNTIL)
    assert shown["slots"] == {"gap": 20}
    assert shown["totals"]["slots"] == GAPS + 3
    assert status_of(SPEC, lake, until=date(2013, 1, 3))["slots"] == {"closed": 2, "gap": 4}
    rest = status_of(SPEC, lake, since=END.date() - timedelta(1))["slots"]
    assert rest == {"closed": 1, "gap": 2}


def test_incomplete_lists_the_gaps_of_the_days_that_it_shows(lake):
    found = incomplete_in(Shown.of(SPEC, lake), SINCE, UNTIL, limit=10)
    assert (found["slots"], found["incomplete"], found["causes"]) == (20, 20, {"gap": 20})
    (listed,) = found["listed"]
    assert listed["slot_start"] == "2014-01-01T00:00:00Z"
    assert listed["slot_end"] == "2014-01-11T00:00:00Z"


def test_the_report_colours_every_gap_of_a_row(lake):
    tables = report_tables(Shown.of(SPEC, lake), Days(SINCE, UNTIL))
    drawn = calendar(tables.completeness)
    ((_, figure),) = drawn.strips
    assert len(figure.data["day"]) == 20
    assert {shade.name: shade.slots for shade in drawn.shades}["gap"] == 20


def test_the_page_colours_every_gap_of_a_row_and_leads_to_it(lake):
    shown = Shown.of(SPEC, lake)
    page = calendar_page(shown, UNTIL)
    assert len(page["days"]) == 28
    assert all(cell["state"] == "gap" for day in page["days"] for cell in day["cells"])
    assert page["older"] == (UNTIL - timedelta(28)).isoformat()
    assert (page["all_slots"], page["states"]["gap"]) == (GAPS + 3, 56)
    cell = page["days"][3]["cells"][1]
    slot = slot_at(shown, cell["start_ms"], cell["end_ms"])
    assert (slot.state, slot.slots) == ("gap", 1)
    with pytest.raises(InputError, match="no slot of the calendar"):
        slot_at(shown, cell["start_ms"], cell["end_ms"] + 1)


def test_days_are_counted_back_from_the_end_of_a_silence(tmp_path):
    store = a_lake_of(3, SPEC, tmp_path).pipeline("meter")
    write_calendar(store, [a_slot(0), a_slot(1)])
    assert shown_days(store).since == date(2013, 1, 1) - timedelta(89)
    write_calendar(store, [a_slot(0), a_slot(1), many_gaps(2, GAPS)])
    observed = date(2013, 1, 3)
    assert shown_days(store).since == observed - timedelta(89)


@pytest.mark.parametrize(
    ("window", "hours", "size"),
    [
        ({"tumbling": "1h", "offset": "20m"}, 1, 1),
        ({"sliding": "3h", "every": "1h"}, 1, 3),
        ({"cumulative": "4h", "step": "1h"}, 1, None),
    ],
)
def test_the_parts_of_a_row_have_each_gap_once(tmp_path, window, hours, size):
    file = {**_file(), "window": window}
    spec = parse_spec(file, origin="meter.yaml")
    grid, store = Grid.of(spec), a_lake_of(1, SPEC, tmp_path).pipeline("meter")
    first = grid.ids_within(TimeRange(instant_of(NEW_YEAR), instant_of(NEW_YEAR) + 9 * HOUR_MS))[1]
    ids = range(first, first + 1_500 * grid.step_ms, grid.step_ms)
    edges = {
        "slot_start": datetime_of(grid.starts_of(ids[0])),
        "slot_end": datetime_of(grid.ends_of(ids[-1])),
    }
    row = a_slot(0, gap=True) | edges | {"slots": len(ids)}
    write_calendar(store, [row | {"slot_date": edges["slot_start"].date()}])
    (whole,) = gaps_on(spec, store, ["state"], EVERYTHING).to_pylist()
    assert {name: whole[name] for name in edges} == edges
    by_day = gaps_on(spec, store, ["state"], EVERYTHING, 24 * HOUR_MS).to_pylist()
    assert sum(part["slots"] for part in by_day) == len(ids) == whole["slots"]
    day = Days(date(2013, 1, 5), date(2013, 1, 5)).within
    (part,) = gaps_on(spec, store, [], day).to_pylist()
    assert part["slots"] == len([one for one in ids if grid.starts_of(one) in day])


def _file():
    return {
        "pipeline": "meter",
        "source": {"table": "landing/meter", "arrival_time": "a", "event_time": "h"},
        "watermark": {"strategy": "ascending"},
    }
