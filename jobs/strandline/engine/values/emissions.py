"""The watermark's values: the combined one at a position.

Telling late from accepted needs no values (see `Crossings`); they are wanted where a person or a
firing asks for them: at late records and at firings.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import fields_of, union_by_name, up_to_here
from strandline.engine.records.expressions import quoted

_BROUGHT, _IS_PROBE = "_strandline_brought", "_strandline_is_probe"


class Emissions(Protocol):
    """What tells the watermark at any position of some days."""

    def at(self, probes: DataFrame) -> DataFrame:
        """The probes with the combined WATERMARK at their position; MIN_WATERMARK: none yet.

        Args:
            probes: ARRIVAL_DAY, SEEN_FROM (an instant), RANK (the number of the channel whose
                emission at that instant is the last one seen), and whatever else is carried.
        """

    def at_hand(self) -> Emissions:
        """The same, computed now: for who asks more than once."""

    def crossings(self, thresholds: DataFrame) -> DataFrame:
        """The distinct THRESHOLDs with SEEN_FROM and RANK: when, and by which channel, reached.

        The watermark must reach them on these days, or not before the horizon: then SEEN_FROM is
        never, and RANK is of the channel that reaches it as the input ends there.
        """


def with_probes(emitted: DataFrame, probes: DataFrame) -> DataFrame:
    """What is emitted, and the probes, which come after what has their own rank.

    What a probe carries is one column, null where something is emitted: emissions are many, and
    are sorted with the probes. `answered` takes them out again.
    """
    position = {c.ARRIVAL_DAY, c.SEEN_FROM, c.RANK}
    brought = [
        quoted(name) for name in probes.columns if name not in position | {c.CHANNEL, c.CANDIDATE}
    ]
    rank = F.col(c.RANK).cast("bigint") * 2
    asked = probes.select(
        c.ARRIVAL_DAY,
        c.SEEN_FROM,
        (rank + 1).alias(c.RANK),
        F.struct(F.lit(1).alias(_IS_PROBE), *brought).alias(_BROUGHT),
    )
    return union_by_name(emitted.withColumn(c.RANK, rank), asked)


def answered(rows: DataFrame) -> DataFrame:
    """Of `with_probes` the probes, with what they brought and the WATERMARK that was found."""
    probes = rows.where(F.col(_BROUGHT).isNotNull())
    brought = fields_of(probes, _BROUGHT)
    return probes.select(c.ARRIVAL_DAY, c.SEEN_FROM, *brought, c.WATERMARK).drop(_IS_PROBE)


def seen_of_day() -> WindowSpec:
    """What a probe among what is emitted on its day sees."""
    of_day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, c.RANK)
    return up_to_here(of_day)
