"""Results of another pipeline's windows as records: rows of its table `firings`.

A window emits its result before it forwards the watermark that fires it, so the watermark at the
result's arrival is the previous one. A firing by a late record has the watermark at that record's
arrival.
Results of one watermark advance are emitted in the order of their timers, as Flink's event-time
timers fire.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.position.axis import AFTER_CHANNELS, END_RANK, TICK_RANK, Numbering
from strandline.engine.records.arithmetic import first_of
from strandline.engine.records.expressions import quoted
from strandline.spec.chained import ResultsSpec
from strandline.tables import NOT_OF_A_RESULT

_BEHIND_RECORDS = 2**60
"""More than the number of firings by records in a millisecond."""
_BEHIND_LATE = 2**61
"""More than the number of late results in a millisecond, and more than any time in ms."""
_IN_ORDER = ("order_rank", "order_sequence", "order_ts_ms", "fired_by", "order_window_ms")


def results_of(firings: DataFrame, windows: DataFrame, spec: ResultsSpec) -> DataFrame:
    """The results of a pipeline's windows, as the landing table of the next pipeline.

    Args:
        firings: the table `firings` of the first pipeline.
        windows: its published windows, each with the number of its last firing.
        spec: the next pipeline.
    """
    if spec.last_firings:
        window = ["window_date", "window_start", "window_end", *spec.upstream.source.key]
        last = windows.select(*map(quoted, window), F.col("firings").alias("firing"))
        firings = firings.join(last, [*window, "firing"], "left_semi")
    return firings.drop(*NOT_OF_A_RESULT)


def places_of_results(spec: ResultsSpec) -> dict[str, Column]:
    """The INSTANT, the SEQUENCE and the ADVANCE of results.

    A result has the last INSTANT before the watermark advance that it is emitted with. As the
    watermark may advance several times before the next instant, ADVANCE has the rank of the advance
    in question. A result that was caused by another result in between has the same ADVANCE.
    SEQUENCE orders the results of one instant: first the firings by records, numbered from 1 within
    their millisecond, then the firings by the watermark, by the times of their timers.
    """
    numbering = Numbering.of_spec(spec)
    by_record = F.col("fired_by").isNotNull()
    by_result = by_record & (F.col("order_rank") < AFTER_CHANNELS)
    seen_from = F.col("order_instant").cast("decimal(38,0)" if numbering.sequenced else "bigint")
    alone = F.when(~by_record, F.xxhash64(*map(quoted, spec.source.id or ())))
    at_once = Window.partitionBy(c.ARRIVAL_DAY, c.ARRIVAL, alone)
    at_once = at_once.orderBy("order_instant", *_IN_ORDER)
    by_time = F.least("order_window_ms", F.lit(_BEHIND_LATE)) + _BEHIND_LATE
    of_end = long(TICK_RANK if numbering.interval_ms is None else 0)  # before ticks of its instant
    rank = F.col("order_rank").cast("bigint")
    rank, number = F.when(rank == END_RANK, of_end).otherwise(rank), F.row_number().over(at_once)
    # a tick comes before all records of its millisecond, and after all of the one before
    on_tick = by_result & (seen_from <= first_of(numbering, F.col(c.ARRIVAL)))
    in_place = number + F.when(on_tick, F.lit(_BEHIND_RECORDS)).otherwise(0)
    return {
        c.INSTANT: seen_from - F.when(by_record & ~by_result, 0).otherwise(1),
        c.SEQUENCE: F.when(by_record, in_place).otherwise(by_time).cast("bigint"),
        c.ADVANCE: F.when(by_result, rank + 1).when(~by_record, rank),
    }
