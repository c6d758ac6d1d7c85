"""Published late records of windows that stay, whose rows the landing table has no more.

Such a row has landed again with another event time, or with other values; or it was accepted as
lost. Earlier runs have quarantined it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.grid import Grid
from strandline.engine.records.identity import identity
from strandline.lake.landing.landing import Landing
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import files_started_in, holds, started_in
from strandline.model.intervals import EVERYTHING, instant_of
from strandline.pipeline.plan.kept import Kept
from strandline.pipeline.plan.published_rows import arrived, arrived_in
from strandline.pipeline.rebuild.older_slots import published_slots
from strandline.pipeline.request.context import Context
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import QUARANTINE

REASONS = ("late", "no_window")
"""The reasons of records that belong to a slot; the calendar has a count of each."""
_IDENTITY, _NUMBER = "_strandline_identity", "_strandline_number"
_SAME_RECORD = [_IDENTITY, c.TS, _NUMBER]
"""With another event time, a record belongs to another window."""
_HASH = 32
"""The length of the hash in a `record_id`; the second of equal records has `-2` after it."""


def numbered(records: DataFrame, spec: PipelineSpec, landing: Landing) -> DataFrame:
    """Records with their identity, and a number that distinguishes equal records."""
    own = identity(spec, landing.source_columns)
    equal = Window.partitionBy(_IDENTITY, c.TS).orderBy(_IDENTITY)
    return records.withColumn(_IDENTITY, own).withColumn(_NUMBER, F.row_number().over(equal))


def without(records: DataFrame, others: DataFrame) -> DataFrame:
    """The records that are not among others, without their numbers; both are `numbered`."""
    found = records.join(others.select(*_SAME_RECORD), _SAME_RECORD, "left_anti")
    return found.drop(_IDENTITY, _NUMBER)


def late_without_row(
    ctx: Context, kept: Kept, landed: DataFrame | None, number: int
) -> Part | None:
    """The published late records that earlier runs evaluated, and that have no row now, staged.

    Args:
        ctx: the run.
        kept: the windows that stay.
        landed: the landed records of these windows that earlier runs evaluated, `numbered`; None:
            there are none.
        number: the number of the piece.

    Returns:
        The staged rows; None: no row has landed again since, or nothing is published.
    """
    quarantine = ctx.store.table(QUARANTINE.name)
    started = started_in(QUARANTINE.start, kept.windows)
    files = files_started_in(QUARANTINE.start, kept.windows)
    if kept.since_ms is None or kept.before is None:
        return None
    if quarantine is None or not holds(quarantine, started, files):
        return None
    base_ms = EVERYTHING.start_ms if kept.base_ms is None else kept.base_ms
    start_ms = F.unix_millis(QUARANTINE.start)
    published = ctx.store.frame(ctx.spark, QUARANTINE.name).where(
        start_ms.between(kept.windows.start_ms, kept.windows.end_ms - 1)
    )
    late = arrived(ctx, published, arrived_in(base_ms, kept.since_ms), more=[c.TS])
    if landed is not None:
        plain = F.length("record_id") == _HASH
        of_equal = F.substring("record_id", _HASH + 2, _HASH).cast("int")
        late = without(
            late.withColumns(
                {
                    _IDENTITY: F.substring("record_id", 1, _HASH),
                    _NUMBER: F.when(plain, 1).otherwise(of_equal),
                }
            ),
            landed,
        )
    name = f"{QUARANTINE.name}_without_row_{number}"
    return ctx.staging.part(name, ctx.staging.write(name, late.drop(c.TS)).schema)


def with_fewer(
    ctx: Context, fewer: Mapping[tuple[int, str], int], like: pd.DataFrame
) -> pd.DataFrame:
    """Published slots with fewer refused records than before.

    Args:
        ctx: the run.
        fewer: the number of records that leave, by newest window and reason.
        like: rows of the calendar, for the columns and their types.
    """
    windows = sorted({newest for newest, _ in fewer})
    id_of = "slot_end" if Grid.of(ctx.spec).cumulative else "slot_start"
    published = published_slots(ctx, pd.DataFrame({"slot_ms": windows})) if windows else []
    slots = {instant_of(slot[id_of]): slot for slot in published}
    rows = [
        slots[window]
        | {reason: slots[window][reason] - fewer.get((window, reason), 0) for reason in REASONS}
        | {"run_id": ctx.run_id}
        for window in windows
        if window in slots
    ]
    columns = {name: [row.get(name) for row in rows] for name in like.columns}
    return pd.DataFrame({n: pd.Series(v, dtype=like[n].dtype) for n, v in columns.items()})
