"""Results of another pipeline's windows as records: rows of its table `firings`.

A result leaves its window before the watermark that fires it goes on, so it is judged by the one
before. What a late record has fired is judged as that record was.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.axis import Axis
from strandline.engine.records.expressions import quoted
from strandline.spec.chained import ResultsSpec

_NOT_OF_A_RESULT = ("window_date", "supersedes", "supersedes_windows", "run_id", "spec_fingerprint")
_IN_ORDER = ("order_rank", "order_sequence", "order_ts_ms", "fired_by", "order_window_ms")


def results_of(firings: DataFrame, windows: DataFrame, spec: ResultsSpec) -> DataFrame:
    """The results of a pipeline's windows, as the landing table of the one that they go into.

    Args:
        firings: of the other pipeline.
        windows: its windows, as published: each knows the number of its last firing.
        spec: the pipeline that they go into.
    """
    if spec.last_firings:
        window = ["window_date", "window_start", "window_end", *spec.upstream.source.key]
        last = windows.select(*map(quoted, window), F.col("firings").alias("firing"))
        firings = firings.join(last, [*window, "firing"], "left_semi")
    return firings.drop(*_NOT_OF_A_RESULT)


def places_of_results(spec: ResultsSpec, axis: Axis) -> dict[str, Column]:
    """The INSTANT of results, the last one of records that are judged as they are; the SEQUENCE.

    That is the place of a late result among those of its millisecond, from 1 on. Those on time come
    before any window that they go into has fired, so their order is none.
    """
    late = F.col("fired_by").isNotNull()
    seen_from = F.col("order_instant").cast("decimal(38,0)" if axis.sequenced else "bigint")
    alone = F.when(~late, F.xxhash64(*map(quoted, spec.source.id or ())))
    at_once = Window.partitionBy(c.ARRIVAL_DAY, c.ARRIVAL, alone)
    at_once = at_once.orderBy("order_instant", *_IN_ORDER)
    return {
        c.INSTANT: seen_from - F.when(late, 0).otherwise(1),
        c.SEQUENCE: F.when(late, F.row_number().over(at_once)).otherwise(0).cast("bigint"),
    }
