"""The watermark's values: the combined one at a position.

Telling late from accepted needs no values (see `Crossings`); they are wanted where a person or a
firing asks for them: at late records and at firings.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.frames import up_to_here
from strandline.engine.records.expressions import quoted

_BROUGHT, _IS_PROBE = "_strandline_brought", "_strandline_is_probe"
_POSITION = {c.ARRIVAL_DAY, c.SEEN_FROM, c.RANK, c.CHANNEL, c.CANDIDATE}
"""The columns of a probe that say where it asks, or that what is emitted has of its own."""


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
    carried = _carried(probes)
    rank = F.col(c.RANK).cast("bigint") * 2
    asked = probes.select(
        c.ARRIVAL_DAY,
        c.SEEN_FROM,
        (rank + 1).alias(c.RANK),
        F.struct(F.lit(1).alias(_IS_PROBE), *(quoted(f.name) for f in carried)).alias(_BROUGHT),
    )
    of_probe = T.StructType([T.StructField(_IS_PROBE, T.IntegerType()), *carried])
    rows = emitted.withColumn(c.RANK, rank)
    rows = rows.withColumn(_BROUGHT, F.lit(None).cast(of_probe))
    return rows.unionByName(asked, allowMissingColumns=True)


def answered(rows: DataFrame, probes: DataFrame) -> DataFrame:
    """Of `with_probes` the probes, with their own columns and the WATERMARK at their position."""
    own = [F.col(_BROUGHT)[f.name].alias(f.name) for f in _carried(probes)]
    of_probes = rows.where(F.col(_BROUGHT).isNotNull())
    return of_probes.select(c.ARRIVAL_DAY, c.SEEN_FROM, *own, c.WATERMARK)


def _carried(probes: DataFrame) -> list[T.StructField]:
    """The columns of probes besides their position."""
    return [field for field in probes.schema.fields if field.name not in _POSITION]


def seen_of_day() -> WindowSpec:
    """What a probe among what is emitted on its day sees."""
    of_day = Window.partitionBy(c.ARRIVAL_DAY).orderBy(c.SEEN_FROM, c.RANK)
    return up_to_here(of_day)
