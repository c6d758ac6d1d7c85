"""Runs of windows that let records go: `windows` keeps the last firing, all records are counted."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from lakes import Line, a_spec, a_week, ms
from replayed import assert_told_by_replay, by_days, published, told_by_replay

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
def test_days_leave_what_a_replay_leaves_and_the_calendar_counts_what_windows_let_go(
    spark, tmp_path, rules
):
    rows = a_week(days=4)
    line = by_days(Line(spark, tmp_path, a_spec(**rules)), rows, "3", "5")
    assert_told_by_replay(line, rows, "5")
    all_held = told_by_replay(a_spec(window=rules["window"]), rows, "5")
    assert published(line)["completeness"] == all_held["completeness"]

    fired: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for firing in sorted(line.rows("firings"), key=lambda row: row["firing"]):
        fired[which(firing)].append(firing)
    assert max(map(len, fired.values())) > 1
    last = {window: content(firings[-1]) for window, firings in fired.items()}
    assert {which(row): content(row) for row in line.rows("windows")} == last
    held = {window: (total, records) for window, (records, total, _), *_ in all_held["windows"]}
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
    return ms(row["window_start"]), ms(row["window_end"]), row["device"]
