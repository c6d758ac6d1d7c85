"""What a record has met: its position among what the watermark does."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS
from strandline.spec.chained import ResultsSpec
from strandline.spec.pipeline import PipelineSpec


def met_by(spec: PipelineSpec) -> dict[str, Column]:
    """A pipeline's records as probes of the watermark at their arrival: SEEN_FROM and RANK.

    Nearly all come after everything that is seen from their instant on. A result of other windows
    with a RISE comes just before that one, and behind those before it; splits that are merged at
    once rise once.
    """
    if not risen(spec):
        return {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
    rise = F.col(c.RISE)
    before_rise = F.when(rise == ALL_SPLITS, long(-1)).otherwise(rise - 1)
    return {
        c.SEEN_FROM: F.col(c.INSTANT) + F.when(rise.isNull(), 0).otherwise(1),
        c.RANK: F.coalesce(before_rise, long(AFTER_CHANNELS)),
    }


def risen(spec: PipelineSpec) -> list[str]:
    """RISE, of a pipeline over results: the watermark may differ among records of one instant."""
    return [c.RISE] if isinstance(spec, ResultsSpec) else []
