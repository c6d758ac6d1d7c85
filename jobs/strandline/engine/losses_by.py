"""Who loses records: the loss curve of each channel, key and day, the worst of them first."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected
from strandline.engine.loss_curve import LOST_BY
from strandline.model.loss_curve import LossCurve, curve_of

Parts = tuple[list[tuple[tuple[str, ...], LossCurve]], int]
"""The loss curves of parts of the records by their names, and how many parts there are in all."""
_LOST = "_strandline_lost_"
_PARTS = "_strandline_parts"


def curve_of_all(counted: DataFrame, totals_ms: Sequence[int]) -> LossCurve:
    """The loss curve of all records.

    Args:
        counted: as `count_lost` counts them.
        totals_ms: on offer, ascending.
    """
    sums = collected(counted.groupBy(LOST_BY).agg(F.sum(c.RECORDS).alias(c.RECORDS)))
    by_totals = dict(zip(sums[LOST_BY], sums[c.RECORDS], strict=True))
    kept_from = [int(by_totals.get(place, 0)) for place in range(len(totals_ms) + 1)]
    return curve_of(totals_ms, kept_from)


def worst(
    counted: DataFrame, names: Sequence[str], totals_ms: Sequence[int], *, at_ms: int, most: int
) -> Parts:
    """The loss curves of the parts that lose most, and how many parts there are.

    Args:
        counted: as `count_lost` counts them.
        names: the columns that name a part.
        totals_ms: on offer, ascending.
        at_ms: the total at which parts are compared: by the records that they lose.
        most: so many parts are given.
    """
    place_of = list(totals_ms).index(at_ms)
    named = counted.select(
        *(F.col(name).cast("string").alias(name) for name in names), LOST_BY, c.RECORDS
    )
    lost = {
        f"{_LOST}{place}": F.sum(F.when(F.col(LOST_BY) > place, F.col(c.RECORDS)).otherwise(0))
        for place in range(len(totals_ms))
    }
    parts = named.groupBy(*names).agg(
        F.sum(c.RECORDS).alias(c.RECORDS), *(count.alias(name) for name, count in lost.items())
    )
    first = parts.orderBy(F.desc(f"{_LOST}{place_of}"), *names).limit(most)
    rows = collected(first)
    many = collected(named.select(*names).distinct().agg(F.count(F.lit(1)).alias(_PARTS)))
    found = [
        (
            tuple("" if row[name] is None else str(row[name]) for name in names),
            LossCurve(
                tuple(totals_ms), tuple(int(row[name]) for name in lost), int(row[c.RECORDS])
            ),
        )
        for row in rows.to_dict("records")
    ]
    return found, int(many[_PARTS].iloc[0])
