"""Units: what the firings of windows are put together of.

Records of a window of a key that the same firing holds first belong together; each late record is
alone. Firings are told by numbers: see `first_firings`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import union_by_name
from strandline.engine.past.history import History
from strandline.engine.windows.assign import fires_at_once
from strandline.engine.windows.first_firings import (
    AHEAD,
    BEGINS_AT,
    came_before_next,
    timed,
    window_of,
)
from strandline.spec.pipeline import PipelineSpec

FIRST_HELD_BY = "_strandline_first_held_by"
LAST_FIRING = "_strandline_last_firing"
"""The last firing of a window before the horizon; null: there is none."""
OF_CAUSE = (c.INSTANT, c.SEQUENCE, c.TS, c.ARRIVAL, c.ARRIVAL_DAY, c.RECORD_ID)
"""What is told of the record that fires a window."""
_NTH_LATE = "_strandline_nth_late"


def single_units(accepted: DataFrame, history: History, firsts: DataFrame | None) -> DataFrame:
    """The accepted records, each as a unit: with FIRST_HELD_BY and LAST_FIRING.

    Where FIRST_HELD_BY is beyond LAST_FIRING no firing holds the record, before the horizon.

    Args:
        accepted: the accepted records with RECORD_ID, once for each window.
        history: everything observed below the horizon.
        firsts: of `first_firings`; None: windows do not fire early.
    """
    each = timed(_numbered(accepted, history.spec), history).withColumn(c.RECORDS, F.lit(1))
    return _held(each, history.spec, firsts)


def counted_units(
    accepted: DataFrame,
    cells: DataFrame,
    history: History,
    firsts: DataFrame | None,
    parts: Sequence[Column],
) -> DataFrame:
    """The units with the parts of aggregates; late records are units of their own.

    Args:
        accepted: the accepted records with RECORD_ID, once for each window.
        cells: those on time in cells: of `parted`, where windows fire early.
        history: everything observed below the horizon.
        firsts: of `first_firings`; None: windows do not fire early.
        parts: what is counted of them.
    """
    late = timed(_numbered(accepted.where(fires_at_once()), history.spec), history)
    apart = late.groupBy(*window_of(history.spec), c.LAST_TIME, _NTH_LATE, *OF_CAUSE).agg(
        F.count(F.lit(1)).alias(c.RECORDS), *parts
    )
    on_time = cells.drop(*(name for name in OF_CAUSE if name != c.INSTANT))
    return _held(union_by_name(on_time, apart), history.spec, firsts)


def is_late() -> Column:
    """Whether a unit is a record that has fired its window at once."""
    return F.col(FIRST_HELD_BY) > 0


def _numbered(accepted: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Records with the number of each late one among those of its window."""
    late = F.when(fires_at_once(), 1)
    in_order = Window.partitionBy(*window_of(spec), late).orderBy(
        c.INSTANT, c.SEQUENCE, c.TS, c.RECORD_ID
    )
    return accepted.withColumn(_NTH_LATE, F.when(late == 1, F.row_number().over(in_order)))


def _held(units: DataFrame, spec: PipelineSpec, firsts: DataFrame | None) -> DataFrame:
    by_time, window = F.lit(0), window_of(spec)
    if firsts is not None:
        units = units.join(firsts.drop(AHEAD), window, "left")
        waits = (F.col(AHEAD) <= F.col(BEGINS_AT)) | came_before_next(units)
        by_time = F.when(waits, F.col(BEGINS_AT)).otherwise(F.col(AHEAD))
    first_held_by = F.coalesce(_NTH_LATE, by_time).cast("bigint")
    last = F.greatest(F.col(c.LAST_TIME), F.max(_NTH_LATE).over(Window.partitionBy(*window)))
    return units.withColumns({FIRST_HELD_BY: first_held_by, LAST_FIRING: last.cast("bigint")})
