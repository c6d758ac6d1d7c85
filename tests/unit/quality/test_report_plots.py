"""What the report's plots are drawn from."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pytest

from strandline.pipeline.views.channels import with_emissions
from strandline.quality.report.calendar import CLOSED, GAP, calendar, late_calendar
from strandline.quality.report.quarantine import lateness_plot, quarantine_plots, saved_by
from strandline.quality.report.watermarks import watermarks
from strandline.spec import parse_spec

MINUTE = timedelta(minutes=1)
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NEW_YEAR_MS = 1_356_998_400_000


def a_slot(start, size=60 * MINUTE, **changed):
    return {
        "slot_start": start,
        "slot_end": start + size,
        "state": "closed",
        "gap": False,
        "closed_at": start + 90 * MINUTE,
        "on_time": 10,
        "late_accepted": 0,
        "late": 0,
        "no_window": 0,
        **changed,
    }


def slots(*rows):
    frame = pd.DataFrame(rows, columns=list(a_slot(NEW_YEAR)))
    edges = dict.fromkeys(("slot_start", "slot_end", "closed_at"), "datetime64[us, UTC]")
    return frame.astype(edges).assign(missed=frame["late"])


def the_strip(*rows, of=calendar):
    (strip,) = of(slots(*rows)).strips
    return strip[1]


def cells_of(figure):
    """The shade of each cell, by its day and its row."""
    data = figure.data
    names = [one.style for one in figure.series]
    places = zip(data["day"], data["row"], strict=True)
    return dict(zip(places, (names[shade] for shade in data["shade"]), strict=True))


def test_no_slots_make_no_strip():
    assert calendar(slots()).strips == ()


def test_a_cell_has_the_day_and_the_hour_of_its_slot_and_its_figures():
    drawn = the_strip(
        a_slot(NEW_YEAR + 60 * MINUTE),
        a_slot(NEW_YEAR + timedelta(days=2, hours=2), state="open", closed_at=pd.NaT, late=3),
    )
    assert cells_of(drawn) == {(0, 1): "state-1", (2, 2): "state-4"}
    data = drawn.data
    assert (data["rows"], data["days"], data["first"]) == (24, 28, "2013-01-01")
    assert data["closedAfter"] == [30, None]  # minutes after the end of the slot
    assert (data["on_time"], data["late"], data["late_accepted"]) == ([10, 10], [0, 3], 0)
    assert (data["lengthMinutes"], data["rowMinutes"]) == (60.0, 60)
    assert drawn.table.rows[-1] == ("2013-01-03", "0", "0", "1", "0", "10", "0", "3", "23.1 %")


@pytest.mark.parametrize(
    ("changed", "shade"),
    [
        ({"state": "fired"}, "state-2"),
        ({"gap": True, "state": "closed", "on_time": 0}, "state-3"),
        ({"late": 100, "state": "open"}, "state-4"),
    ],
)
def test_the_state_of_a_slot_is_its_colour(changed, shade):
    assert cells_of(the_strip(a_slot(NEW_YEAR, **changed))) == {(0, 0): shade}


@pytest.mark.parametrize(
    ("on_time", "late", "shade"),
    [
        *((10, 0, "share-1"), (999, 1, "share-2"), (990, 10, "share-2"), (95, 5, "share-3")),
        *((80, 20, "share-4"), (1, 1, "share-4"), (1, 2, "share-5"), (0, 1, "share-6")),
    ],
)
def test_the_share_of_late_records_is_a_heat_and_not_a_yes_or_no(on_time, late, shade):
    slot = a_slot(NEW_YEAR, on_time=on_time, late=late)
    assert cells_of(the_strip(slot, of=late_calendar)) == {(0, 0): shade}


def test_a_slot_without_records_has_no_share():
    gap = a_slot(NEW_YEAR, gap=True, on_time=0)
    assert late_calendar(slots(gap)).strips == ()


def test_short_slots_share_a_cell_that_shows_the_worst_of_them():
    minutes = [a_slot(NEW_YEAR + number * MINUTE, size=MINUTE) for number in range(20)]
    minutes[3] |= {"state": "open", "closed_at": pd.NaT}
    drawn = the_strip(*minutes)
    assert drawn.data["rows"] == 96
    assert cells_of(drawn) == {(0, 0): "state-4", (0, 1): "state-1"}
    assert (drawn.data["open"], drawn.data["closed"]) == ([1, 0], [14, 5])


def test_far_apart_slots_keep_the_rows_of_their_size():
    far = the_strip(a_slot(NEW_YEAR), a_slot(NEW_YEAR + timedelta(days=9)))
    assert far.data["rows"] == 24


def test_slots_of_days_are_one_row():
    days = [a_slot(NEW_YEAR + timedelta(days=n), size=timedelta(days=1)) for n in range(3)]
    drawn = the_strip(*days)
    assert (drawn.data["rows"], set(cells_of(drawn))) == (1, {(0, 0), (1, 0), (2, 0)})


def test_a_slot_of_a_week_is_a_cell_of_seven_days():
    week = timedelta(days=7)
    weeks = the_strip(*(a_slot(NEW_YEAR + number * week, week) for number in range(5))).data
    assert (weeks["cellDays"], weeks["days"], weeks["day"]) == (7, 35, [0, 7, 14, 21, 28])
    sliding = the_strip(*(a_slot(NEW_YEAR + timedelta(days=n), week) for n in range(5))).data
    assert sliding["cellDays"] == 1
    assert the_strip(a_slot(NEW_YEAR, timedelta(days=3000))).data["cellDays"] == 1


def test_a_slot_of_a_week_across_new_year_is_drawn_in_both_years_and_listed_in_its_own():
    week = timedelta(days=7)
    starts = [NEW_YEAR + number * week for number in range(-60, 3)]
    strips = dict(calendar(slots(*(a_slot(at - timedelta(days=3), week) for at in starts))).strips)
    assert strips["2013"].data["day"][:2] == [-3, 4]
    assert strips["2012"].data["day"][-1] == 363
    assert strips["2013"].table.rows[0][0] == "2013-01-05"
    until_new_year = [a_slot(at - timedelta(days=3), week) for at in starts[:-2]]
    strips = dict(calendar(slots(*until_new_year)).strips)
    assert strips["2013"].data["day"] == [-3]  # no slot starts in it


def test_it_is_said_if_several_slots_share_a_cell():
    minutes = [a_slot(NEW_YEAR + number * MINUTE, MINUTE) for number in range(3)]
    assert calendar(slots(*minutes)).shares_cells
    assert not calendar(slots(a_slot(NEW_YEAR))).shares_cells


def test_more_than_a_year_is_a_strip_a_year_the_newest_first():
    years = calendar(slots(*(a_slot(datetime(year, 7, 1, tzinfo=UTC)) for year in (2011, 2013))))
    assert [name for name, _ in years.strips] == ["2013", "2011"]
    assert [figure.data["days"] for _, figure in years.strips] == [365, 365]


def test_slots_at_the_edges_of_time_are_drawn():
    found = calendar(
        slots(
            a_slot(datetime(1, 1, 1, tzinfo=UTC)),
            a_slot(datetime(9999, 12, 31, 22, tzinfo=UTC)),
        )
    )
    assert [name for name, _ in found.strips] == ["9999", "1"]


def test_records_in_no_window_are_not_late():
    """No watermark has refused them: with gaps between the windows each slot was a late one."""
    in_gap = a_slot(NEW_YEAR, no_window=30)
    alone = a_slot(NEW_YEAR + timedelta(hours=1), on_time=0, no_window=5)
    shades = late_calendar(slots(in_gap, alone)).shades
    assert {shade.name: shade.slots for shade in shades if shade.slots} == {"none late": 2}


def test_the_legend_counts_slots():
    minutes = [a_slot(NEW_YEAR + number * MINUTE, size=MINUTE) for number in range(20)]
    shades = {shade.name: shade.slots for shade in calendar(slots(*minutes)).shades}
    assert shades["closed"] == 20


def test_the_legend_counts_the_slots_of_a_row_that_stands_for_many_gaps():
    rows = slots(a_slot(NEW_YEAR), a_slot(NEW_YEAR + timedelta(hours=1), on_time=0, gap=True))
    found = calendar(rows.assign(slots=[None, 718_158]))
    assert {shade.name: shade.slots for shade in found.shades if shade.slots} == {
        "closed": 1,
        "gap": 718_158,
    }
    ((_, figure),) = found.strips
    assert figure.data["gap"] == [0, 718_158]
    assert figure.data["shade"] == [CLOSED - 1, GAP - 1]


def quarantined(*rows):
    return pd.DataFrame(rows, columns=["reason", "day", "records"])


def test_an_empty_quarantine_has_no_plot():
    assert quarantine_plots(quarantined()) == ()


def test_late_and_malformed_records_are_plots_of_their_own():
    day, later = date(2013, 1, 1), date(2013, 1, 3)
    drawn = quarantine_plots(
        quarantined(
            ("late", day, 2),
            ("null_event_time", day, 500),
            ("invalid", day, 600),
            ("invalid", later, 7),
        )
    )
    assert [title for title, _ in drawn] == ["late", "malformed"]
    late, malformed = (figure for _, figure in drawn)
    assert [one.name for one in late.series] == ["late"]
    assert malformed.data["x"] == [0, 2]
    assert [(one["name"], one["values"]) for one in malformed.data["series"]] == [
        ("invalid", [600, 7]),
        ("null_event_time", [500, 0]),
    ]
    assert malformed.table.rows[1] == ("2013-01-03", "7", "0")


def late_by(*rows):
    return pd.DataFrame(rows, columns=["late_by_ms", "records"])


def test_no_late_records_have_no_plot():
    assert lateness_plot(late_by()) is None
    assert saved_by(late_by()) == ()


def test_extra_lateness_saves_what_is_late_by_no_more():
    found = late_by((HOUR_MS, 3), (60_000, 1), (90 * 60_000, 4))
    assert [(one.extra, one.records, one.share) for one in saved_by(found)] == [
        ("5m", 1, "12.5 %"),
        ("15m", 1, "12.5 %"),
        ("1h", 4, "50.0 %"),
        ("1h 30m", 8, "100 %"),
    ]
    assert lateness_plot(found).data["series"][0]["values"] == [0, 12.5, 50, 100]


def test_the_last_extra_lateness_is_not_shorter_than_what_it_saves():
    *_, last = saved_by(late_by((HOUR_MS, 3), (27 * HOUR_MS + 46 * 60_000, 1)))
    assert (last.extra, last.records) == ("1d 4h", 4)


def a_spec(channels, *, idleness=None, every="200ms", **source):
    named = {"channel": "origin", "channels": channels, **source} if channels else {}
    return parse_spec(
        {
            "pipeline": "flights",
            "source": {"table": "t", "arrival_time": "a", "event_time": "e", **named},
            "watermark": {"strategy": "ascending", "idleness": idleness, "emit": {"every": every}},
            "window": {"tumbling": "1h"},
        },
        origin="flights.yaml",
    )


def settled(*rows):
    columns = ["channel", "arrival_date", "settled_ms", "pending_ms"]
    return pd.DataFrame(
        [
            (channel, date(2013, 1, 1) + timedelta(days=day), of_day, pending)
            for channel, day, of_day, pending in rows
        ],
        columns=columns,
    ).astype({"settled_ms": "Int64", "pending_ms": "Int64"})


def drawn_lines(rows, channels):
    figure = watermarks(settled(*rows), a_spec(channels)).figure
    return {line["name"]: line["values"] for line in figure.data["series"]}


def test_the_combined_watermark_is_as_far_behind_as_the_slowest_channel():
    lines = drawn_lines(
        [
            ("EWR", 0, NEW_YEAR_MS + 20 * HOUR_MS, None),
            ("JFK", 0, NEW_YEAR_MS + 18 * HOUR_MS, None),
            ("EWR", 1, NEW_YEAR_MS + 40 * HOUR_MS, None),
        ],
        ["EWR", "JFK"],
    )
    assert lines == {"EWR": [4, 8], "JFK": [6, 30], "combined": [6, 30]}


def test_a_channel_that_is_retired_or_may_be_idle_is_not_the_combined_watermark():
    rows = [("EWR", day, NEW_YEAR_MS + (20 + 24 * day) * HOUR_MS, None) for day in range(3)]
    rows.append(("JFK", 0, NEW_YEAR_MS + 18 * HOUR_MS, None))
    ended = a_spec(["EWR", "JFK"], retired={"JFK": "2013-01-03"})
    retired = watermarks(settled(*rows), ended)
    combined = {one["name"]: one["values"] for one in retired.figure.data["series"]}["combined"]
    assert combined == [6, 4, 4]
    assert watermarks(settled(*rows[:3]), ended).silent == ()
    idle = watermarks(settled(*rows), a_spec(["EWR", "JFK"], idleness="1h"))
    assert [line.name for line in idle.figure.series] == ["EWR", "JFK"]
    assert not idle.has_combined


def test_a_channel_that_never_spoke_and_retired_after_the_last_arrival_holds_nothing_back():
    """The report said that it holds every window back, until a later record came."""
    row = settled(("EWR", 0, NEW_YEAR_MS + 20 * HOUR_MS, None))
    ended = a_spec(["EWR", "JFK"], retired={"JFK": "2013-01-03"})
    silent = [
        watermarks(row, ended, processed_ms=NEW_YEAR_MS + days * DAY_MS).silent for days in (1, 2)
    ]
    assert silent == [("JFK",), ()]


def test_the_watermarks_go_on_to_the_last_processed_day_while_nothing_arrives():
    """The plot of a pipeline that was stale for ten days ended with its last record, in health."""
    row = settled(("", 0, NEW_YEAR_MS + 20 * HOUR_MS, NEW_YEAR_MS + 23 * HOUR_MS))
    until = {"until": date(2013, 1, 2)}
    for shown, behind in (({}, [4, 25, 49]), (until, [4, 25])):
        drawn = watermarks(row, a_spec(None), processed_ms=NEW_YEAR_MS + 3 * DAY_MS, **shown)
        assert drawn.figure.data["series"][0]["values"] == behind
    early = watermarks(row, a_spec(None), processed_ms=NEW_YEAR_MS)
    assert early.figure.data["series"][0]["values"] == [4]


def test_a_watermark_never_goes_back():
    lines = drawn_lines(
        [("", 0, NEW_YEAR_MS + 20 * HOUR_MS, None), ("", 2, NEW_YEAR_MS, None)], None
    )
    assert lines == {"all records": [4, 28, 52]}


def test_the_combined_watermark_does_not_fall_when_a_channel_joins_behind_it():
    rows = [("EWR", day, NEW_YEAR_MS + hour * HOUR_MS, None) for day, hour in ((0, 20), (1, 40))]
    joining = ("JFK", 1, NEW_YEAR_MS + 10 * HOUR_MS, None)
    assert drawn_lines([*rows, joining], "discovered")["combined"] == [4, 28]


def test_the_combined_watermark_of_an_interval_join_is_the_least_of_its_sides_own():
    """A channel that joined behind its own side held the combined one where the other side was."""
    side = {"table": "t", "arrival_time": "a", "event_time": "e", "channel": "c", "key": ["k"]}
    ascending = {"strategy": "ascending"}
    sides = {
        "left": side | {"channels": "discovered", "watermark": ascending},
        "right": side | {"channels": ["b", "c"], "watermark": ascending},
    }
    content = {"pipeline": "near", "sources": sides, "join": {"interval": ["-1h", "1h"]}}
    pipeline = parse_spec(content, origin="near.yaml")
    rows = settled(
        *(("right/b", day, NEW_YEAR_MS + hour * HOUR_MS, None) for day, hour in ((0, 30), (1, 44))),
        *(("right/c", day, NEW_YEAR_MS + hour * HOUR_MS, None) for day, hour in ((1, 42), (2, 60))),
        *(("left/a", day, NEW_YEAR_MS + hour * HOUR_MS, None) for day, hour in ((0, 47), (2, 70))),
        ("left/late", 1, NEW_YEAR_MS + 5 * HOUR_MS, None),
    )
    lines = watermarks(rows, pipeline).figure.data["series"]
    (combined,) = (line["values"] for line in lines if line["name"] == "combined")
    # right/c has none on the first day, and left/a had reached 47 before left/late joined
    assert combined == [None, 48 - 42, 72 - 44]


def test_what_was_pending_at_a_midnight_counts_at_the_next():
    lines = drawn_lines(
        [
            ("EWR", 0, NEW_YEAR_MS + 20 * HOUR_MS, NEW_YEAR_MS + 23 * HOUR_MS),
            ("EWR", 1, NEW_YEAR_MS + 21 * HOUR_MS, None),
            ("JFK", 0, NEW_YEAR_MS + 22 * HOUR_MS, None),
        ],
        "discovered",
    )
    assert lines == {"EWR": [4, 25], "JFK": [2, 26], "combined": [4, 26]}


def test_what_is_pending_is_drawn_from_its_tick_on():
    """It was drawn as emitted at the next midnight, whatever the ticks are."""
    rows = settled(*(("EWR", day, None, NEW_YEAR_MS + 20 * HOUR_MS) for day in range(3)))
    late = rows.assign(emitted_ms=NEW_YEAR_MS + 49 * HOUR_MS).astype({"emitted_ms": "Int64"})
    (line,) = watermarks(late, a_spec(["EWR"])).figure.data["series"]
    assert [None if one is None else float(one) for one in line["values"]] == [None, None, 52]
    never = with_emissions(rows, a_spec(["EWR"], every="0ms"), NEW_YEAR_MS)
    found = watermarks(never, a_spec(["EWR"]))
    assert (found.figure, found.silent) == (None, ("EWR",))


def test_a_declared_channel_without_a_watermark_holds_the_combined_one_back():
    row = ("EWR", 0, NEW_YEAR_MS + 20 * HOUR_MS, None)
    assert set(drawn_lines([row], ["EWR", "JFK"])) == {"EWR"}
    assert watermarks(settled(row), a_spec(["EWR", "JFK"])).silent == ("JFK",)
    assert watermarks(settled(row), a_spec("discovered")).silent == ()


def test_a_channel_without_a_record_on_the_shown_days_begins_with_its_watermark_from_before():
    before = ("JFK", -2, NEW_YEAR_MS - 30 * HOUR_MS, None)
    shown = [("EWR", day, NEW_YEAR_MS + 20 * HOUR_MS, None) for day in range(2)]
    drawn = watermarks(settled(*shown), a_spec(["EWR", "JFK"]), settled(before, shown[-1]))
    lines = {line["name"]: line["values"] for line in drawn.figure.data["series"]}
    assert lines == {"EWR": [4, 28], "JFK": [54, 78], "combined": [54, 78]}
    assert (drawn.has_combined, drawn.silent) == (True, ())


def test_of_many_channels_the_ones_furthest_behind_are_drawn():
    rows = [(f"p{n:02}", 0, NEW_YEAR_MS + n * HOUR_MS, None) for n in range(20)]
    found = watermarks(settled(*rows), a_spec("discovered"))
    assert [line.name for line in found.figure.series] == [
        *(f"p{n:02}" for n in range(8)),
        "combined",
    ]
    assert found.left_out == 12


def test_a_channel_without_a_name_is_told_from_all_records():
    rows = [("", 0, NEW_YEAR_MS, None), ("EWR", 0, NEW_YEAR_MS, None)]
    names = list(drawn_lines(rows, "discovered"))
    assert names == ["(empty)", "EWR", "combined"]


def test_no_watermark_at_all_is_no_plot():
    assert watermarks(settled(), a_spec(["EWR", "JFK"])).figure is None
    assert watermarks(settled(("EWR", 0, None, None)), a_spec(["EWR"])).figure is None
