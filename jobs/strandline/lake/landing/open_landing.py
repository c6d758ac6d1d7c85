"""The opening of a pipeline's landing: one table, two tables, or another pipeline's results."""

from __future__ import annotations

from pyspark.sql import SparkSession

from strandline.lake.landing.joined_landing import JoinedLanding
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.landing.results_log import ResultsLog
from strandline.lake.landing.table_landing import TableLanding
from strandline.lake.store.identities import nulls_counted
from strandline.lake.store.lake import Lake
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec


def open_landing(
    spark: SparkSession,
    lake: Lake,
    spec: PipelineSpec,
    now_ms: int | None = None,
    log: LandingLog | None = None,
) -> Landing:
    """A pipeline's landing table, or the results that it reads: see `TableLanding.open`.

    Raises:
        InputError: the table does not exist, or the other pipeline has published nothing.
        RetryableError: the other pipeline has not yet run by its current rules.
    """
    if isinstance(spec, TwoSourcesSpec):
        both = log if isinstance(log, JoinedLog) else None
        return JoinedLanding.of_two(spark, lake, spec, now_ms, both)
    if not isinstance(spec, ResultsSpec):
        return TableLanding.open(spark, lake, spec, now_ms, log)
    results = log if isinstance(log, ResultsLog) else ResultsLog.published(lake, spec)
    upstream = open_landing(spark, lake, spec.upstream, now_ms)
    upstream = upstream.by_log(results.source_log(upstream.log))
    counted = nulls_counted(lake.pipeline(spec.pipeline).table("quarantine"))
    return ResultsLanding(
        spark=spark,
        spec=spec,
        log=results,
        now_ms=now_ms,
        nulls_counted=counted,
        results=results,
        upstream=upstream,
    )
