"""The law of the world and the law of the rules: nothing that was published is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from cells import older_slots
from dear import ASKED
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Life, Published, in_one_run

from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, midnight_of
from strandline.pipeline.request.request import Request
from strandline.reference.records import Record
from strandline.spec import PipelineSpec, parse_spec

FIRST = date(2024, 3, 1)
START_MS = midnight_of(FIRST)
HOUR_MS = 3_600_000
DAYS = 6
EVERY_WINDOW = TimeRange(EVERYTHING.start_ms, EVERYTHING.end_ms - 1)
SOME = settings(max_examples=ASKED if ASKED > 1000 else max(min(20, ASKED), ASKED // 8))
"""A life is a dozen runs: `make test-deep` lives thousands."""

WINDOWS = st.sampled_from(
    [
        {"tumbling": "6h", "offset": "1h"},
        {"tumbling": "1h"},
        {"sliding": "9h", "every": "3h"},
        {"sliding": "3h", "every": "4h"},
        {"cumulative": "12h", "step": "4h"},
        {"session": "5h"},
        {"session": "gap_ms"},
    ]
)
WATERMARKS = st.sampled_from(
    [
        {"strategy": "bounded_out_of_orderness", "bound": "2h", "emit": {"every": "20m"}},
        {"strategy": "bounded_out_of_orderness", "bound": "1d", "emit": {"every": "7h"}},
        {"strategy": "ascending", "emit": "per_record"},
        {"strategy": "bounded_out_of_orderness", "bound": "5h", "emit": "per_record"},
    ]
)
PLAIN = {"strategy": "bounded_out_of_orderness", "bound": "3h", "emit": {"every": "20m"}}
IDLE = {"strategy": "ascending", "emit": {"every": "1h"}, "idleness": "8h"}
CHANNELS = st.sampled_from([["a", "b"], "discovered", ["b", "a", "c"]])


LATENESS = st.sampled_from(["0h", "4h", "30h"])
DUPLICATES = {"columns": ["value"], "within": "30h of arrival"}


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, Any]:
    """A pipeline as its file would be read."""
    return {
        "pipeline": "life",
        "source": {
            **{"table": "t", "arrival_time": "arrived", "event_time": "happened"},
            **{"channel": "channel", "channels": draw(CHANNELS), "key": ["k"]},
            "deduplicate": draw(st.sampled_from([None, None, None, DUPLICATES])),
        },
        "watermark": draw(WATERMARKS | st.just(IDLE)),
        "window": draw(WINDOWS),
        "allowed_lateness": draw(LATENESS),
        "quality": {"slot": "6h"},
    }


def parsed(content: dict[str, Any]) -> PipelineSpec:
    return parse_spec(content, origin="life.yaml")


@st.composite
def edits(draw: st.DrawFn) -> dict[str, Any]:
    """What someone on call changes in a pipeline."""
    kind = draw(st.sampled_from(["watermark", "allowed_lateness", "channels"]))
    if kind == "channels":
        return {kind: ["a", "b"]}
    return {kind: draw(LATENESS if kind == "allowed_lateness" else WATERMARKS | st.just(IDLE))}


def edited(content: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """The pipeline after an edit; of declared channels only some can be dropped."""
    if "channels" not in edit:
        return content | edit
    source = content["source"]
    if source["channels"] == "discovered":
        return content
    return content | {"source": source | edit}


@st.composite
def arrivals(draw: st.DrawFn) -> list[Record]:
    """Records of six days: mostly of the hours before they arrive, some of days before."""
    codes = draw(st.lists(st.integers(0, 2**30), min_size=8, max_size=40))
    records = []
    for number, code in enumerate(codes):
        rest, minute = divmod(code, DAYS * 24 * 12)
        rest, delay = divmod(rest, 16)
        rest, channel = divmod(rest, 5)
        rest, key = divmod(rest, 2)
        rest, gap = divmod(rest, 6)
        arrival_ms = START_MS + minute * 300_000
        hours = [0, 0, 0, 0, 1, 1, 2, 3, 5, 7, 9, 20, 30, 50, 80, -2][delay]
        records.append(
            Record(
                arrival_ms=arrival_ms,
                ts_ms=arrival_ms - hours * HOUR_MS - number * 1_000,
                record_id=f"{number:03d}",
                channel="aaabb"[channel],
                key=("xy"[key],),
                gap_ms=(1 + 2 * gap) * HOUR_MS,
                payload={"value": rest % 7, "id": number},
            )
        )
    return records


def midnight(day: int) -> int:
    return START_MS + day * DAY_MS


@st.composite
def stories(draw: st.DrawFn) -> list[tuple]:
    """What happens, in its order: landings whole, late, in parts; runs that end or die."""
    wait = {day: draw(st.sampled_from([0, 0, 0, 1, 2, 4])) for day in range(DAYS)}
    grows = {day: draw(st.sampled_from([0, 0, 0, 1, 3])) for day in range(DAYS)}
    story: list[tuple] = []
    for now in range(1, DAYS + 1):
        story += [("land", day, "most") for day in range(DAYS) if day + 1 + wait[day] == now]
        story += [
            ("land", day, "rest") for day in range(DAYS) if day + 1 + wait[day] + grows[day] == now
        ]
        what = draw(
            st.sampled_from(
                ["advance"] * 5
                + ["skip", "before its days count", "rejected", "again", "by hand", "all by hand"]
            )
        )
        story.append((what, now, draw(st.integers(0, 20)), draw(st.integers(1, 20))))
    return story


def live(
    life: Life, story: list[tuple], records: list[Record], holds: Callable[[Life, int], None]
) -> None:
    """Live a story; `holds` is asked after each scheduled run that ends."""
    for what, *more in story:
        if what == "land":
            day, part = more
            of_day = [r for r in records if (r.arrival_ms - START_MS) // DAY_MS == day]
            life.land(of_day[::2] if part == "most" else of_day)
            continue
        now, start, width = more
        if what in {"by hand", "all by hand"}:
            begin_ms = START_MS + (start - 4) * 7 * HOUR_MS
            within = TimeRange(begin_ms, begin_ms + width * 7 * HOUR_MS)
            if what == "all by hand":
                within = TimeRange(midnight(-9), midnight(DAYS + 9))
            life.backfill(within, midnight(now))
        elif what in {"before its days count", "rejected"}:
            life.advance(midnight(now), dies=what)
        elif what != "skip":
            life.advance(midnight(now))
            if what == "again":
                life.advance(midnight(now))
            holds(life, midnight(now))


def assert_as_in_one_go(life: Life, horizon_ms: int) -> None:
    assert_same(life.published, in_one_run(life.spec, life.records, life.axis.start_ms, horizon_ms))


def assert_same(found: Published, expected: Published) -> None:
    for part in ("windows", "late", "slots"):
        assert getattr(found, part) == getattr(expected, part), part


@SOME
@given(pipelines(), arrivals(), stories())
def test_whatever_lands_when_and_whichever_runs_die_the_next_leaves_what_one_go_leaves(
    content, records, story
):
    life = Life(parsed(content))
    live(life, story, records, assert_as_in_one_go)
    life.land(records)
    life.advance(midnight(DAYS + 1))
    assert_as_in_one_go(life, midnight(DAYS + 1))


def test_a_late_record_whose_older_windows_begin_before_the_range_has_slots_for_them():
    """Of a silent channel comes one record, late for all its windows; only the newest are near."""
    window = {"window": {"sliding": "9h", "every": "3h"}, "watermark": IDLE}
    source = {"table": "t", "arrival_time": "arrived", "event_time": "happened", "key": ["k"]}
    channels = {"channel": "channel", "channels": ["a", "b"]}
    content = {"pipeline": "life", "source": source | channels, "quality": {"slot": "6h"}}
    life = Life(parsed(content | window | {"allowed_lateness": "0h"}))
    told = [("a", 0, 0), ("a", 27, 24), ("b", 48, 17)]
    records = [
        Record(
            arrival_ms=START_MS + arrival * HOUR_MS,
            ts_ms=START_MS + ts * HOUR_MS,
            record_id=str(number),
            channel=channel,
            key=("x",),
            payload={"value": 0, "id": number},
        )
        for number, (channel, arrival, ts) in enumerate(told)
    ]
    for now in (1, 2, 3):
        life.land(r for r in records if r.arrival_ms < midnight(now))
        life.advance(midnight(now))
        assert_as_in_one_go(life, midnight(now))
    missed = (START_MS + 9 * HOUR_MS, START_MS + 18 * HOUR_MS)
    assert missed in life.published.slots
    # the life puts rows together itself: the engine names the slot, too
    request = Request("advance", to_ms=midnight(3))
    _, history, plan = life._planned(request, life._landing_status(), life.axis, midnight(3))
    scope = plan.scope
    assert missed[0] < scope.windows.start_ms
    _, older = older_slots(history, scope.older_end_ms, scope.older_since_ms, plan.clock)
    assert older["slot_ms"].tolist() == [missed[0]]


@SOME
@given(
    pipelines(), arrivals(), stories(), st.lists(edits(), min_size=DAYS, max_size=DAYS), st.data()
)
def test_whatever_is_edited_all_from_the_rebuilds_start_on_goes_by_the_new_rules(
    content, records, story, changes, data
):
    """And no slot is missing, nor open behind the watermark.

    The file is edited before the runs of a day, or after them: another one to the same midnight
    follows.
    """
    life = Life(parsed(content))
    nights = data.draw(st.dictionaries(st.integers(1, DAYS), st.booleans(), max_size=3))
    for now in range(1, DAYS + 1):
        part = [step for step in story if _day_of(step, story) == now]
        is_after = nights.get(now)
        if is_after:
            live(life, part, records, assert_by_the_rules_of_today)
            part = [("advance", now, 0, 0)]
        if is_after is not None:
            content = edited(content, changes[now - 1])
            life.spec = parsed(content)
        live(life, part, records, assert_by_the_rules_of_today)
    life.land(records)
    life.advance(midnight(DAYS + 1))
    assert_by_the_rules_of_today(life, midnight(DAYS + 1))


def _day_of(step: tuple, story: list[tuple]) -> int:
    """The day on which a step of a story happens: that of the run which follows it."""
    runs = [later[1] for later in story[story.index(step) :] if later[0] != "land"]
    return runs[0]


def assert_by_the_rules_of_today(life: Life, horizon_ms: int) -> None:
    expected = in_one_run(life.spec, life.records, life.axis.start_ms, horizon_ms)
    start_ms, found = life.plan.scope.windows.start_ms, life.published
    assert {w: row for w, row in found.windows.items() if w[1] >= start_ms} == {
        w: row for w, row in expected.windows.items() if w[1] >= start_ms
    }
    for part in ("late", "slots"):
        rebuilt, whole = (
            {
                name: row
                for name, row in getattr(tables, part).items()
                if _start(name, row) >= start_ms
            }
            for tables in (found, expected)
        )
        assert rebuilt == whole, part
    assert found.slots.keys() >= expected.slots.keys()
    not_closed = {slot for slot, row in found.slots.items() if row[0] != "closed"}
    assert not_closed <= {slot for slot, row in expected.slots.items() if row[0] != "closed"}


def _start(name: Any, row: tuple) -> int:
    return name[0] if isinstance(name, tuple) else row[0]


@SOME
@given(pipelines(), arrivals(), st.integers(0, DAYS - 1), st.integers(1, 3))
def test_where_it_is_accepted_that_rows_have_gone_all_is_as_if_they_had_never_come(
    content, records, gone, every
):
    life = Life(parsed(content))
    life.land(records)
    for now in range(2, DAYS + 1):
        life.advance(midnight(now))
    day = day_of(midnight(gone))
    of_day = sorted(life.landing.get(day, ()))
    if of_day:
        life.take_away(day, of_day[::every])
    life.advance(midnight(DAYS + 1), accept_loss=True)
    assert_as_in_one_go(life, midnight(DAYS + 1))


@SOME
@given(pipelines(), arrivals(), st.integers(0, DAYS - 1), st.integers(1, 3), st.booleans())
def test_where_it_is_not_accepted_the_windows_of_rows_that_have_gone_stay_as_they_are(
    content, records, gone, every, is_tried
):
    """And all behind them are what they would be if nothing had gone.

    Nor is it accepted by a run that publishes nothing.
    """
    life = Life(parsed(content | {"watermark": PLAIN}))
    life.land(records)
    for now in range(2, DAYS + 1):
        life.advance(midnight(now))
    before, day = life.published, day_of(midnight(gone))
    whole = in_one_run(life.spec, life.records, life.axis.start_ms, midnight(DAYS + 1))
    of_day = sorted(life.landing.get(day, ()))
    missing = {i: life.landing[day][i] for i in of_day[::every]}
    if missing:
        life.take_away(day, missing)
    if is_tried:
        life.advance(midnight(DAYS + 1), accept_loss=True, dies="of its audit")
    life.advance(midnight(DAYS + 1))
    start_ms = life.plan.scope.windows.start_ms
    kept = {w: row for w, row in life.published.windows.items() if w[1] < start_ms}
    assert kept == {w: row for w, row in before.windows.items() if w[1] < start_ms}
    behind = {w: row for w, row in life.published.windows.items() if w[1] >= start_ms}
    assert behind == {w: row for w, row in whole.windows.items() if w[1] >= start_ms}
    for start, row in ((w[1], row) for w, row in behind.items()):
        assert start < start_ms or not {*row[0]} & missing.keys()
    # once they have landed again, nothing of what came meanwhile is missing
    life.land(records)
    life.advance(midnight(DAYS + 2))
    assert_as_in_one_go(life, midnight(DAYS + 2))


def test_a_late_record_that_may_hang_together_with_rows_that_have_gone_is_not_judged_again():
    """With them its session is still open; of what is left it would be late."""
    source = {
        **{"table": "t", "arrival_time": "arrived", "event_time": "happened"},
        **{"channel": "channel", "channels": ["a"], "key": ["k"]},
    }
    content = {"pipeline": "life", "source": source, "watermark": PLAIN, "quality": {"slot": "6h"}}
    life = Life(parsed({**content, "window": {"session": "5h"}, "aggregates": {"n": "count(*)"}}))

    def record(name: str, arrived: int, happened: int) -> Record:
        arrival_ms, ts_ms = (midnight(3) + hour * HOUR_MS for hour in (arrived, happened))
        return Record(arrival_ms, ts_ms, name, channel="a", key=("x",), payload={"value": 0})

    *others, between = (record(str(hour), hour, hour) for hour in (2, 6, 14, 18, 10))
    touching = record("late", 26, 1)
    life.land([*others, between])
    life.advance(midnight(4))
    life.land([touching])
    life.take_away(day_of(midnight(3)), [between.record_id])
    life.advance(midnight(5))
    assert life.plan.missing == (day_of(midnight(3)),)
    assert life.plan.scope.older_end_ms > touching.ts_ms
    assert life.plan.scope.older_since_ms is None
    life.land([between])
    life.advance(midnight(5))
    assert_as_in_one_go(life, midnight(5))
    assert not life.published.late


def test_windows_of_all_time_need_every_row_and_none_is_rebuilt_while_one_is_missing():
    """No range that a run rebuilds is a part of all time, and its books would miss the row."""
    source = {"table": "t", "arrival_time": "arrived", "event_time": "happened", "key": ["k"]}
    counting = {"window": {"count": 2}, "watermark": PLAIN, "firings": True}
    life = Life(parsed({"pipeline": "life", "source": source, **counting}))
    for day in range(2):
        life.land([Record(arrival_ms=midnight(day), ts_ms=midnight(day), record_id=str(day))])
    life.advance(midnight(2))
    assert life.plan.scope.windows == EVERY_WINDOW
    life.take_away(FIRST, ["0"])
    request, status = Request("advance", to_ms=midnight(3)), life._landing_status()
    _, _, plan = life._planned(request, status, life.axis, midnight(3))
    assert plan.scope.windows.start_ms == plan.scope.windows.end_ms
    (note,) = plan.notes
    assert "rows of 2024-03-01 are missing from the landing table: all windows stay" in note
    accepted = status.accepting(status.missing)
    _, _, plan = life._planned(request, accepted, life.axis, midnight(3))
    assert plan.scope.windows == EVERY_WINDOW
