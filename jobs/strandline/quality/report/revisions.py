"""The report's plot of revisions: published results that later runs have changed, by day."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pandas as pd

from strandline.quality.report.figure import Figure, Series, TableBehind, bars

_RESULTS = ("windows", "pairs")


def revisions_plot(runs: pd.DataFrame) -> Figure | None:
    """The plot of updated and removed results by the day of the run; None if there are none."""
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
    """The day, and the updated and removed results, of each published run."""
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
