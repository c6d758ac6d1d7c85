"""Runs of windows that purge: `windows` keeps the last firing, and no record goes uncounted."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from lakes import Line, a_spec, a_week, land

pytestmark = pytest.mark.spark

PURGING = {"event_time": {}, "purging": True}
SLIDING = {"sliding": "2h", "every": "1h"}


@pytest.mark.parametrize("window", [{"tumbling": "1h"}, SLIDING], ids=["tumbling", "sliding"])
def test_days_leave_what_one_go_leaves_and_firings_add_up_to_the_windows_that_do_not_purge(
    spark, tmp_path, window
):
    rows = a_week(days=4)
    plain = a_spec(window=window)
    purging = a_spec(window=window, trigger=PURGING, firings=True)
    by_days, at_once, all_held = (
        Line(spark, tmp_path / name, spec)
        for name, spec in (("days", purging), ("once", purging), ("plain", plain))
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
    assert {which(row): row["total"] for row in at_once.rows("windows")} == {
        window: firings[-1]["total"] for window, firings in fired.items()
    }
    assert {which(row): (row["total"], row["records"]) for row in all_held.rows("windows")} == {
        window: (sum(f["total"] for f in firings), sum(f["records"] for f in firings))
        for window, firings in fired.items()
    }
    assert Counter(f["supersedes"] for firings in fired.values() for f in firings).keys() == {None}


def which(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["device"], row["window_start"], row["window_end"]


def without_fingerprint(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "spec_fingerprint"} for row in rows]
