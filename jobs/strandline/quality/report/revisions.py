"""What runs have changed of what was published before, by the day on which they did."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pandas as pd

from strandline.quality.report.figure import Figure, Series, TableBehind, bars

_RESULTS = ("windows", "pairs")


def revisions_plot(runs: pd.DataFrame) -> Figure | None:
    """Results that published runs have updated or removed, by day; None: none has."""
    changed: dict[date, list[int]] = {}
    for update, delete, day in _published(runs):
        of_day = changed.setdefault(day, [0, 0, 0])
        of_day[0] += update
        of_day[1] += delete
        of_day[2] += 1
    if not any(update or delete for update, delete, _ in changed.values()):
        return None
    days = sorted(changed)
    rows = [(day.isoformat(), *changed[day]) for day in days]
    table = TableBehind.of(("day", "results updated", "results removed", "runs"), rows)
    parts = [
        (Series("updated", "colour-0"), [changed[day][0] for day in days]),
        (Series("removed", "unusual"), [changed[day][1] for day in days]),
    ]
    return bars("results that runs have changed, by day", days, parts, unit="results", table=table)


def _published(runs: pd.DataFrame) -> list[tuple[int, int, date]]:
    """Of each run that has published: updated and removed results, and the day."""
    found = []
    for _, steps in runs.groupby(["run_id", "attempt"]):
        ends = steps[steps["step"] == "published"]
        known = steps["diff"].dropna()
        if not len(ends) or not len(known) or pd.isna(ends["written_at"].iloc[-1]):
            continue
        diff: dict[str, Any] = json.loads(known.iloc[-1] or "{}")
        counts = [diff[name] for name in _RESULTS if name in diff]
        update, delete = (
            sum(int(one.get(kind, 0)) for one in counts) for kind in ("update", "delete")
        )
        found.append((update, delete, ends["written_at"].iloc[-1].date()))
    return found
