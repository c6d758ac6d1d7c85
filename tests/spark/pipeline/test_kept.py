"""Ranges by rules of one run alone: scheduled runs leave their windows, and say what has come."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest
from changes import land_again, landing_of
from deltalake import DeltaTable
from joined import COGROUP, PAIRED, SIDE
from lakes import Line, a_record, a_spec, at, instant, land, ms
from replayed import assert_books_balance, assert_told_by_replay, of_range

from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.views.deep import books_of_all
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark

TUMBLING, SESSIONS = {"tumbling": "1h"}, {"session": "20m"}
OWN_GAPS = {"session": "60000 * (10 + position % 50)"}
"""A session waits 10 to 59 minutes for the next record; see `replayed`."""
ONE = {"source__channels": ["a"]}
SIX_HOURS = {"allowed_lateness": "6h"}
RANGE = ("1", "3")


def hourly(*days: int) -> list[dict[str, Any]]:
    """A record of each hour of some days, soon after its time; one a day comes four hours late."""
    on_time = [
        a_record(f"{day} {hour:02d}:11", f"{day} {hour:02d}:10")
        for day in days
        for hour in range(24)
    ]
    return [*on_time, *(a_record(f"{day} 14:30", f"{day} 10:20", amount=900) for day in days)]


def numbered(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that a replay can tell apart."""
    return [
        {**row, "position": crc32(f"{row['arrived_at']} {row['happened_at']}".encode())}
        for row in rows
    ]


def decided(tmp_path, spark, window=TUMBLING, **changes: Any) -> Line:
    """Three days by the file; then two of them by a lateness of six hours."""
    line = Line(spark, tmp_path, a_spec(**ONE, window=window, **changes))
    land(tmp_path, numbered(*hourly(1, 2, 3)))
    line.advance("4")
    wider = line.of(a_spec(**ONE, window=window, **changes | SIX_HOURS))
    wider.backfill(*RANGE, overrides=SIX_HOURS, reason="a slow day")
    return line


def late_of(line: Line, *, of: tuple[str, str] = RANGE) -> list[tuple[int, int]]:
    """The positions of the quarantined records of a range, each with its `late_by_ms`."""
    return sorted((r["position"], r["late_by_ms"]) for r in of_range(line.rows("quarantine"), *of))


def slots(line: Line, *, late: bool) -> list[dict[str, Any]]:
    """The slots of the range, with or without how many records were late for each."""
    left_out = set() if late else {"late"}
    rows = of_range(line.rows("completeness"), *RANGE)
    return [{name: row[name] for name in row if name not in left_out} for row in rows]


@pytest.mark.parametrize(
    ("window", "end", "rules"),
    [
        (TUMBLING, "2 08:00", {}),
        (SESSIONS, "2 07:35", {"trigger": {"continuous": "5m"}, "firings": True}),
        (OWN_GAPS, None, {}),
    ],
    ids=["windows", "early sessions", "gaps of their own"],
)
def test_a_scheduled_run_keeps_them_and_quarantines_what_has_come_since(
    spark, tmp_path, window, end, rules
):
    line = decided(tmp_path, spark, window, **rules)
    windows, calendar = of_range(line.rows("windows"), *RANGE), slots(line, late=False)
    assert not late_of(line)  # six hours accept what comes four hours late

    grown = numbered(a_record("2 10:30", "2 10:15"), a_record("2 23:30", "2 22:15"))
    arrived = numbered(a_record("4 05:00", "2 07:15"), a_record("4 06:00", "3 07:15"))
    more = numbered(*hourly(4))
    land(tmp_path, [*grown, *more, *arrived], mode="append")
    outcome = line.advance("5")
    assert outcome.owed == ["2024-03-02"]
    assert any("stay as run" in n and "with allowed_lateness: 6h" in n for n in outcome.notes)
    assert "windows kept from 2024-03-01T00:00:00Z: 3 late records arrived since" in (outcome.notes)
    assert of_range(line.rows("windows"), *RANGE) == windows
    assert slots(line, late=False) == calendar
    assert sum(slot["late"] for slot in slots(line, late=True)) == 3
    by_position = dict(late_of(line))
    # what has landed late by the watermark that closed its window, the other by that of its arrival
    watermark_ms = instant("4 04:11") - 60_000 - 30 * 60_000 - 1
    own_gap_ms = 60_000 * (10 + arrived[0]["position"] % 50)
    end_ms = instant("2 07:15") + own_gap_ms if end is None else instant(end)
    assert by_position == {
        **{row["position"]: 1 for row in grown},
        arrived[0]["position"]: watermark_ms - end_ms + 2 - 6 * 3_600_000,
    }
    assert len(late_of(line, of=("3", "4"))) == 2  # by the file, as always
    (one,) = PipelineState.of(line.ledger).overridden
    assert (one.windows.start_ms, one.windows.end_ms) == (instant("1"), instant("3"))

    again = numbered(a_record("1 20:30", "1 20:15"))
    land(tmp_path, [*again, *numbered(*hourly(5))], mode="append")
    kept = line.copy(tmp_path / "kept")
    assert kept.advance("6").diff["quarantine"]["insert"] == 2  # one of them day 5's own
    assert dict(late_of(kept)) == {**by_position, again[0]["position"]: 1}
    assert of_range(kept.rows("windows"), *RANGE) == windows

    every = [*numbered(*hourly(1, 2, 3)), *grown, *more, *arrived, *again, *numbered(*hourly(5))]
    kept.backfill("1", "7", as_of="6")  # by hand: by the file
    assert_told_by_replay(kept, every, "6")
    assert not PipelineState.of(kept.ledger).overridden

    redone = line.of(a_spec(**ONE, window=window, overridden="redo", **rules))
    (said,) = [note for note in redone.advance("6").notes if "were published by run" in note]
    assert "recomputes them by the pipeline's file (overridden: redo)" in said
    assert_told_by_replay(redone, every, "6")
    assert not PipelineState.of(redone.ledger).overridden
    for one in (line, kept):
        assert_books_balance(one)


def test_a_late_record_that_arrived_after_the_run_stays_late_by_the_rules_of_its_range(
    spark, tmp_path
):
    """The next runs evaluate late records since their base again, also those after their end."""
    late = a_record("6 10:00", "1 10:10")
    rows = numbered(*hourly(*range(1, 8)), late)
    land(tmp_path, rows)
    line = Line(spark, tmp_path, a_spec(**ONE))
    line.advance("5")
    line.of(a_spec(**ONE | SIX_HOURS)).backfill(*RANGE, overrides=SIX_HOURS, reason="slow days")
    decided_late, calendar = late_of(line), slots(line, late=True)
    assert [position for position, _ in decided_late] == [rows[-1]["position"]]
    for day in ("6", "7"):
        line.advance(day)
        assert (late_of(line), slots(line, late=True)) == (decided_late, calendar)
        assert_books_balance(line)


def test_what_was_still_open_goes_by_the_file_and_a_stricter_rule_stays_strict(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(**ONE, window=TUMBLING, allowed_lateness="12h"))
    rows = numbered(*hourly(1, 2))
    land(tmp_path, rows)
    line.of(a_spec(**ONE, window=TUMBLING, allowed_lateness="0s")).backfill(
        "1", "3", overrides={"allowed_lateness": "0s"}, reason="strict"
    )
    windows = of_range(line.rows("windows"), "1", "2 22:00")
    after = numbered(a_record("3 01:00", "2 20:15"), a_record("3 02:00", "2 23:15"))
    land(tmp_path, [*after, *numbered(*hourly(3))], mode="append")
    outcome = line.advance("4")
    assert any("2024-03-03T00:00:00Z were published by run" in note for note in outcome.notes)
    assert any("they were still open at its data cut-off" in note for note in outcome.notes)
    assert of_range(line.rows("windows"), "1", "2 22:00") == windows
    assert after[0]["position"] in dict(late_of(line))  # twelve hours would have accepted it
    (last,) = of_range(line.rows("windows"), "2 23:00", "3")
    assert last["records"] == 2
    assert [
        (ms(row["slot_start"]), row["late"])
        for row in of_range(line.rows("completeness"), "2 19:00", "3")
    ][1] == (instant("2 20:00"), 1)
    assert_books_balance(line)


def test_rows_that_were_landed_again_with_others_are_late_beside_the_windows_of_before(
    spark, tmp_path
):
    line = decided(tmp_path, spark, quality__gaps="allow")
    windows = of_range(line.rows("windows"), *RANGE)
    other = numbered(*hourly(1))
    other[5] = {**other[5], "amount": 77}
    land_again(line, 1, other)
    line.advance("4")
    assert of_range(line.rows("windows"), *RANGE) == windows
    assert [position for position, _ in late_of(line)] == [other[5]["position"]]


def test_where_what_landed_since_cannot_be_told_the_range_is_recomputed_and_named(spark, tmp_path):
    line = decided(tmp_path, spark)
    rows = numbered(*hourly(1, 2, 3), a_record("2 10:30", "2 10:15"))
    land_again(line, 2, [row for row in rows if row["arrived_on"].day == 2])
    landing_of(line).vacuum(0, dry_run=False, enforce_retention_duration=False)
    (said,) = [note for note in line.advance("4").notes if "were published by run" in note]
    assert "(which of their records have landed since is not known any more)" in said
    assert_told_by_replay(line, rows, "4")


# ----------------------------------------------------------------------------------- two sources

ONE_CHANNEL = {name: SIDE[name] for name in SIDE if not name.startswith("channel")}
BOUND = {"strategy": "bounded_out_of_orderness", "bound": "30m"}


def a_join(content: dict[str, Any], **changes: Any) -> Any:
    sides = {
        name: ONE_CHANNEL | {"table": f"landing/{name}", "watermark": BOUND}
        for name in ("left", "right")
    }
    return parse_spec(content | {"sources": sides} | changes, origin="both.yaml")


def decided_of_two(spark, tmp_path, content: dict[str, Any]) -> Line:
    """Three days of both by the file; then two of them by a lateness of six hours."""
    line = Line(spark, tmp_path, a_join(content), audited=True)
    for name in ("left", "right"):
        land(tmp_path, numbered(*hourly(1, 2, 3)), table=f"landing/{name}")
    line.advance("4")
    line.of(a_join(content, **SIX_HOURS)).backfill(*RANGE, overrides=SIX_HOURS, reason="slow")
    return line


@pytest.mark.parametrize(
    ("content", "end"),
    [(COGROUP, "2 08:00"), (PAIRED, "2 08:00"), (COGROUP | {"window": SESSIONS}, "2 07:35")],
    ids=["cogroup", "window join", "sessions"],
)
def test_windows_over_two_sources_are_kept_and_what_has_come_for_them_is_late(
    spark, tmp_path, content, end
):
    line = decided_of_two(spark, tmp_path, content)
    tables = ("windows", "pairs") if content is PAIRED else ("windows",)
    published = {name: line.rows(name) for name in tables}
    calendar = slots(line, late=False)
    assert not late_of(line)  # six hours accept what comes four hours late

    grown, arrived = a_record("2 10:30", "2 10:15"), a_record("4 05:00", "2 07:15")
    land(tmp_path, numbered(grown, *hourly(4)), mode="append", table="landing/left")
    land(tmp_path, numbered(arrived, *hourly(4)), mode="append", table="landing/right")
    outcome = line.advance("5")
    assert any("stay as run" in note and "overridden: keep" in note for note in outcome.notes)
    assert "windows kept from 2024-03-01T00:00:00Z: 2 late records arrived since" in outcome.notes
    for name, rows in published.items():
        assert of_range(line.rows(name), *RANGE) == of_range(rows, *RANGE)
    assert slots(line, late=False) == calendar
    assert sum(slot["late"] for slot in slots(line, late=True)) == 2
    late = {row["input"]: row["late_by_ms"] for row in of_range(line.rows("quarantine"), *RANGE)}
    watermark_ms = instant("4 04:10") - 30 * 60_000 - 1
    late_by_ms = watermark_ms - instant(end) + 2 - 6 * 3_600_000
    assert late == {"left": 1, "right": late_by_ms}
    assert len(PipelineState.of(line.ledger).overridden) == 1
    store = line.lake.pipeline(line.spec.pipeline)
    books = books_of_all(line.spec, store, PipelineState.of(line.ledger))
    assert [book.statement for book in books if not book.balanced] == []


def test_where_one_side_as_it_was_is_missing_the_range_is_recomputed_and_named(
    spark, tmp_path, monkeypatch
):
    line = decided_of_two(spark, tmp_path, COGROUP)
    land(tmp_path, numbered(a_record("2 10:30", "2 10:15")), mode="append", table="landing/left")
    monkeypatch.setattr(
        "strandline.lake.landing.log.is_whole", lambda then, now: "right" in then.table_uri
    )
    assert JoinedLog.joined(line.lake, line.spec).readable_at(0) is None
    (said,) = [note for note in line.advance("4").notes if "were published by run" in note]
    assert "(which of their records have landed since is not known any more)" in said


def land_left(line: Line, rows: list[dict[str, Any]], of_two: bool) -> None:
    land(
        line.folder,
        numbered(*rows),
        mode="append",
        table=f"landing/{'left' if of_two else 'meter'}",
    )


@pytest.mark.parametrize("of_two", [False, True], ids=["one source", "cogroup"])
def test_a_late_record_goes_with_its_row_that_lands_again_elsewhere(spark, tmp_path, of_two):
    line = decided_of_two(spark, tmp_path, COGROUP) if of_two else decided(tmp_path, spark)
    late, other = a_record("4 05:00", "2 07:15"), a_record("4 06:00", "2 08:15")
    moved, edited = late | {"happened_at": at("4 04:50")}, other | {"amount": 77}
    before = slots(line, late=True)
    land_left(line, [*hourly(4), late, other], of_two)
    line.advance("5")
    assert [late_by > 0 for _, late_by in late_of(line)] == [True, True]
    landing = tmp_path / ("landing/left" if of_two else "landing/meter")

    def again(*rows: dict[str, Any]) -> None:
        DeltaTable(str(landing)).delete("arrived_on = '2024-03-04'")
        land_left(line, [*hourly(4), *rows], of_two)
        line.advance("5", allow_removals=True)

    again(moved, edited)
    assert [row["amount"] for row in of_range(line.rows("quarantine"), *RANGE)] == [77]
    again(moved, other)
    assert [row["amount"] for row in of_range(line.rows("quarantine"), *RANGE)] == [1]
    assert sum(slot["late"] for slot in slots(line, late=True)) == 1
    again(moved, a_record("4 06:00", "4 05:15"))
    assert not late_of(line)
    assert slots(line, late=True) == before
    assert_books_balance(line)


@pytest.mark.parametrize("was", ["in another window", "malformed"])
def test_a_record_that_moves_into_it_is_late_also_where_its_id_has_landed_before(
    spark, tmp_path, was
):
    moving = numbered(a_record("3 05:00", "3 04:50"))[0]
    first = moving if was == "in another window" else moving | {"happened_at": None}
    line = Line(spark, tmp_path, a_spec(**ONE, window=TUMBLING, source__id=["position"]))
    others = numbered(*hourly(1, 2, 3))
    land(tmp_path, [*others, first])
    line.advance("4")
    wider = line.of(a_spec(**ONE, window=TUMBLING, source__id=["position"], **SIX_HOURS))
    wider.backfill(*RANGE, overrides=SIX_HOURS, reason="a slow day")
    land_again(
        line,
        3,
        [
            *(row for row in others if row["arrived_on"].day == 3),
            moving | {"happened_at": at("2 10:10")},
        ],
    )
    line.advance("4", allow_removals=True)
    assert [position for position, _ in late_of(line)] == [moving["position"]]
    assert_books_balance(line)
