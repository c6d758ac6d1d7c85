"""Runs of windows that let records go: `windows` keeps the last firing, all records are counted."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from lakes import Line, a_spec, a_week, land

pytestmark = pytest.mark.spark

PURGING = {
    "window": {"tumbling": "1h"},
    "trigger": {"event_time": {}, "purging": True},
    "firings": True,
}
EVICTING = {
    "window": {"sliding": "2h", "every": "1h"},
    "trigger": {"continuous": "25m"},
    "evictor": {"time": "40m"},
    "firings": True,
}


@pytest.mark.parametrize("rules", [PURGING, EVICTING], ids=["purging", "early, evicting"])
def test_days_leave_what_one_go_leaves_and_the_calendar_counts_what_windows_let_go(
    spark, tmp_path, rules
):
    rows, plain = a_week(days=4), {"window": rules["window"]}
    by_days, at_once, all_held = (
        Line(spark, tmp_path / name, a_spec(**asked))
        for name, asked in (("days", rules), ("once", rules), ("plain", plain))
    )
    for line in (by_days, at_once, all_held):
        land(line.folder, rows)
        if line is by_days:
            line.advance("3")
        line.advance("5")

    assert by_days.published() == at_once.published()
    assert by_days.rows("firings") == at_once.rows("firings")
    slots = [without_fingerprint(line.rows("completeness")) for line in (at_once, all_held)]
    assert slots[0] == slots[1]

    fired: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for firing in sorted(at_once.rows("firings"), key=lambda row: row["firing"]):
        fired[which(firing)].append(firing)
    assert max(map(len, fired.values())) > 1
    last = {window: content(firings[-1]) for window, firings in fired.items()}
    assert {which(row): content(row) for row in at_once.rows("windows")} == last
    held = {which(row): content(row) for row in all_held.rows("windows")}
    early = last.keys() - held.keys()  # those have fired, and not ended
    assert held.keys() <= last.keys()
    assert held != {window: row for window, row in last.items() if window not in early}
    timings = {firing["timing"] for of in fired.values() for firing in of}
    assert timings >= {"ON_TIME", "LATE"}
    assert bool(early) == ("EARLY" in timings) == (rules is EVICTING)
    if rules is PURGING:
        sums = {w: tuple(map(sum, zip(*map(content, of), strict=True))) for w, of in fired.items()}
        assert sums == held
        assert {f["supersedes"] for of in fired.values() for f in of} == {None}


def content(row: dict[str, Any]) -> tuple[int, int]:
    return row["total"], row["records"]


def which(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["device"], row["window_start"], row["window_end"]


def without_fingerprint(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "spec_fingerprint"} for row in rows]
