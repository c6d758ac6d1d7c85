"""The oracle of the flights' figures, held against Flink's own answers and against itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flights_reference
import kept_answers
import pytest
from flights_reference import DAY_MS, HOUR_MS, Answer, answer, flights
from record_replay import Firing, Record, Replay, Rules

from strandline.model.intervals import day_of
from strandline.quality.findings.volume import unusual_days

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[1] / "golden" / "flink"
# What a strategy subtracts from an event time, less the 1 ms that the replay subtracts anyway.
BOUNDS = {
    "bounded": lambda watermark: watermark["bound_ms"],
    "ascending": lambda _: 0,
    "legacy_ascending": lambda _: 0,
    "legacy_bounded": lambda watermark: watermark["bound_ms"] - 1,
}
LAST_DAY = 1_388_448_000_000  # 2013-12-31
FEBRUARY_9 = 1_360_368_000_000
JANUARY_2 = 1_357_084_800_000


def _is_of_this_kind(scenario: dict[str, Any]) -> bool:
    watermark = scenario.get("watermark", {})
    return (
        scenario.get("window", {}).get("kind") == "tumbling"
        and not scenario.keys() & {"trigger", "evictor", "then", "join"}
        and watermark["strategy"] in BOUNDS
        and watermark["emit"] == "periodic"
        and watermark["emit_interval_ms"] > 0
        and watermark["idleness_ms"] is None
        and watermark.get("combine", "valve") == "valve"
    )


def _scenarios() -> list[Any]:
    pairs = [
        pair
        for file in sorted(GOLDEN.glob("*.json"))
        for pair in json.loads(file.read_text(encoding="utf-8"))
        if _is_of_this_kind(pair["scenario"])
    ]
    return [pytest.param(pair, id=pair["scenario"]["name"]) for pair in pairs]


def _replayed(scenario: dict[str, Any]) -> Replay:
    rules = Rules(
        channels=tuple(scenario["channels"]),
        start_ms=scenario["clock_start_ms"],
        interval_ms=scenario["watermark"]["emit_interval_ms"],
        bound_ms=BOUNDS[scenario["watermark"]["strategy"]](scenario["watermark"]),
        size_ms=scenario["window"]["size_ms"],
        offset_ms=scenario["window"]["offset_ms"],
        lateness_ms=scenario["allowed_lateness_ms"],
    )
    records = [
        Record(r["arrival_ms"], r["ts_ms"], r["channel"], (r["key"],), r["id"])
        for r in scenario["records"]
    ]
    return Replay(rules).run(
        records,
        horizon_ms=records[-1].arrival_ms + 1,
        close=scenario["end_of_input"] == "max_watermark",
    )


def _sorted_firings(firings: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    # Among firings of one watermark those of equal end have no order.
    names = ("arrival_ms", "watermark", "end", "start", "key", "after_record_id", "count", "ids")
    return sorted(tuple(firing[name] for name in names) for firing in firings)


def _as_flink_writes(firing: Firing, size_ms: int) -> dict[str, Any]:
    return {
        "key": firing.key[0],
        "start": firing.start_ms,
        "end": firing.start_ms + size_ms,
        "count": len(firing.rows),
        "ids": sorted(firing.rows),
        "watermark": firing.watermark_ms,
        "arrival_ms": firing.at_ms,
        "after_record_id": -1 if firing.by is None else firing.by,
    }


a_year = pytest.mark.slow
"""The whole year is replayed, record by record."""


@pytest.fixture(scope="module")
def year(oracle: Callable[..., Answer]) -> Answer:
    return oracle()


@pytest.mark.parametrize("pair", _scenarios())
def test_the_replay_does_what_flink_did(pair: dict[str, Any]) -> None:
    scenario, expected = pair["scenario"], pair["expected"]
    size_ms = scenario["window"]["size_ms"]
    replay = _replayed(scenario)

    assert [(watermark, at) for watermark, at in replay.steps] == [
        (step["watermark"], step["at_arrival_ms"]) for step in expected["watermarks"]
    ]
    flinks = [
        {**firing, "after_record_id": -1} if firing["after_record_id"] is None else firing
        for firing in expected["firings"]
    ]
    ours = [_as_flink_writes(firing, size_ms) for firing in replay.firings]
    assert _sorted_firings(ours) == _sorted_firings(flinks)
    assert [(record.row, watermark, record.arrival_ms) for record, watermark in replay.late] == [
        (late["id"], late["watermark"], late["arrival_ms"]) for late in expected["late"]
    ]
    still_open = sorted(
        (start, key[0], len(pane.rows), pane.firings > 0)
        for (start, key), pane in replay.panes.items()
        if pane.closed_at_ms is None
    )
    assert still_open == sorted(
        (window["start"], window["key"], window["count"], window["end_passed"])
        for window in expected["open_at_end"]
    )
    assert expected["no_window"] == []


def test_there_are_goldens_to_be_held_against() -> None:
    kinds = Counter(param.values[0]["scenario"]["watermark"]["strategy"] for param in _scenarios())
    assert kinds["bounded"] >= 5


def test_a_late_record_within_the_lateness_fires_at_once_and_one_beyond_is_late() -> None:
    rules = Rules(
        channels=("a", "b"), start_ms=0, interval_ms=200, bound_ms=5, size_ms=10, lateness_ms=10
    )
    records = [
        Record(10, 3, "a", ("k",), 0),
        Record(20, 15, "a", ("k",), 1),  # b has not spoken: nothing fires at 200
        Record(200, 15, "b", ("k",), 2),  # arrives at a tick, so it is seen at 400: watermark 9
        Record(399, 4, "b", ("k",), 3),
        Record(400, 5, "b", ("k",), 4),  # [0, 10) has fired at 400: fires again
        Record(401, 25, "a", ("k",), 5),
        Record(402, 25, "b", ("k",), 6),  # at 600: watermark 19, the cleanup time of [0, 10)
        Record(600, 9, "a", ("k",), 7),
    ]
    replay = Replay(rules).run(records, horizon_ms=601)

    assert replay.steps == [(9, 400), (19, 600)]
    fired = [(firing.start_ms, firing.rows, firing.at_ms) for firing in replay.firings]
    assert fired == [(0, (0, 3), 400), (0, (0, 3, 4), 400), (10, (1, 2), 600)]
    assert [(record.row, watermark) for record, watermark in replay.late] == [(7, 19)]
    first = replay.panes[0, ("k",)]
    assert (first.late_accepted, first.firings, first.closed_at_ms) == (1, 2, 600)


@a_year
def test_both_books_of_the_year_balance(year: Answer) -> None:
    counts = year.counts
    malformed = counts["null_event_time"] + counts["null_arrival"]
    assert (counts["landed"], counts["null_event_time"], counts["null_arrival"]) == (
        336_776,
        8_255,
        1_175,
    )
    assert counts["landed"] == malformed + counts["well_formed"]
    assert counts["well_formed"] == counts["accepted"] + counts["late"] + counts["no_window"]
    in_windows = sum(window["records"] for window in year.windows)
    assert counts["accepted"] == in_windows + counts["in_open_windows"]
    assert year.books(0, 2 * LAST_DAY) == {
        name: counts[name] for name in ("well_formed", "accepted", "late", "no_window")
    }


@a_year
def test_windows_agree_with_the_crossings_of_the_watermark(year: Answer) -> None:
    slots = {slot["slot_start_ms"]: slot for slot in year.slots}
    for window in year.windows:
        slot = slots[window["window_start_ms"]]
        assert window["state"] == slot["state"]
        assert window["closed_at_ms"] == slot["closed_at_ms"]
        assert window["fired_at_ms"] >= slot["fired_at_ms"]
        on_time = window["records"] > window["late_accepted"]
        assert window["firings"] == window["late_accepted"] + on_time
        assert on_time == (window["fired_at_ms"] == slot["fired_at_ms"])
    for late in year.late:
        slot = slots[late["slot_start_ms"]]
        assert late["late_by_ms"] >= 1
        assert late["landed_ms"] >= slot["closed_at_ms"]


@a_year
def test_the_answer_as_of_a_midnight_is_what_was_known_then(
    year: Answer, oracle: Callable[..., Answer]
) -> None:
    then = oracle(FEBRUARY_9)
    assert then.late == [late for late in year.late if late["landed_ms"] < FEBRUARY_9]
    assert then.days == [day for day in year.days if day["arrival_date"] < "2013-02-09"]
    closed_then = [window for window in then.windows if window["state"] == "closed"]
    assert closed_then == [
        window for window in year.windows if (window["closed_at_ms"] or 0) in range(1, FEBRUARY_9)
    ]
    assert {window["state"] for window in then.windows} == {"fired", "closed"}


def test_the_clock_starts_at_midnight_of_the_first_arrival_date() -> None:
    data = flights()
    assert data.rules.start_ms == 1_356_998_400_000
    assert data.rules.start_ms % DAY_MS == 0
    assert data.rules.size_ms == HOUR_MS
    assert len(data.records) == 327_346


def test_of_the_year_only_the_blizzard_and_thanksgiving_are_unusual_days() -> None:
    """Median and deviation alone would name 61 of 338 days."""
    table = flights().table
    landed = table.loc[table["reason"].isna(), "arrival_day_ms"].value_counts()
    records = {day_of(int(day_ms)): int(count) for day_ms, count in landed.items()}
    over = sorted(day for day in records if day.year == 2013)  # New Year's Day 2014 is not over
    assert [str(one.day) for one in unusual_days(records, over)] == ["2013-02-09", "2013-11-29"]


def test_an_answer_that_was_kept_is_the_one_that_is_computed(tmp_path: Path) -> None:
    computed = answer(JANUARY_2)
    assert computed.windows and computed.slots and computed.days
    for _ in range(2):
        assert kept_answers.kept_answer(tmp_path, JANUARY_2) == computed


def test_an_answer_is_kept_only_as_long_as_nothing_that_it_follows_from_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    empty = Answer(0, None, {}, [], [], [], [])
    monkeypatch.setattr(flights_reference, "answer", lambda ms: asked.append(ms) or empty)
    for horizon_ms in (1, 1, 2):
        kept_answers.kept_answer(tmp_path, horizon_ms)
    assert asked == [1, 2]

    code = tmp_path / "record_replay.py"
    code.write_text("# another rule")
    monkeypatch.setattr(kept_answers.record_replay, "__file__", str(code))
    kept_answers.kept_answer(tmp_path, 1)
    flights_file = tmp_path / "flights.csv.zip"
    flights_file.write_bytes(b"other flights")
    monkeypatch.setattr(flights_reference, "source_file", lambda: flights_file)
    kept_answers.kept_answer(tmp_path, 1)
    assert asked == [1, 2, 1, 1]
