"""The position of a record among the advances of the watermark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.position.axis import AFTER_CHANNELS, ALL_SPLITS
from strandline.spec.pipeline import PipelineSpec


def arrival_probe(spec: PipelineSpec) -> dict[str, Column]:
    """A pipeline's records as probes of the watermark at their arrival: SEEN_FROM and RANK.

    Nearly all come after everything that is seen from their instant on. A result of other windows
    with an ADVANCE comes just before that one, and behind those before it; splits that are merged
    at once advance once.
    """
    if not advance_column(spec):
        return {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
    advance = F.col(c.ADVANCE)
    before_advance = F.when(advance == ALL_SPLITS, long(-1)).otherwise(advance - 1)
    return {
        c.SEEN_FROM: F.col(c.INSTANT) + F.when(advance.isNull(), 0).otherwise(1),
        c.RANK: F.coalesce(before_advance, long(AFTER_CHANNELS)),
    }


def advance_column(spec: PipelineSpec) -> list[str]:
    """ADVANCE, of a pipeline over results: there records of one instant can differ in it."""
    return [] if spec.reads_results_of is None else [c.ADVANCE]
