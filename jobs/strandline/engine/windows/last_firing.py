"""Windows whose last firing holds less than they accepted: firings purge them, or evict.

They accept, fire and close as all others do.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.position.grid import Grid
from strandline.engine.windows.assign import fires_at_once, is_accepted
from strandline.engine.windows.contents import count_each, fire
from strandline.spec.evictor import TimeEvictor
from strandline.spec.pipeline import PipelineSpec

_LAST = "_strandline_last_late"
_KEPT = "_strandline_kept"
_IN_LAST = "_strandline_in_last_firing"
"""How many records the last firing of a window held; of an open one, how many it holds."""


def fire_last(
    met: DataFrame,
    windows: DataFrame,
    spec: PipelineSpec,
    aggregates: dict[str, Column],
    grid: Grid,
    identity: Column,
) -> DataFrame:
    """The rows of `fire`, their content that of the last firing; ACCEPTED is what all held.

    Args:
        met: the records of the range, once for each of their windows.
        windows: the windows of the range.
        spec: the pipeline.
        aggregates: the content of a firing.
        grid: of the windows.
        identity: orders records of equal position.
    """
    window = [*keys_of(spec), c.WINDOW]
    accepted = met.where(is_accepted()).withColumn(c.RECORD_ID, identity)
    if spec.fires_by.purging:
        accepted = _of_last_late_record(accepted, window)
    contents = (
        not_evicted(accepted, window, spec)
        .groupBy(*window)
        .agg(
            *(column.alias(name) for name, column in aggregates.items()),
            F.count(F.lit(1)).alias(_IN_LAST),
        )
    )
    counted = count_each(met, spec, {}, grid).join(contents, window, "left")
    nothing = F.col("records") == 0  # a row of what was refused, which is counted apart
    emptied = {name: F.when(~nothing, F.col(name)) for name in [*aggregates, _IN_LAST]}
    fired = fire(counted.withColumns(emptied), windows, spec, _IN_LAST)
    return fired.withColumns(
        {c.ACCEPTED: F.col("records"), "records": F.coalesce(_IN_LAST, F.lit(0).cast("bigint"))}
    ).drop(_IN_LAST)


def not_evicted(members: DataFrame, firing: list[str], spec: PipelineSpec) -> DataFrame:
    """The members of firings (of open windows: of what they hold) without those that are evicted.

    The newest event time of a window never falls, and is never evicted. So what an earlier firing
    evicted is what the later one would.
    """
    evictor = spec.evicts_by
    if not isinstance(evictor, TimeEvictor):
        return members
    newest_ms = F.max(c.TS).over(Window.partitionBy(*firing))
    kept = F.col(c.FIRE_AT).isNull() | (F.col(c.TS) > newest_ms - evictor.time)
    return members.withColumn(_KEPT, kept).where(_KEPT)


def _of_last_late_record(accepted: DataFrame, window: list[str]) -> DataFrame:
    """Of each window the last late record, which fired it alone; without one all records."""
    position = F.struct(c.INSTANT, c.SEQUENCE, c.TS, c.RECORD_ID)
    last = F.max(F.when(fires_at_once(), position)).over(Window.partitionBy(*window))
    return accepted.withColumn(_LAST, last).where(
        F.col(_LAST).isNull() | position.eqNullSafe(F.col(_LAST))
    )
