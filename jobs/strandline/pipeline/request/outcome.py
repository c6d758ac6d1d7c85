"""The outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from strandline.lake.ledger.entry import Entry
from strandline.model.books import Book
from strandline.model.intervals import TimeRange, text_or_none
from strandline.quality.findings.check import Finding, findings_in

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass
class Outcome:
    """The outcome of a run, and of what it rebuilds first; `to_json` is its form for machines."""

    pipeline: str
    kind: str
    dry_run: bool = False
    run_id: str = ""
    status: str = "started"
    range: TimeRange | None = None
    horizon_ms: int | None = None
    frontier_ms: int | None = None
    observed_days: list[str] = field(default_factory=list)
    to_recompute: list[str] = field(default_factory=list)
    evaluated_since_ms: int | None = None
    missing: list[str] = field(default_factory=list)
    read: Mapping[str, Any] = field(default_factory=dict)
    books: list[Book] = field(default_factory=list)
    malformed: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    violations: int | None = None
    slots: Mapping[str, int] = field(default_factory=dict)
    gaps: int = 0
    gaps_around: ds.Expression | None = None
    diff: dict[str, dict[str, int]] = field(default_factory=dict)
    preview: Mapping[str, Any] | None = None
    took_before: Mapping[str, Any] | None = None
    audit: list[dict[str, Any]] = field(default_factory=list)
    findings_before: Sequence[Finding] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    dates: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    completed: Sequence[Sequence[str]] = ()
    notes: list[str] = field(default_factory=list)
    repeats: str | None = None
    rebuilt_first: Sequence[Outcome] = ()
    changed_first: Sequence[str] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: str, step: Entry) -> Outcome:
        """The outcome of a run by a step of it, as far as the step says it."""
        return cls(
            pipeline=pipeline,
            kind=step.kind,
            run_id=step.run_id,
            status=step.step,
            range=step.range,
            horizon_ms=step.horizon_ms,
            frontier_ms=step.frontier_ms,
            missing=[str(day) for day in step.lost or ()],
            books=[*(step.books or ())],
            violations=step.violations,
            gaps=step.gaps or 0,
            diff={name: dict(counts) for name, counts in (step.diff or {}).items()},
            audit=step.audit or [],
            versions=step.versions or {},
            dates=step.dates or {},
        )

    @property
    def findings(self) -> list[Finding]:
        """The findings of the run's audit, and of what it rebuilds first or repeats."""
        first = (finding for one in self.rebuilt_first for finding in one.findings)
        return [*first, *findings_in(self.audit, self.run_id), *self.findings_before]

    @property
    def changed(self) -> bool:
        """Whether anything published differs from before."""
        tables = [self.diff, *(one.diff for one in self.rebuilt_first)]
        return any(any(counts.values()) for diff in tables for counts in diff.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "pipeline": self.pipeline,
            "kind": self.kind,
            "dry_run": self.dry_run,
            "run_id": self.run_id,
            "status": self.status,
            "range": None if self.range is None else self.range.to_json(),
            "horizon": text_or_none(self.horizon_ms),
            "frontier": text_or_none(self.frontier_ms),
            "observed_days": self.observed_days,
            "owed": self.to_recompute,
            "judged_from": text_or_none(self.evaluated_since_ms),
            "lost": self.missing,
            "read": dict(self.read),
            "books": [book.to_json() for book in self.books],
            "malformed": dict(self.malformed),
            "quarantined": dict(self.quarantined),
            "violations": self.violations,
            "slots": dict(self.slots),
            "gaps": self.gaps,
            "changed": self.changed,
            "diff": self.diff,
            "preview": self.preview,
            "took_before": self.took_before,
            "audit": self.audit,
            "findings": [finding.to_json() for finding in self.findings],
            "versions": dict(self.versions),
            "dates": dict(self.dates),
            "completed": list(self.completed),
            "notes": self.notes,
            "repeats": self.repeats,
            "rebuilt_first": [one.to_json() for one in self.rebuilt_first],
            "changed_first": list(self.changed_first),
            "seconds": self.seconds,
        }
