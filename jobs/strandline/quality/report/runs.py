"""The report's list of runs, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strandline.model.intervals import LEAST_INSTANT_MS, datetime_of
from strandline.quality.audit.result import AuditResult
from strandline.quality.figures import NOTHING
from strandline.quality.report.format import day_or_instant, instant
from strandline.visible import number_of

MOST_RUNS = 40
"""The number of listed runs; the last published run is listed in addition."""
_OF_ALL = day_or_instant(datetime_of(LEAST_INSTANT_MS))
"""The start of the range of a run over all windows."""
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


@dataclass(frozen=True)
class RunLine:
    """A run, as `strandline runs show` has it.

    Attributes:
        outcome: its state.
        tone: `good`, `bad`, or `open` if it is neither published, rejected nor failed, or reverted.
        reverted: whether another run has reverted it.
        engine: its engine with the version; empty for runs of earlier versions.
        rebuilt: the start and end of its range; empty if it has no window.
        changes: the changed rows of each table; empty if there was no diff.
        changes_are: words before the changes, if the tables do not have them, or perhaps in part.
        accepted_loss: the reason why it accepts missing rows; empty: it does not.
    """

    run_id: str
    outcome: str
    tone: str
    reverted: bool
    at: str
    kind: str
    rebuilt: tuple[str, ...]
    horizon: str
    closed: bool
    engine: str
    changes: Mapping[str, str]
    changes_are: str
    audit: tuple[AuditResult, ...]
    requested_by: str
    reason: str
    accepted_loss: str
    message: str

    @property
    def failures(self) -> tuple[AuditResult, ...]:
        """The failed expectations."""
        return tuple(result for result in self.audit if not result.success)

    @property
    def verdict(self) -> str:
        """The number of failed expectations by severity: `1 critical finding; 2 warnings`.

        A person has accepted the critical ones of a published run, for a reason.
        """
        counts = Counter(result.severity for result in self.failures)
        parts = {one: number_of(counts[one], noun) for one, noun in _SEVERITIES.items()}
        if self.outcome == "published":
            parts["critical"] += ", accepted" + (f": {self.reason}" if self.reason else "")
        return "; ".join(text for severity, text in parts.items() if counts[severity])


def listed_runs(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The newest of some runs, and the last published one.

    Args:
        runs: documents as of `strandline runs`, the newest first.
    """
    published = [run for run in runs[MOST_RUNS:] if run["status"] == "published"]
    has_one = any(run["status"] == "published" for run in runs[:MOST_RUNS])
    return [*runs[:MOST_RUNS], *([] if has_one else published[:1])]


def run_lines(runs: Sequence[Mapping[str, Any]]) -> list[RunLine]:
    """The lines of the listed runs (`listed_runs`), which are documents of `runs show`."""
    return [_line(run) for run in listed_runs(runs)]


def runs_left_out(runs: Sequence[Mapping[str, Any]]) -> int:
    """The number of older runs that are not listed."""
    return max(len(runs) - MOST_RUNS, 0)


def _line(run: Mapping[str, Any]) -> RunLine:
    return RunLine(
        run_id=run["run_id"],
        outcome=run["status"],
        tone="open" if run["reverted_by"] else _OUTCOMES.get(run["status"], "open"),
        reverted=run["reverted_by"] is not None,
        at=instant(_parsed(run["ended"])),
        kind=run["kind"],
        rebuilt=_rebuilt(run["start"], run["end"]),
        horizon=day_or_instant(_parsed(run["horizon"])),
        closed=bool(run["closed"]),
        engine=" ".join(run[name] for name in _ENGINE if run[name]),
        changes=dict(_changes(run["diff"] or {})),
        changes_are={True: "", False: "not published: ", None: "planned: "}[run["diff_published"]],
        audit=tuple(AuditResult(**one) for one in run["audit"] or ()),
        requested_by=run["requested_by"] or "",
        reason=run["reason"] or "",
        accepted_loss=run["accepted_loss"] or "",
        message=run["message"] or "",
    )


def _rebuilt(*edges: str | None) -> tuple[str, ...]:
    """The start and end of a run's range as text; empty if it has none, or an empty one."""
    start, end = (day_or_instant(_parsed(edge)) for edge in edges)
    if NOTHING in {start, end} or start == end:
        return ()
    return "the first" if start == _OF_ALL else start, end


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
