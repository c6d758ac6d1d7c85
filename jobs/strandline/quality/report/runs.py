"""The report's list of runs, the newest first, and the plot of what they have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeAlias

from strandline.model.intervals import LEAST_INSTANT_MS, datetime_of
from strandline.quality.figures import NOTHING, day_or_instant, instant
from strandline.quality.progress import cutoff
from strandline.quality.report.figure import Figure, Series, TableBehind, bars
from strandline.visible import number_of

MOST_RUNS = 40
"""The number of listed runs; the last published run is listed in addition."""
_FIRST = day_or_instant(datetime_of(LEAST_INSTANT_MS))
"""The first of all instants, such as the start of a run over all windows."""
_ENGINE = ("engine", "engine_version")
_OUTCOMES = {
    "published": "good",
    "repeated": "good",
    "already_processed": "good",
    "rejected": "bad",
    "failed": "bad",
    "dead": "bad",
}
_SEVERITIES = {"critical": "critical finding", "warning": "warning", "info": "info"}


def listed_runs(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The newest of some runs, and the last published one.

    Args:
        runs: documents as of `strandline runs`, the newest first.
    """
    published = [run for run in runs[MOST_RUNS:] if run["status"] == "published"]
    has_one = any(run["status"] == "published" for run in runs[:MOST_RUNS])
    return [*runs[:MOST_RUNS], *([] if has_one else published[:1])]


def run_lines(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The listed runs (`listed_runs`) as the page shows them: documents of `runs show` with texts.

    - `tone`: `good`, `bad`, or `open` if a run is neither published, rejected nor failed, or is
      reverted.
    - `at`, `horizon` and `engine` as text.
    - `rebuilt`: the start and end of its range; empty if it has no window.
    - `changes`: the changed rows of each table; empty if there was no diff.
    - `changes_are`: words before the changes, if the tables do not have them, or perhaps in part.
    - `failures`: the failed expectations; `verdict`: their number by severity.
    """
    return [_line(run) for run in listed_runs(runs)]


def runs_left_out(runs: Sequence[Mapping[str, Any]]) -> int:
    """The number of older runs that are not listed."""
    return max(len(runs) - MOST_RUNS, 0)


def _line(run: Mapping[str, Any]) -> dict[str, Any]:
    failures = [result for result in run["audit"] or () if not result["success"]]
    return {
        **run,
        "tone": "open" if run["reverted_by"] else _OUTCOMES.get(run["status"], "open"),
        "at": instant(_parsed(run["ended"])),
        "rebuilt": _rebuilt(run["start"], run["end"]),
        "horizon": cutoff(run["horizon"], _shown),
        "engine": " ".join(run[name] for name in _ENGINE if run[name]),
        "changes": dict(_changes(run["diff"] or {})),
        "changes_are": {True: "", False: "not published: ", None: "planned: "}[
            run["diff_published"]
        ],
        "failures": failures,
        "verdict": _verdict(run, failures),
    }


def _verdict(run: Mapping[str, Any], failures: Sequence[Mapping[str, Any]]) -> str:
    """The number of failed expectations by severity: `1 critical finding; 2 warnings`.

    A person has accepted the critical ones of a published run, for a reason.
    """
    counts = Counter(result["severity"] for result in failures)
    parts = {one: number_of(counts[one], noun) for one, noun in _SEVERITIES.items()}
    if run["status"] == "published":
        parts["critical"] += ", accepted" + (f": {run['reason']}" if run["reason"] else "")
    return "; ".join(text for severity, text in parts.items() if counts[severity])


def _rebuilt(*edges: str | None) -> tuple[str, ...]:
    """The start and end of a run's range as text; empty if it has none, or an empty one."""
    start, end = map(_shown, edges)
    if NOTHING in {start, end} or start == end:
        return ()
    return "the first one" if start == _FIRST else start, end


def _shown(instant: str | None) -> str:
    return day_or_instant(_parsed(instant))


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _changes(diff: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str]]:
    for table, counts in diff.items():
        parts = [
            f"{sign}{counts[what]:,}"
            for what, sign in (("insert", "+"), ("update", "~"), ("delete", "−"))
            if counts.get(what)
        ]
        yield table, " ".join(parts)


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
