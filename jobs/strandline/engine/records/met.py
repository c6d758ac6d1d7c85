"""What a record has met: its position among what the watermark does."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.spec.chained import ResultsSpec
from strandline.spec.pipeline import PipelineSpec


def met_by_records(spec: PipelineSpec) -> dict[str, Column]:
    """Records as probes of the watermark that they met: SEEN_FROM and RANK (see `Emissions.at`).

    Nearly all come after everything that is seen from their instant on. A result of other windows
    that the watermark has fired comes just before that rise, and behind those before it.
    """
    if not isinstance(spec, ResultsSpec):
        return {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
    after_instant = F.when(F.col(c.RISE).isNull(), 0).otherwise(1)
    return {
        c.SEEN_FROM: F.col(c.INSTANT) + after_instant,
        c.RANK: F.coalesce(F.col(c.RISE) - 1, F.lit(AFTER_CHANNELS).cast("bigint")),
    }
