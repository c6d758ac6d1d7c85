"""Rows that stand for many gaps: every view of some days counts the gaps of these days alone."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from datetime import date, timedelta

import pytest
from calendars import NEW_YEAR, a_slot, write_calendar
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import a_meter

from strandline.engine.position.grid import Grid
from strandline.errors import InputError
from strandline.lake.store.days import Days
from strandline.model.intervals import EVERYTHING, HOUR_MS, TimeRange, datetime_of, instant_of
from strandline.pipeline.views.calendar import calendar_page
from strandline.pipeline.views.calendar_rows import gaps_on, parts_of
from strandline.pipeline.views.incomplete import incomplete_in
from strandline.pipeline.views.report import report_tables
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import shown_days
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
    assert shown_days(SPEC, store).since == date(2013, 1, 1) - timedelta(89)
    write_calendar(store, [a_slot(0), a_slot(1), many_gaps(2, GAPS)])
    observed = date(2013, 1, 3)
    assert shown_days(SPEC, store).since == observed - timedelta(89)


def test_days_are_counted_back_from_the_start_of_the_last_gap(tmp_path):
    weekly = a_meter({"tumbling": "7d", "offset": "5d"}, channel="source", channels=["a"])
    lake = a_lake_of(26, weekly, tmp_path)
    store = lake.pipeline("meter")
    write_calendar(store, [a_slot(0, hours=168), many_gaps(1, 3, hours=168)])
    last = date(2013, 1, 22)
    assert shown_days(weekly, store).since == last - timedelta(89)
    assert calendar_page(Shown.of(weekly, lake))["days"][0]["day"] == str(last)


def test_a_row_of_two_thousand_years_costs_as_much_as_another(tmp_path):
    lake, gaps = a_lake_of(3, SPEC, tmp_path), 2 * 365 * 2_000
    write_calendar(lake.pipeline("meter"), [a_slot(0), a_slot(1), many_gaps(2, gaps)])
    shown = Shown.of(SPEC, lake)
    tracemalloc.start()
    page = calendar_page(shown, UNTIL)
    found = incomplete_in(shown, SINCE, UNTIL, limit=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000
    assert (page["all_slots"], found["slots"]) == (gaps + 2, 20)
    last = date(2013, 1, 1) + timedelta(gaps // 2)
    assert (page["first_day"], page["last_day"]) == ("2013-01-01", str(last))
    assert page["newer"] == str(UNTIL + timedelta(28))


def test_totals_are_of_the_days_that_a_row_of_gaps_stands_for(lake, tmp_path):
    """They went by the days of rows: a silence at the end ended on its first day."""
    end = (END - timedelta(1)).date()
    of_all = status_of(SPEC, lake)["totals"]
    assert (of_all["last_day"], of_all["days"]) == (str(END.date()), 602)
    silent = a_lake_of(3, SPEC, tmp_path)
    write_calendar(silent.pipeline("meter"), [a_slot(0), a_slot(1), many_gaps(2, GAPS)])
    of_all = status_of(SPEC, silent)["totals"]
    assert (of_all["first_day"], of_all["last_day"]) == ("2013-01-01", str(end))
    assert (of_all["days"], of_all["slots"]) == (601, GAPS + 2)
    assert calendar_page(Shown.of(SPEC, silent))["last_day"] == str(end)


def test_each_step_of_cumulative_windows_has_its_colour(tmp_path):
    """All windows of a day start together: the gaps of a day were one cell, at its end."""
    window = {"cumulative": "24h", "step": "1h"}
    daily = a_meter(window, channel="source", channels=["a"])
    lake = a_lake_of(3, SPEC, tmp_path)
    row = many_gaps(1, 60, hours=24) | {"slots": 60 * 24}
    write_calendar(lake.pipeline("meter"), [a_slot(0, hours=24), row])
    shown = Shown.of(daily, lake)
    page = calendar_page(shown, date(2013, 1, 20))
    for day in page["days"][:19]:
        assert [cell["slots"] for cell in day["cells"]] == [1] * 24
        assert {cell["state"] for cell in day["cells"]} == {"gap"}
    cell = page["days"][3]["cells"][5]
    assert slot_at(shown, cell["start_ms"], cell["end_ms"]).slots == 1


@pytest.mark.parametrize(("size", "step", "part"), [(60, 10, 15), (2_880, 480, 720)])
def test_a_part_has_cumulative_windows_of_one_start_where_no_multiple_is_a_start(size, step, part):
    """The last part of a start had the first window of the next one too, and counted it there."""
    window = {"cumulative": f"{size}m", "step": f"{step}m", "offset": f"{step}m"}
    spec = a_meter(window, channel="source", channels=["a"])
    span, step = timedelta(minutes=size), timedelta(minutes=step)
    start, each = NEW_YEAR + step, span // step
    row = {"slot_start": start, "slot_end": start + 9 * span, "slots": 9 * each}
    parts = [*parts_of(Grid.of(spec), row, EVERYTHING, part * 60_000)]
    assert all(part.start_ms == part.last_start_ms for part in parts)
    of_start = Counter[int]()
    for part in parts:
        of_start[part.start_ms] += part.slots
    assert of_start == {instant_of(start + n * span): each for n in range(9)}


def test_a_cell_of_many_gaps_says_that_they_are_gaps(tmp_path):
    """Cumulative windows of more than a day are drawn where they start, a step of them each."""
    window = {"cumulative": "2d", "step": "12h"}
    spec = a_meter(window, channel="source", channels=["a"])
    lake = a_lake_of(3, SPEC, tmp_path)
    row = many_gaps(4, 4, hours=12) | {"slot_end": NEW_YEAR + timedelta(days=4)}
    write_calendar(lake.pipeline("meter"), [a_slot(0), row])
    page = calendar_page(Shown.of(spec, lake), date(2013, 1, 3))
    cell = page["days"][0]["cells"][0]
    assert (cell["slots"], cell["incomplete"]) == (4, 4)
    assert cell["why"] != []


def test_a_page_leads_to_the_last_day_of_all(tmp_path):
    lake, days = a_lake_of(3, SPEC, tmp_path), (date.max - NEW_YEAR.date()).days
    write_calendar(lake.pipeline("meter"), [a_slot(0), many_gaps(1, 3), a_slot(2 * days)])
    shown = Shown.of(SPEC, lake)
    assert calendar_page(shown, date(2013, 1, 3))["newer"] == "9999-12-31"
    page = calendar_page(shown, date.max)
    assert (page["older"], page["newer"]) == ("2013-01-02", None)


@pytest.mark.parametrize(
    "window",
    [
        {"tumbling": "24h"},
        {"tumbling": "12h", "offset": "6h"},
        {"sliding": "24h", "every": "12h"},
        {"cumulative": "3h", "step": "1h"},
    ],
)
def test_a_row_published_with_other_windows_is_whole_on_the_day_of_its_start(lake, window):
    edited = a_meter(window, channel="source", channels=["a"])
    first, last = date(2013, 1, 2), date(2014, 8, 24)
    assert status_of(edited, lake, since=last)["slots"] == {"closed": 1}
    assert status_of(edited, lake, since=first, until=first)["slots"] == {"gap": GAPS}
    shown = Shown.of(edited, lake)
    assert incomplete_in(shown, first, first, limit=10)["slots"] == GAPS
    page = calendar_page(shown, first)
    assert (page["all_slots"], page["states"]["gap"]) == (GAPS + 3, GAPS)
    cell = page["days"][0]["cells"][0]
    assert slot_at(shown, cell["start_ms"], cell["end_ms"]).slots == GAPS


def test_a_row_of_less_than_a_day_published_with_other_windows_stands_where_it_starts(tmp_path):
    lake = a_lake_of(3, SPEC, tmp_path)
    minutes = many_gaps(60, 1_200, hours=1 / 60)
    write_calendar(lake.pipeline("meter"), [a_slot(0, hours=1), minutes])
    edited = a_meter({"cumulative": "1d", "step": "1h"}, channel="source", channels=["a"])
    (day,) = calendar_page(Shown.of(edited, lake), date(2013, 1, 1))["days"]
    assert [(n, cell["slots"]) for n, cell in enumerate(day["cells"]) if cell] == [
        (0, 1),
        (1, 1_200),
    ]


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
