"""The parts of a run's outcome that no step of the ledger has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.staged_diff import Change
from strandline.model.books import Book
from strandline.pipeline.audit.arrivals import RunArrivals
from strandline.pipeline.audit.verdict import Verdict
from strandline.pipeline.diff.preview import preview_of
from strandline.pipeline.observe.commit_observation import Malformed, malformed_diff
from strandline.pipeline.plan.earlier_durations import records_of, similar_runs
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request

_WOULD_BE_REJECTED = "would be rejected"
"""The status of a dry run whose audit fails."""


@dataclass(frozen=True)
class RebuiltRange:
    """The rebuilt range of a run, its audit, and its differences from the published tables.

    Attributes:
        staged: the staged parts.
        malformed: the malformed rows of the observed days.
        verdict: the result of all checks.
        changes: the differences from the published tables.
        preview: see `preview_to_show`.
    """

    staged: Staged
    malformed: Malformed
    verdict: Verdict
    changes: Sequence[Change]
    preview: Mapping[str, Any] | None = None


def of_run(ctx: Context, arrivals: RunArrivals, rebuilt: RebuiltRange) -> dict[str, Any]:
    """The fields of an outcome that describe what a run has read, observed and rebuilt.

    `slots` are the numbers of slots by state, without gaps.
    """
    planned = arrivals.planned
    observation, plan, calendar = planned.observation, planned.plan, rebuilt.staged.calendar
    gaps = rebuilt.staged.gaps
    states = Counter(calendar["state"][~calendar["gap"].astype(bool)].tolist())
    return {
        "to_recompute": [str(day) for day in plan.to_recompute],
        "evaluated_since_ms": plan.scope.older_since_ms,
        "missing": [str(day) for day in sorted(observation.status.missing)],
        "observed_days": [
            str(day) for day in (*observation.new_days, *observation.partial_days) if day
        ],
        "malformed": arrivals.malformed_by_reason,
        "read": planned.read(ctx),
        "slots": {str(state): count for state, count in states.most_common()},
        "gaps_around": gaps.again if len(gaps.edges) else None,
        "preview": rebuilt.preview,
    }


def status_after(request: Request, rebuilt: RebuiltRange) -> str:
    """The status of a run that has ended without an error."""
    if request.dry_run:
        return _WOULD_BE_REJECTED if rebuilt.verdict.audit.blocked else "previewed"
    return "prepared" if request.prepare else "published"


def with_rebuilt_first(outcome: Outcome, before: Sequence[Outcome]) -> Outcome:
    """The outcome of a dry run, with the outcomes of the rebuilds that a real run would do first.

    A real run would end with the first rejected one of them.
    """
    rejected = any(one.status == _WOULD_BE_REJECTED for one in before)
    status = _WOULD_BE_REJECTED if rejected else outcome.status
    return replace(outcome, rebuilt_first=before, status=status)


def preview_to_show(
    ctx: Context, request: Request, planned: PlannedRun, rebuilt: RebuiltRange
) -> Mapping[str, Any] | None:
    """The preview of a dry or prepared run; None: the run publishes at once.

    For a dry run it includes the malformed rows that observing would quarantine; other runs have
    already done so, and runs with overridden settings never do.
    """
    if not request.is_shown_first:
        return None
    observation, found = planned.observation, None
    if ctx.dry_run and not request.overrides:
        found = malformed_diff(ctx, rebuilt.malformed.rows, observation.new_days, observation)
    observed, within = None if found is None else found.rows, planned.plan.scope.windows
    return preview_of(ctx, rebuilt.changes, within, observed, request.preview_rows)


def duration_to_show(
    request: Request, state: PipelineState, books: Sequence[Book]
) -> Mapping[str, Any] | None:
    """The duration of earlier similar runs, for previews; None: the run publishes at once."""
    if not request.is_shown_first:
        return None
    return similar_runs(state, request.kind, records_of(books))
