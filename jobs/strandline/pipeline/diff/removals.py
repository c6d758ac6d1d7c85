"""The published windows of a range that a run would remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP
from strandline.lake.publish.staged_diff import Change
from strandline.model.intervals import TimeRange
from strandline.pipeline.plan.published_rows import starts_in
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request


@dataclass(frozen=True)
class Removals:
    """The number of published windows or pairs of a range, and how many have no replacement."""

    removed: int
    published: int


def may_shrink(request: Request, state: PipelineState, within: TimeRange, horizon_ms: int) -> bool:
    """Whether a run may remove windows of its range.

    The request allows it, or the run reads fewer arrivals than a published run of the range.
    """
    published_ms = state.largest_horizon(within)
    earlier = published_ms is not None and horizon_ms < published_ms
    return request.allow_removals or request.reopen or request.recreate or earlier


def removals_of(
    ctx: Context, results: Change, staged: DataFrame, within: TimeRange
) -> Removals | None:
    """The removals of a run in a range; None: there are none.

    A window that only changes its edges, like a merged session, is not removed: a staged window of
    its key overlaps it. Nor is a pair that another pair with its key and time replaces, as when a
    record lands again with another value.

    Args:
        ctx: the run.
        results: the diff of `windows`, or of `pairs`.
        staged: the staged rows of the range.
        within: the range.
    """
    removed, target = results.counts[DELETE], results.target
    if not removed:
        return None
    if target.name == "windows":
        removed_results = results.rows.frame().where(F.col(OP) == DELETE).alias("gone")
        overlap = _overlap(list(ctx.spec.source.key))
        removed = removed_results.join(staged.alias("staged"), overlap, "left_anti").count()
    else:
        removed = _fewer_pairs(results.rows.frame(), list(ctx.spec.source.key))
    inside = starts_in(target.start, [within])
    return Removals(removed, ctx.store.frame(ctx.spark, target.name).where(inside).count())


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
