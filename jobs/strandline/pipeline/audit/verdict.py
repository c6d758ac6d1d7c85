"""Audits a staged run; a run that fails a critical expectation publishes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.errors import AuditFailedError
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP
from strandline.lake.publish.staged_diff import Change
from strandline.lake.sessions.exceptions import require_answers
from strandline.model.books import Book, books_off
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.audit.books_of_tables import books_of_tables
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.plan.published_rows import starts_in
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context, Journal
from strandline.pipeline.request.request import Request
from strandline.quality.audit.result import Audit, AuditResult
from strandline.quality.audit.wording import Gaps
from strandline.quality.completeness import slots_outside, slots_within
from strandline.quality.findings.check import Check
from strandline.spec.joined import PAIRS

BOOKS_ARE_OFF = (
    "a run whose books do not balance is never published: run it again, since its input may have "
    "changed meanwhile; if they still do not balance, report a defect with the output of "
    "strandline runs show"
)
"""The way out if records are not accounted for."""


@dataclass(frozen=True)
class Verdict:
    """The results of the expectations on a run.

    Attributes:
        audit: the results.
        way_out: what to do about the results that prevent publishing; empty if none does.
    """

    audit: Audit = field(default_factory=Audit)
    way_out: str = ""

    @classmethod
    def of(cls, audit: Audit, way_out: str) -> Verdict:
        """The verdict by an audit; `way_out`: what to do if it prevents publishing."""
        return cls(audit, way_out if audit.blocked else "")

    def __add__(self, more: Verdict) -> Verdict:
        """Both results combined, with the way out of the first failure."""
        results = (*self.audit.results, *more.audit.results)
        return Verdict(Audit(results), self.way_out or more.way_out)

    def reject(self, ctx: Context, journal: Journal) -> None:
        """Reject the run if an expectation failed; a dry run continues, to show its changes.

        The changes are already staged, so that accepting the run publishes exactly them.

        Raises:
            AuditFailedError: the run is rejected.
        """
        if ctx.dry_run or not self.audit.blocked:
            return
        what = "; ".join(f"{one.expectation}: {one.figures}" for one in self.audit.blocking)
        journal.write("rejected", message=what)
        publish = f"strandline runs publish {ctx.spec.pipeline} {ctx.run_id} --accept REASON"
        raise AuditFailedError(
            f"{ctx.spec.pipeline} run {ctx.run_id}",
            f"the audit failed, nothing is published: {what}",
            BOOKS_ARE_OFF
            if books_off(journal.entry.books or ())
            else f"{self.way_out}; or publish it as it is: {publish}",
        )


def verdict_of(
    ctx: Context,
    journal: Journal,
    staged: Staged,
    books: Sequence[Book],
    checks: Sequence[Check],
) -> Verdict:
    """Check the staged rows against every expectation; the result is in the ledger on return."""
    from strandline.quality.audit.run import AuditInput, audit  # noqa: PLC0415 - takes seconds

    result = audit(
        ctx.spec,
        AuditInput(
            results=staged.parts[ctx.spec.result].frame(),
            pairs=staged.parts[PAIRS].frame() if ctx.spec.has_pairs_of_windows else None,
            completeness=staged.calendar,
            books=books,
            slots_expected=staged.slots_expected,
            gaps=_gaps_of(staged, journal.entry.range or EVERYTHING),
            late=staged.late,
            accepted=staged.accepted,
            checks=checks,
        ),
        run_id=ctx.run_id,
        context_folder=ctx.validations_folder,
    )
    if result.failures:
        require_answers(ctx.spark)
    results = result.to_json()
    journal.add_facts(audit=results, gaps=staged.gaps.count, books=books)
    journal.write("audited")
    return Verdict.of(result, f"see strandline runs show {ctx.spec.pipeline} {ctx.run_id}")


def _gaps_of(staged: Staged, within: TimeRange) -> Gaps:
    """The gaps of the range that nobody has acknowledged, and the number of the others."""
    listed, known = staged.gaps.rows, staged.gaps.known
    if len(listed):
        listed = slots_outside(slots_within(listed, within), staged.gaps.known_in)
    return Gaps.of(listed, staged.gaps.count - known, known)


def verdict_of_tables(
    ctx: Context, journal: Journal, planned: PlannedRun, changes: Sequence[Change]
) -> Verdict:
    """Check whether a record would be both in quarantine and in windows after publishing.

    Returns:
        The result; empty for a run that has not quarantined its malformed rows yet.
    """
    if ctx.dry_run or journal.entry.overrides or planned.observation.status.accepted:
        return Verdict()
    from strandline.quality.audit.run import audit_tables  # noqa: PLC0415 - takes seconds

    books = books_of_tables(ctx, planned, changes)
    result = audit_tables(books, run_id=ctx.run_id)
    shown = f"strandline runs show {ctx.spec.pipeline} {ctx.run_id}"
    return _verdict_of_one(result, journal, f"this is a defect: report it with {shown}")


def verdict_of_removals(
    ctx: Context,
    request: Request,
    journal: Journal,
    planned: PlannedRun,
    staged: Staged,
    changes: Sequence[Change],
) -> Verdict:
    """Check whether a range loses published windows without the request saying so.

    Returns:
        The result; empty if no windows are removed, or removals are allowed.
    """
    from strandline.quality.audit.run import audit_removals  # noqa: PLC0415 - takes seconds

    within, limit = planned.plan.scope.windows, ctx.spec.quality.max_removed_share
    if limit is None or may_shrink(request, planned.state, within, planned.horizon_ms):
        return Verdict()
    (results,) = (change for change in changes if change.target.name == ctx.spec.result)
    if not results.counts[DELETE]:
        return Verdict()
    removed = _removed(ctx, results, staged.parts[ctx.spec.result].frame())
    target = results.target
    inside = starts_in(target.start, [within])
    published = ctx.store.frame(ctx.spark, target.name).where(inside).count()
    result = audit_removals(removed, published, max_share=limit, run_id=ctx.run_id)
    way_out = "find out where their records are; to remove these windows, give --allow-removals"
    return _verdict_of_one(result, journal, way_out)


def may_shrink(request: Request, state: PipelineState, within: TimeRange, horizon_ms: int) -> bool:
    """Whether a run may remove windows of its range.

    The request allows it, or the run reads fewer arrivals than a published run of the range.
    """
    published_ms = state.largest_horizon(within)
    earlier = published_ms is not None and horizon_ms < published_ms
    return request.allow_removals or request.reopen or request.recreate or earlier


def _removed(ctx: Context, results: Change, staged: DataFrame) -> int:
    """The number of published windows or pairs of a range that a run removes without replacement.

    A window that only changes its edges, like a merged session, is not removed: a staged window of
    its key overlaps it. Nor is a pair that another pair with its key and time replaces, as when a
    record lands again with another value.

    Args:
        ctx: the run.
        results: the diff of `windows`, or of `pairs`.
        staged: the staged rows of the range.
    """
    changes, key = results.rows.frame(), list(ctx.spec.source.key)
    if results.target.name != "windows":
        return _fewer_pairs(changes, key)
    removed = changes.where(F.col(OP) == DELETE).alias("gone")
    return removed.join(staged.alias("staged"), _overlap(key), "left_anti").count()


def _fewer_pairs(changes: DataFrame, key: Sequence[str]) -> int:
    """The decrease in the number of pairs, by key and time."""
    steps = F.when(F.col(OP) == DELETE, 1).when(F.col(OP) == INSERT, -1).otherwise(0)
    less = changes.groupBy(*key, "pair_ts").agg(F.greatest(F.sum(steps), F.lit(0)).alias("less"))
    return int(less.agg(F.coalesce(F.sum("less"), F.lit(0))).collect()[0][0])


def _overlap(key: Sequence[str]) -> Column:
    same_key = [F.col(f"gone.`{name}`").eqNullSafe(F.col(f"staged.`{name}`")) for name in key]
    overlaps = (F.col("gone.window_start") < F.col("staged.window_end")) & (
        F.col("staged.window_start") < F.col("gone.window_end")
    )
    return reduce(Column.__and__, same_key, overlaps)


def _verdict_of_one(result: AuditResult, journal: Journal, way_out: str) -> Verdict:
    """The verdict by one more result, which the journal adds to its audit."""
    audit = Audit((result,))
    journal.add_facts(audit=[*(journal.entry.audit or ()), *audit.to_json()])
    return Verdict.of(audit, way_out)
