"""The report's plot of revisions: published results that later runs have changed, by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

from strandline.quality.report.figure import Figure, Series, TableBehind, bars

_RESULTS = ("windows", "pairs")
_Diff: TypeAlias = Mapping[str, Mapping[str, int]]
"""The number of rows by table and operation."""


def revisions_plot(runs: Sequence[Mapping[str, Any]]) -> Figure | None:
    """The plot of updated and removed results by the day of the run; None if there are none."""
    updated, removed, published = Counter[date](), Counter[date](), Counter[date]()
    for day, diff in _published(runs):
        updated[day] += _results_in(diff, "update")
        removed[day] += _results_in(diff, "delete")
        published[day] += 1
    if not updated.total() and not removed.total():
        return None
    days = sorted(published)
    rows = [(day.isoformat(), updated[day], removed[day], published[day]) for day in days]
    table = TableBehind.of(("day", "results updated", "results removed", "runs"), rows)
    parts = [
        (Series("updated", "colour-0"), [updated[day] for day in days]),
        (Series("removed", "unusual"), [removed[day] for day in days]),
    ]
    return bars("results that runs have changed, by day", days, parts, unit="results", table=table)


def _published(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[date, _Diff]]:
    """The day and the diff of each published run; runs without either are left out."""
    for run in runs:
        if run["status"] == "published" and run["diff_published"] and run["ended"]:
            yield date.fromisoformat(run["ended"][:10]), run["diff"]


def _results_in(diff: _Diff, operation: str) -> int:
    return sum(int(diff[name].get(operation, 0)) for name in _RESULTS if name in diff)
