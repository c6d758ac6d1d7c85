"""Published late records of windows that stay, whose rows the landing table has no more.

Such a row has landed again with another event time, or with other values; or it was accepted as
lost. Earlier runs have quarantined it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.records.identity import identity
from strandline.lake.landing.landing import Landing
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import files_started_in, holds, started_in
from strandline.pipeline.plan.kept import Kept
from strandline.pipeline.plan.published_rows import arrived, arrived_in, starts_in
from strandline.pipeline.rebuild.slots import REASONS, published_slots
from strandline.pipeline.request.context import Context
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import QUARANTINE

_IDENTITY, _NUMBER = "_strandline_identity", "_strandline_number"
_COPIES, _HIGHEST = "_strandline_copies", "_strandline_highest"
_KEY = [_IDENTITY, c.TS]
"""With another event time, a record belongs to another window."""
_ROW = ["record_id", "slot_start"]
"""The key of a quarantined late record."""
_HASH = 32
"""The length of the hash in a `record_id`; the second of equal records has `-2` after it."""


def with_identity(records: DataFrame, spec: PipelineSpec, landing: Landing) -> DataFrame:
    """Records with their identity, for `landed_since` and `without_row`."""
    return records.withColumn(_IDENTITY, identity(spec, landing.source_columns))


def landed_since(now: DataFrame, then: DataFrame) -> DataFrame:
    """The records in `now` that are not in `then`; of equal records, the surplus."""
    numbered = (_numbered(now), _numbered(then).select(*_KEY, _NUMBER))
    found = numbered[0].join(numbered[1], [*_KEY, _NUMBER], "left_anti")
    return found.drop(_IDENTITY, _NUMBER)


def _numbered(records: DataFrame) -> DataFrame:
    equal = Window.partitionBy(*_KEY).orderBy(_IDENTITY)
    return records.withColumn(_NUMBER, F.row_number().over(equal))


def published_late(ctx: Context, kept: Kept) -> DataFrame | None:
    """The published late records of windows that stay, as far as earlier runs evaluated them.

    Each has its event time as TS. None: the landing table has the same rows now, or nothing is
    published.
    """
    quarantine = ctx.store.table(QUARANTINE.name)
    started = started_in(QUARANTINE.start, kept.windows)
    files = files_started_in(QUARANTINE.start, kept.windows)
    if kept.since_ms is None or kept.before is None:
        return None
    if quarantine is None or not holds(quarantine, started, files):
        return None
    rows = ctx.store.frame(ctx.spark, QUARANTINE.name)
    published = rows.where(starts_in(QUARANTINE.start, [kept.windows]))
    return arrived(ctx, published, arrived_in(kept.first_ms, kept.since_ms), more=[c.TS])


def without_row(published: DataFrame, then: DataFrame, now: DataFrame) -> DataFrame:
    """The published late records whose landing rows have been removed since they were evaluated.

    Of equal records, some of which were accepted, the late ones leave first.

    Args:
        published: the published late records (`published_late`).
        then: the landed records when they were evaluated, `with_identity`.
        now: the present landed records, `with_identity`.
    """
    before = then.groupBy(*_KEY).agg(F.count("*").alias(_COPIES))
    after = now.groupBy(*_KEY).agg(F.count("*").alias(_NUMBER))
    fewer = before.join(after, _KEY, "left").select(
        *_KEY, (F.col(_COPIES) - F.coalesce(_NUMBER, F.lit(0))).alias(_COPIES)
    )
    last_first = Window.partitionBy(*_KEY).orderBy(F.col("record_id").desc())
    numbered = published.withColumn(_IDENTITY, _hash()).withColumn(
        _NUMBER, F.row_number().over(last_first)
    )
    found = numbered.join(fewer, _KEY).where(F.col(_NUMBER) <= F.col(_COPIES))
    return found.drop(*_KEY, _NUMBER, _COPIES)


def numbered_after(late: DataFrame, published: DataFrame, leaving: DataFrame) -> DataFrame:
    """Late records with ids that no published late record of the same slot has.

    Args:
        late: the quarantine rows of a run.
        published: the published late records (`published_late`).
        leaving: those of them that leave.
    """
    stay = published.join(leaving.select(*_ROW), _ROW, "left_anti")
    highest = stay.groupBy(_hash().alias(_IDENTITY), "slot_start").agg(
        F.max(_number()).alias(_HIGHEST)
    )
    by_slot = late.withColumn(_IDENTITY, _hash()).join(highest, [_IDENTITY, "slot_start"], "left")
    further = F.concat_ws("-", _IDENTITY, (F.col(_HIGHEST) + _number()).cast("string"))
    own = F.when(F.col(_HIGHEST).isNull(), F.col("record_id")).otherwise(further)
    return by_slot.withColumn("record_id", own).select(*late.columns)


def _hash() -> Column:
    """The identity in a `record_id`."""
    return F.substring("record_id", 1, _HASH)


def _number() -> Column:
    """The number in a `record_id`, from 1."""
    of_equal = F.substring("record_id", _HASH + 2, _HASH).cast("int")
    return F.when(F.length("record_id") == _HASH, 1).otherwise(of_equal)


def counts_of(leaving: Part, staged: Part | None) -> dict[tuple[int, str], int]:
    """The number of leaving records by the start of their slot, in ms, and their reason.

    `staged`: late records; one with the key of a leaving row replaces it. None: there are none.
    """
    rows = leaving.frame()
    if staged is not None:
        rows = rows.join(staged.frame().select(*_ROW), _ROW, "left_anti")
    counts = rows.groupBy(F.unix_millis("slot_start").alias("start_ms"), "reason").count()
    return {(row["start_ms"], row["reason"]): row["count"] for row in counts.collect()}


def with_fewer(
    ctx: Context, fewer: Mapping[tuple[int, str], int], like: pd.DataFrame
) -> pd.DataFrame:
    """Published slots with fewer refused records than before.

    Args:
        ctx: the run.
        fewer: the number of records that leave, by start of the slot and reason.
        like: rows of the calendar, for the columns and their types.
    """
    starts_ms = sorted({start_ms for start_ms, _ in fewer})
    published = published_slots(ctx, starts_ms) if starts_ms else {}
    longest = {start_ms: slot for (start_ms, _), slot in sorted(published.items())}
    rows = [
        longest[start_ms]
        | {name: longest[start_ms][name] - fewer.get((start_ms, name), 0) for name in REASONS}
        | {"run_id": ctx.run_id}
        for start_ms in starts_ms
        if start_ms in longest
    ]
    columns = {name: [row.get(name) for row in rows] for name in like.columns}
    return pd.DataFrame({n: pd.Series(v, dtype=like[n].dtype) for n, v in columns.items()})
