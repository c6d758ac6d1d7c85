"""The report's list of runs, the newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from strandline.model.intervals import LEAST_INSTANT_MS, datetime_of
from strandline.quality.audit.result import AuditResult
from strandline.quality.figures import NOTHING
from strandline.quality.report.format import day_or_instant, instant

MOST_RUNS = 40
"""The number of listed runs; the last published run is listed in addition."""
_ATTEMPT = ["run_id", "attempt"]
_OF_ALL = day_or_instant(datetime_of(LEAST_INSTANT_MS))
"""The start of the range of a run over all windows."""
_ENGINE = ("engine", "engine_version")
_OUTCOMES = {
    "published": "good",
    "repeated": "good",
    "already_processed": "good",
    "rejected": "bad",
    "failed": "bad",
}


@dataclass(frozen=True)
class RunLine:
    """One attempt of a run, with the last value of each field in its steps.

    Attributes:
        outcome: its last step.
        tone: `good`, `bad`, or `open` while it is neither published, rejected nor failed.
        engine: its engine with the version; empty for runs of earlier versions.
        rebuilt: the start and end of its range; empty if it has no window.
        changes: the changed rows of each table; empty if there was no diff.
    """

    run_id: str
    attempt: int
    outcome: str
    tone: str
    at: str
    kind: str
    rebuilt: tuple[str, ...]
    horizon: str
    frontier: str
    closed: bool
    engine: str
    changes: Mapping[str, str]
    audit: tuple[AuditResult, ...]
    requested_by: str
    reason: str
    message: str

    @property
    def failures(self) -> tuple[AuditResult, ...]:
        """The failed expectations."""
        return tuple(result for result in self.audit if not result.success)


def run_lines(runs: pd.DataFrame) -> list[RunLine]:
    """The last runs of a ledger, the latest step first, and the last published run."""
    if runs.empty:
        return []
    steps = runs.sort_values("position").set_index(_ATTEMPT, drop=False)
    newest_first = steps.index[::-1].unique()
    published = steps.index[steps["step"] == "published"][-1:]
    chosen = newest_first[:MOST_RUNS].union(published, sort=False)
    return [_line(steps.loc[[attempt]]) for attempt in chosen]


def runs_left_out(runs: pd.DataFrame) -> int:
    """The number of older runs that are not listed."""
    return max(len(runs[_ATTEMPT].drop_duplicates()) - MOST_RUNS, 0)


def _line(steps: pd.DataFrame) -> RunLine:
    # the last value of each field in any step
    fields = {name: _last(steps[name]) for name in steps.columns}
    outcome = str(steps["step"].iloc[-1])
    return RunLine(
        run_id=str(fields["run_id"]),
        attempt=int(fields["attempt"]),
        outcome=outcome,
        tone=_OUTCOMES.get(outcome, "open"),
        at=instant(fields.get("written_at")),
        kind=_text(fields.get("kind")),
        rebuilt=_rebuilt(*(fields.get(f"range_{edge}") for edge in ("start", "end"))),
        horizon=day_or_instant(fields.get("horizon")),
        frontier=day_or_instant(fields.get("frontier")),
        closed=bool(fields.get("closed")),
        engine=" ".join(_text(fields[name]) for name in _ENGINE if fields.get(name) is not None),
        changes=dict(_changes(fields.get("diff"))),
        audit=tuple(_audit(fields.get("audit"))),
        requested_by=_text(fields.get("requested_by")),
        reason=_text(fields.get("reason")),
        message=_text(fields.get("message")),
    )


def _rebuilt(*edges: Any) -> tuple[str, ...]:
    """The start and end of a run's range as text; empty if it has none, or an empty one."""
    start, end = map(day_or_instant, edges)
    if NOTHING in {start, end} or start == end:
        return ()
    return "the first" if start == _OF_ALL else start, end


def _last(column: pd.Series[Any]) -> Any:
    values = column.dropna()
    return values.iloc[-1] if len(values) else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _changes(diff: Any) -> Iterator[tuple[str, str]]:
    for table, counts in (_parsed(diff) or {}).items():
        parts = [
            f"{sign}{counts[what]:,}"
            for what, sign in (("insert", "+"), ("update", "~"), ("delete", "−"))
            if counts.get(what)
        ]
        yield table, " ".join(parts)


def _audit(results: Any) -> Iterator[AuditResult]:
    for one in _parsed(results) or ():
        yield AuditResult(**one)


def _parsed(column: Any) -> Any:
    return json.loads(column) if isinstance(column, str) and column else None
