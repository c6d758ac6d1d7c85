"""Which windows are incomplete, and why: one computation for the command and for Airflow's page."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from calendars import a_slot, write_calendar
from deltalake import write_deltalake
from hard_streams import moved
from hypothesis import given, settings
from hypothesis import strategies as st
from joined import COGROUP, JOIN, PAIRED
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE
from meter import a_meter
from spec_strategies import cumulative_windows, sliding_windows
from strategies import streams

from strandline.cli import show
from strandline.cli.main import main
from strandline.engine.position.grid import Grid
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.days import Days
from strandline.lake.timeline.rows import SCHEMA as TIMELINE
from strandline.model.intervals import (
    DAY_MS,
    TimeRange,
    datetime_of,
    day_of,
    instant_of,
    midnight_of,
    text_of,
)
from strandline.pipeline.views import late_of_newer
from strandline.pipeline.views.answers import _value, answer
from strandline.pipeline.views.calendar import DAYS, calendar_page
from strandline.pipeline.views.incomplete import incomplete_in
from strandline.pipeline.views.late_of_newer import LateOfNewer
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.report import report_tables
from strandline.pipeline.views.shown import Shown
from strandline.reference.tables import Tables
from strandline.spec import parse_spec
from strandline.spec.trigger import Continuous


@pytest.fixture
def lake(tmp_path):
    return a_lake_of(3, SPEC, tmp_path / "lake")


@pytest.fixture
def calendar(lake):
    """Replaces the calendar, and gives what is incomplete by it."""

    def of(*rows, spec=SPEC, **asked):
        write_calendar(lake.pipeline("meter"), list(rows))
        return incomplete_in(Shown.of(spec, lake), **{"limit": 10, **asked})

    return of


def a_slots_page(spec, lake, start_ms, end_ms):
    return answer("slot", spec, lake, {"start_ms": start_ms, "end_ms": end_ms}, 0)


QUARANTINED = pa.schema(
    [
        ("reason", pa.string()),
        ("slot_start", pa.timestamp("us", tz="UTC")),
        ("missed_windows", pa.int64()),
        ("quarantine_date", pa.date32()),
    ]
)
SLOTS = pa.schema(
    [("slot_start", pa.timestamp("us", tz="UTC")), ("late", pa.int64()), ("slot_date", pa.date32())]
)


def why(found):
    return [[cause["sentence"] for cause in one["why"]] for one in found["listed"]]


def test_sessions_are_counted_by_slots_and_other_windows_as_windows(calendar):
    sessions = a_meter({"session": "30m"}, channel="source", channels=["a"])
    assert calendar(a_slot(0))["unit"] == "window"
    assert calendar(a_slot(0), spec=sessions)["unit"] == "slot"


def test_a_complete_calendar_has_nothing_to_say(calendar):
    found = calendar(a_slot(0), a_slot(1))
    assert (found["slots"], found["incomplete"], found["listed"]) == (2, 0, [])


@pytest.mark.parametrize(
    ("outcome", "cause", "sentence"),
    [
        ({"late": 30}, "late", "30 of 40 records came too late (75.0 %)"),
        ({"no_window": 1}, "no_window", "1 of 11 records lie in no window"),
        ({"missed_pairs": 1}, "missed_pairs", "1 record came too late for it, but not for other"),
        ({"unfired": 2}, "unfired", "2 records dropped before they were in a firing"),
        ({"gap": True, "on_time": 0}, "gap", "without a record, behind the first slot"),
        ({"gap": True, "on_time": 0, "slots": 1200}, "gap", "1,200 slots in a row without"),
        ({"state": "open"}, "open", "not fired: the watermark is 3d 11h before its end"),
        ({"state": "fired"}, "fired", "open to late records: the watermark is 3d 11h"),
    ],
)  # fmt: skip
def test_each_cause_is_named_with_its_figures(calendar, outcome, cause, sentence):
    found = calendar(a_slot(0), a_slot(11, **outcome))
    assert list(found["causes"]) == [cause]
    assert found["incomplete"] == outcome.get("slots", 1)
    assert why(found)[0][0].startswith(sentence)


def test_a_late_record_between_two_windows_is_said_to_count_in_the_earlier_one(calendar):
    hourly = a_meter({"sliding": "12h", "every": "13h"}, channel="source", channels=["a"])
    assert why(calendar(a_slot(0, late=1), spec=hourly)) == [
        ["1 of 11 records in it or between it and the next window came too late (9.09 %)"]
    ]


OVERLAPPING = {
    # a record of Wednesday morning that was refused, and one that only the newest window took
    "sliding": ({"sliding": "36h", "every": "12h"}, 36, [(4, 3)]),
    # its oldest window has only a part of the records of a newest one
    "odd": ({"sliding": "30h", "every": "12h"}, 30, [(4, 3), (4, 2)]),
    "cumulative": ({"cumulative": "36h", "step": "12h"}, 36, [(3, 3), (3, 1)]),
}


def overlapping_slots(name, hours):
    """Six slots of overlapping windows, and the place of the newest one that lacks records."""
    starts = [0, 0, 0, 3, 3, 3] if name == "cumulative" else [*range(6)]
    lengths = [12, 24, 36] * 2 if name == "cumulative" else [hours] * 6
    slots = [a_slot(start) for start in starts]
    for slot, length in zip(slots, lengths, strict=True):
        slot["slot_end"] = slot["slot_start"] + timedelta(hours=length)
    return slots, 5 if name == "cumulative" else 4


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_window_lacks_each_late_record_that_lies_in_it_whichever_window_counts_it(
    lake, calendar, name
):
    """Late records counted in their newest window alone, accepted ones in each: 88.5 % was 62.2."""
    window, hours, late = OVERLAPPING[name]
    spec = a_meter(window, channel="source", channels=["a"])
    slots, newest = overlapping_slots(name, hours)
    slots[newest]["late"] = len(late)
    slots[1]["missed_pairs"] = 2
    rows = [
        {
            "reason": "late",
            "slot_start": a_slot(start)["slot_start"],
            "missed_windows": missed,
            "late_by_ms": 1,
            "quarantine_date": a_slot(start)["slot_date"],
        }
        for start, missed in late
    ]
    quarantine = lake.pipeline("meter").uri("quarantine")
    partitioned = {"partition_by": ["quarantine_date"], "schema_mode": "overwrite"}
    write_deltalake(quarantine, pa.Table.from_pylist(rows), mode="overwrite", **partitioned)
    found = calendar(*slots, spec=spec)
    lacking = {
        "sliding": [0, 2, 1, 1, 1, 0],
        "odd": [0, 2, 1, 2, 2, 0],
        "cumulative": [0, 2, 0, 1, 1, 2],
    }[name]
    shares = {(one["slot_start"], one["slot_end"]): one["share"] for one in found["listed"]}
    assert shares == {
        tuple(text_of(instant_of(slot[edge])) for edge in ("slot_start", "slot_end")): round(
            10 / (10 + many), 6
        )
        for slot, many in zip(slots, lacking, strict=True)
        if many
    }
    assert found["causes"] == {"late": sum(map(bool, lacking)) - 1, "missed_pairs": 1}
    to_the_last = calendar(*slots, spec=spec, since=date(2013, 1, 1), until=date.max)
    assert to_the_last["incomplete"] == found["incomplete"]
    shown = Shown.of(spec, lake)
    tables = report_tables(shown, Days())
    assert tables.completeness.sort_values(["slot_start", "slot_end"])["missed"].tolist() == lacking
    for slot, many in zip(slots, lacking, strict=True):
        edges = [instant_of(slot[edge]) for edge in ("slot_start", "slot_end")]
        listed = a_slots_page(spec, lake, *edges)["quarantine"]
        in_quarantine = listed.get("late", {"total": 0})["total"]
        assert in_quarantine == many - slot["missed_pairs"]


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_window_that_may_lack_records_whose_rows_upkeep_has_removed_says_so(lake, calendar, name):
    """It seemed complete, or its share was too large by them."""
    window, hours, _ = OVERLAPPING[name]
    spec = a_meter(window, channel="source", channels=["a"])
    slots, newest = overlapping_slots(name, hours)
    slots[newest]["late"] = 2
    kept = {"reason": "late", "late_by_ms": 1, "missed_windows": 2}
    kept |= {"slot_start": slots[newest]["slot_start"]}
    kept |= {"quarantine_date": slots[newest]["slot_date"]}
    quarantine = lake.pipeline("meter").uri("quarantine")
    partitioned = {"partition_by": ["quarantine_date"], "schema_mode": "overwrite"}
    write_deltalake(quarantine, pa.Table.from_pylist([kept]), mode="overwrite", **partitioned)
    found = calendar(*slots, spec=spec)
    removed = "rows of quarantine that would show it are removed"
    assert [*zip((one["late_at_least"] for one in found["listed"]), why(found), strict=True)] == [
        (False, ["2 of 12 records came too late (16.7 %)"]),
        (True, [f"1 of 11 records came too late (9.09 %), perhaps more: {removed}"]),
        (True, [f"records may have come too late: {removed}"]),
    ]


def overlap(stream):
    """Whether windows overlap: there may be gaps between them."""
    grid = Grid.of(stream.spec)
    return grid.size_ms > grid.step_ms


def with_windows_of_two_days(stream):
    """The same, moved so that the newest window of a late record is the first of a day."""
    late = (row for row in Tables(stream.spec, stream.replay()).quarantine() if row.missed_windows)
    first = max(late, key=lambda row: row.missed_windows, default=None)
    step_ms = Grid.of(stream.spec).step_ms
    return stream if first is None else moved(stream, (step_ms - 1 - first.record.ts_ms) % DAY_MS)


@settings(max_examples=30)
@given(
    streams(
        window=st.one_of(sliding_windows(), cumulative_windows()),
        watermark=st.just({"strategy": "ascending", "emit": "per_record"}),
        length=st.just(24),
        channels=st.none(),
        lateness_ms=st.sampled_from([0, 5]),
    )
    .filter(overlap)
    .map(with_windows_of_two_days)
)
def test_the_records_that_lie_in_a_window_are_those_that_it_accepted_and_those_that_it_lacks(
    stream,
):
    """On whichever day the windows are asked for; where rows are removed, there may be more."""
    tables = Tables(stream.spec, stream.replay())
    rows = [
        {
            "reason": row.reason,
            "slot_start": datetime_of(row.slot_start_ms),
            "missed_windows": row.missed_windows,
            "quarantine_date": day_of(row.slot_start_ms),
        }
        for row in tables.quarantine()
    ]
    slots = [
        {
            "slot_start": datetime_of(row.window.start_ms),
            "late": row.late,
            "slot_date": day_of(row.window.start_ms),
        }
        for row in tables.completeness()
    ]
    days = {slot["slot_date"] for slot in slots}

    def found_in(quarantined):
        published = {
            "quarantine": ds.dataset(pa.Table.from_pylist(quarantined, QUARANTINED)),
            "completeness": ds.dataset(pa.Table.from_pylist(slots, SLOTS)),
        }

        def read(_, name, columns, days, wanted):
            return published[name].to_table(columns=columns, filter=days.rows_of(name) & wanted)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(late_of_newer, "read_days", read)
            read_with = ReadPipeline(stream.spec, None, None)
            return {day: LateOfNewer.of(read_with, Days(day, day)) for day in days}

    def known(found, window):
        of_day = found[day_of(window.start_ms)]
        edges = np.array([window.start_ms]), np.array([window.end_ms])
        return (0, False) if of_day is None else (*of_day.counts(*edges), *of_day.are_least(*edges))

    found, with_half = found_in(rows), found_in(rows[::2])
    for row in tables.completeness():
        window = row.window
        beside, is_least = known(found, window)
        assert not is_least
        rest, is_least = known(with_half, window)
        assert rest == beside or (rest < beside and is_least)
        lying_in_it = [
            record
            for record in stream.records
            if record.arrival_ms < stream.horizon_ms
            and window.start_ms <= record.ts_ms < window.end_ms
        ]
        lacking = row.late + row.missed_pairs + beside
        assert row.on_time + row.late_accepted + lacking == len(lying_in_it)


def test_a_window_that_the_watermark_has_passed_since_is_not_said_to_wait_for_it(calendar):
    found = calendar(a_slot(0, state="open"))
    assert why(found) == [["not fired: the watermark has reached its end since the last run"]]


def test_no_distance_is_said_to_a_watermark_of_other_arrivals_than_the_last_runs(lake, calendar):
    at_noon_ms = midnight_of(date(2013, 1, 4)) + DAY_MS // 2
    step = Entry("r-2", 1, "published", "backfill", horizon_ms=at_noon_ms)
    Ledger(lake.pipeline("meter")).append(step, datetime.now(UTC))
    found = calendar(a_slot(11, state="fired"))
    reached = "the watermark had not reached the end of the allowed lateness at the last run"
    assert why(found) == [[f"open to late records: {reached}"]]


def test_a_window_that_may_have_fired_early_is_not_said_to_have_not_fired(calendar):
    """It was in `windows` with its firings, and `incomplete` said that it had not fired."""
    spec = SPEC.model_copy(update={"trigger": Continuous(continuous="1m"), "firings": True})
    assert why(calendar(a_slot(11, state="open"), spec=spec)) == [
        ["not ended: the watermark is 3d 11h before its end"]
    ]


def test_a_window_that_was_published_by_other_rules_says_so(calendar):
    (reason,) = why(calendar(a_slot(0, state="fired", spec_fingerprint="of other rules")))[0]
    assert reason == (
        "open to late records: by the file's rules the watermark has reached the end of the "
        "allowed lateness; it was published by other rules, and the next scheduled run computes "
        "it again"
    )


def test_a_window_of_saturated_lateness_is_open_for_ever(calendar):
    spec = SPEC.model_copy(update={"allowed_lateness": 2**63 - 1})
    found = calendar(a_slot(1, state="fired"), spec=spec)
    assert why(found) == [["open to late records for ever, by the allowed lateness"]]


def test_a_window_of_all_time_has_no_end_to_fire_at(calendar):
    spec = a_meter({"global": {}}, channel="source", channels=["a"])
    (reason,) = why(calendar(a_slot(1, state="open"), spec=spec))[0]
    assert reason == "a window of all time, which has no end: only its trigger fires it"


@pytest.mark.parametrize(
    "spec", [SPEC.model_copy(update={"allowed_lateness": 2**63 - 1}), a_meter({"global": {}})]
)
def test_a_window_that_no_watermark_closes_is_complete_once_its_input_has_ended(
    lake, calendar, spec
):
    """It once waited for the end of the allowed lateness, thousands of years later."""
    ends_ms = midnight_of(date(2013, 2, 1))
    end = {"range": TimeRange(0, ends_ms), "horizon_ms": ends_ms, "closed": True}
    step = Entry("r-2", 1, "published", "backfill", **end)
    Ledger(lake.pipeline("meter")).append(step, datetime.now(UTC))
    assert calendar(a_slot(1, state="fired"), spec=spec)["incomplete"] == 0


def test_windows_of_days_to_recompute_and_of_days_without_their_rows_are_incomplete(lake, calendar):
    store = lake.pipeline("meter")
    day = date(2013, 1, 2)
    held = {"kind": "day", "event_date": date(2013, 1, 1), "records": 3}
    held |= {"least_ts_ms": midnight_of(day) - 1000, "largest_ts_ms": midnight_of(day) - 500}
    row = {"arrival_date": day, "timeline_fingerprint": SPEC.timeline_fingerprint, **held}
    write_deltalake(store.uri("timeline"), pa.Table.from_pylist([row], TIMELINE), mode="append")
    step = Entry("r-2", 1, "owed", "advance", owed=[day], lost=[day])
    Ledger(store).append(step, datetime.now(UTC))
    found = calendar(a_slot(0), a_slot(1), a_slot(2))
    assert found["causes"] == {"to_recompute": 1, "rows_missing": 1}
    assert found["listed"][0]["slot_start"] == "2013-01-01T12:00:00Z"
    assert why(found)[0] == [
        "the landing of 2013-01-02 has changed since, or landed late",
        "the landing of 2013-01-02 has lost rows since",
    ]


def test_the_newest_come_first_and_pages_hold_each_once(calendar):
    rows = [a_slot(number, late=1) for number in range(6)]
    pages = [calendar(*rows, limit=4, skip=skip) for skip in (0, 4)]
    assert [page["left_out"] for page in pages] == [2, 0]
    starts = [one["slot_start"] for page in pages for one in page["listed"]]
    assert starts == sorted(starts, reverse=True)
    assert len(set(starts)) == 6
    assert {page["incomplete"] for page in pages} == {6}


def test_only_the_days_that_are_asked_for_are_judged(calendar):
    rows = [a_slot(number, late=1) for number in range(6)]
    found = calendar(*rows, since=date(2013, 1, 2), until=date(2013, 1, 2))
    assert (found["slots"], found["incomplete"]) == (2, 2)


def test_every_slot_of_a_long_history_is_on_just_one_page_of_the_calendar(lake):
    spec = a_meter({"tumbling": "30m"}, channel="source", channels=["a"])
    rows = [a_slot(number, hours=0.5) for number in range(10_000)]
    write_calendar(lake.pipeline("meter"), rows)
    shown = Shown.of(spec, lake)
    until, starts, pages = "2013-07-28", [], 0
    while until is not None:
        page = calendar_page(shown, date.fromisoformat(until))
        cells = [cell for day in page["days"] for cell in day["cells"] if cell is not None]
        assert len(page["days"]) <= DAYS and len(cells) <= DAYS * 48
        starts += [cell["start_ms"] for cell in cells]
        until, pages = page["older"], pages + 1
    assert pages == 8
    assert sorted(starts) == [instant_of(row["slot_start"]) for row in rows]


def test_a_page_leads_to_the_next_days_that_have_slots_in_both_directions(lake):
    write_calendar(lake.pipeline("meter"), [a_slot(0), a_slot(400), a_slot(800)])
    shown = Shown.of(SPEC, lake)
    page = calendar_page(shown, date(2013, 7, 20))
    assert (page["older"], page["newer"]) == ("2013-01-01", "2014-02-05")
    first = calendar_page(shown, date(2013, 1, 1))
    assert (first["newer"], [day["day"] for day in first["days"]]) == ("2013-08-16", ["2013-01-01"])
    assert calendar_page(shown, date(1, 1, 1))["older"] is None


def test_a_cell_of_several_slots_has_the_state_of_the_worst_and_the_share_of_all(lake):
    rows = [a_slot(n, hours=0.25, late=n) for n in (0, 1)]
    write_calendar(lake.pipeline("meter"), [*rows, a_slot(2, hours=0.25, state="open")])
    spec = a_meter({"tumbling": "15m"}, channel="source", channels=["a"])
    page = calendar_page(Shown.of(spec, lake), date(2013, 1, 1))
    both, alone = filter(None, page["days"][0]["cells"])
    assert (both["states"], both["state"], both["incomplete"]) == ({"closed": 2}, "closed", 1)
    assert both["share"] == 20 / 21
    assert both["why"] == [] and alone["why"] and alone["state"] == "open"


def test_windows_of_one_start_that_grow_stand_where_they_grow(lake):
    spec = a_meter({"cumulative": "1d", "step": "6h"}, channel="source", channels=["a"])
    day = a_slot(0)["slot_start"]
    rows = [a_slot(0, hours=6 * n) | {"slot_start": day} for n in (1, 2, 3, 4)]
    write_calendar(lake.pipeline("meter"), rows)
    page = calendar_page(Shown.of(spec, lake), date(2013, 1, 1))
    assert (page["column_minutes"], [cell is None for cell in page["days"][0]["cells"]]) == (
        360,
        [False] * 4,
    )


def test_a_slot_shows_its_windows_its_quarantine_and_its_runs(lake):
    start_ms = midnight_of(date(2013, 1, 3))
    page = a_slots_page(SPEC, lake, start_ms, start_ms + DAY_MS // 2)
    assert (page["results"]["total"], page["results"]["columns"][0]) == (1, "device")
    assert {reason: rows["total"] for reason, rows in page["quarantine"].items()} == {"late": 1}
    late = page["quarantine"]["late"]
    assert late["values"][0][late["columns"].index("late_by_ms")] == "90,000"
    assert [run["run_id"] for run in page["runs"]] == ["r-1"]
    with pytest.raises(InputError, match="no slot of the calendar"):
        a_slots_page(SPEC, lake, start_ms, start_ms + 1)
    older = a_slots_page(SPEC, lake, start_ms - DAY_MS, start_ms - DAY_MS // 2)
    assert older["runs"] == []


@pytest.mark.parametrize(("channels", "named"), [(["a", "b"], "ab"), ("discovered", "ba")])
def test_the_last_channel_to_pass_a_window_before_it_fired_is_named_first(lake, channels, named):
    """One that joined a day after was said to have held it back."""
    spec = a_meter({"tumbling": "12h"}, channel="source", channels=channels)
    store, day = lake.pipeline("meter"), date(2013, 1, 1)
    end_ms = midnight_of(day) + DAY_MS // 2
    state = {"timeline_fingerprint": spec.timeline_fingerprint, "arrival_date": day}
    rows = []
    for channel, minute in (("a", 50), ("b", 40)):
        arrival_ms = end_ms + minute * 60_000
        common = {**state, "channel": channel, "first_arrival_ms": arrival_ms}
        rows.append({**common, "kind": "channel", "settled_ms": end_ms + 1, "records": 1})
        cell = {"slot_ms": end_ms, "threshold_ms": end_ms - 1, "records": 1, "pending": False}
        rows.append({**common, "kind": "cell", **cell})
    write_deltalake(store.uri("timeline"), pa.Table.from_pylist(rows, TIMELINE), mode="overwrite")
    started = Entry("r-2", 1, "observed", "advance", clock_start_ms=midnight_of(day))
    Ledger(store).append(started, datetime.now(UTC))
    fired_at = (50 if named == "ab" else 45) * 60_000 + 200
    slot = a_slot(0, fired_at=datetime_of(end_ms + fired_at))
    write_calendar(store, [slot])
    page = a_slots_page(spec, lake, end_ms - DAY_MS // 2, end_ms)
    channels = page["channels"]
    assert (page["channels_in_all"], [one["channel"] for one in channels]) == (2, [*named])
    # a tick of 200 ms shows what a record has offered
    passed_ms = {one["channel"]: one["fired_ms"] - end_ms for one in channels}
    assert passed_ms == {"a": 50 * 60_000 + 200, "b": 40 * 60_000 + 200}


@pytest.fixture
def incomplete(lake, tmp_path, capsys):
    """`strandline incomplete …`: its exit code, and what it has printed."""
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--pipelines", str(tmp_path), "--lake", lake.root]

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*places, "incomplete", *arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out + printed.err

    return call


def test_the_command_lists_them_and_exits_with_0_whatever_it_shows(incomplete):
    code, said = incomplete("meter", "--limit", "2")
    assert code == 0
    assert "meter: 6 of 6 windows incomplete" in said
    assert "2013-01-03T12:00:00Z  2013-01-04T00:00:00Z  open" in said
    assert "and 4 older ones: --limit and --until show them" in said
    assert "meter: no window there" in incomplete("meter", "--since", "2025-01-01")[1]
    found = json.loads(incomplete("meter", "--json")[1])
    assert (found["incomplete"], found["causes"]) == (6, {"open": 1, "late": 6})


def test_in_a_narrow_terminal_each_window_has_lines_of_its_own(incomplete, monkeypatch):
    """Columns of a few characters folded each instant into three lines."""
    monkeypatch.setattr(show.out, "width", 40)
    _, said = incomplete("meter", "--limit", "2")
    assert "window from" not in said
    assert "\n2013-01-03T12:00:00Z to 2013-01-04T00:00:00Z: open, " in said
    assert "\n  not fired: " in said


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["other"], "no such pipeline"),
        (["meter", "--since", "2013-01-03", "--until", "2013-01-01"], "is after --until"),
        (["meter", "--until", "2013-02-30"], "is not a date"),
        (["meter", "--limit", "0"], "greater than or equal to 1"),
        (["meter", "--limit", "9999999999999999999999"], "less than or equal to 100000"),
    ],
)
def test_what_cannot_be_asked_exits_with_2(incomplete, asked, problem):
    code, said = incomplete(*asked)
    assert code == 2
    assert problem in " ".join(said.split())
    assert "Traceback" not in said


def test_a_pipeline_that_has_not_run_is_said_to_have_no_runs(incomplete, lake):
    code, said = incomplete("meter", "--lake", f"{lake.root}/none")
    assert (code, "has no runs yet" in said) == (2, True)


@pytest.mark.parametrize(("content", "what"), [(JOIN, "closed"), (PAIRED, "fired")])
def test_an_open_slot_of_an_interval_join_is_not_closed_as_no_pair_waits_for_a_firing(
    calendar, content, what
):
    spec = parse_spec(content | {"pipeline": "meter"}, origin="meter.yaml")
    found = calendar(a_slot(0, state="open"), spec=spec)
    assert why(found)[0][0].startswith(f"not {what}: ")


@pytest.mark.parametrize("content", [JOIN, COGROUP, PAIRED], ids=["join", "cogroup", "pairs"])
def test_a_slot_of_two_inputs_is_shown_without_channels(tmp_path, content):
    spec = parse_spec(content, origin="two.yaml")
    lake = a_lake_of(2, spec, tmp_path)
    found = answer("calendar", spec, lake, {}, 0)
    cell = next(cell for row in found["days"] for cell in row["cells"] if cell)
    edges = {name: cell[name] for name in ("start_ms", "end_ms")}
    page = answer("slot", spec, lake, edges, 0)
    assert (page["slot"]["state"], page["channels"]) == ("closed", [])


def test_a_value_of_the_data_is_cut_where_it_is_long_and_shows_its_control_signs():
    shown = [_value(value) for value in (None, True, 12345, 0.1 + 0.2, "a\x1b[31m", "x" * 1000)]
    assert shown[:5] == [None, "True", "12,345", "0.3", "a\\x1b[31m"]
    assert len(shown[5]) == 200
    assert _value(datetime(2013, 1, 5, 6, tzinfo=UTC)) == "2013-01-05 06:00:00"
