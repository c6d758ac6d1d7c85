"""audit: what is expected of a staged run; one that does not meet it publishes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strandline.errors import AuditFailedError
from strandline.model.books import Book
from strandline.pipeline.context import Context
from strandline.pipeline.diff import Change
from strandline.pipeline.journal import Journal
from strandline.pipeline.outlook import Outlook
from strandline.pipeline.rebuild import Staged
from strandline.pipeline.removals import may_shrink, removals_of
from strandline.pipeline.request import Request
from strandline.quality.audit.result import AuditResult

Results = list[dict[str, Any]]
"""What each expectation said, as plain values."""


def judge(
    ctx: Context, journal: Journal, staged: Staged, books: Sequence[Book]
) -> tuple[Results, bool]:
    """Hold what is staged against every expectation; it is in the ledger before this returns.

    Returns:
        What each said, and whether a run is rejected by it: one that is no dry run is so at once.

    Raises:
        AuditFailedError: it is.
    """
    from strandline.quality.audit.run import audit  # noqa: PLC0415 - takes seconds to import

    result = audit(
        ctx.spec,
        windows=staged.windows,
        completeness=staged.calendar,
        books=books,
        slots_expected=staged.slots_expected,
        gaps=staged.gaps,
        late=staged.late,
        accepted=staged.accepted,
        run_id=ctx.run_id,
        # given none, Great Expectations takes it from the run id, where it looks like a date
        audited_at=datetime.now(UTC),
        context_folder=ctx.validations_folder,
    )
    said = result.to_json()
    journal.know(audit=said, gaps=staged.gaps, books=[book.to_json() for book in books])
    journal.write("audited")
    if result.blocked:
        see = f"see strandline runs show {ctx.spec.pipeline} {ctx.run_id}"
        _reject(ctx, journal, result.failures, see)
    return said, result.blocked


def judge_removals(
    ctx: Context,
    request: Request,
    journal: Journal,
    outlook: Outlook,
    staged: Staged,
    changes: Sequence[Change],
) -> tuple[Results, bool]:
    """A range that shrinks is a question: is it meant?

    Returns:
        What was said, which is nothing where none shrinks, or it may; and as `judge`.

    Raises:
        AuditFailedError: more goes than may.
    """
    from strandline.quality.audit.run import audit_removals  # noqa: PLC0415 - takes seconds

    within, limit = outlook.plan.scope.windows, ctx.spec.quality.max_removed_share
    if limit is None or may_shrink(request, outlook.entries, within, outlook.horizon_ms):
        return [], False
    (windows,) = (change for change in changes if change.target.name == "windows")
    removals = removals_of(ctx, windows, staged.windows, within)
    if removals is None:
        return [], False
    result = audit_removals(
        removals.removed,
        removals.published,
        max_share=limit,
        run_id=ctx.run_id,
        audited_at=datetime.now(UTC),
    )
    said = [asdict(result)]
    journal.know(audit=[*(journal.entry.audit or ()), *said])
    if not result.success:
        _reject(
            ctx,
            journal,
            [result],
            "find out where their records are; if they are to go, say --allow-removals",
        )
    return said, not result.success


def _reject(ctx: Context, journal: Journal, failures: Sequence[AuditResult], way_out: str) -> None:
    """Publish nothing, and say why; a dry run goes on, to show what it would change."""
    if ctx.dry_run:
        return
    what = "; ".join(f"{one.expectation}: {one.figures}" for one in failures)
    journal.write("rejected", message=what)
    raise AuditFailedError(
        f"{ctx.spec.pipeline} run {ctx.run_id}",
        f"the audit failed, nothing is published: {what}",
        way_out,
    )
