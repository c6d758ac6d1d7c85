"""The opening of a pipeline's landing: one table, two tables, or another pipeline's results."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from strandline.errors import InputError
from strandline.lake.landing.joined_landing import JoinedLanding
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.landing.results_log import ResultsLog, log_of
from strandline.lake.landing.table_landing import TableLanding
from strandline.lake.store.identities import columns_of, nulls_counted
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import of_hadoop
from strandline.spec.chained import ResultsSpec
from strandline.spec.pipeline import PipelineSpec


def open_landing(
    spark: SparkSession,
    lake: Lake,
    spec: PipelineSpec,
    now_ms: int | None = None,
    log: LandingLog | None = None,
) -> Landing:
    """A version of a pipeline's landing.

    Args:
        spark: the session.
        lake: the lake's root.
        spec: the pipeline.
        now_ms: the current time; days that have not begun are not read. None: all are read.
        log: the log of the version to read; None: the newest version.

    Raises:
        InputError: the table does not exist, or the other pipeline has published nothing.
        RetryableError: the other pipeline has not yet run by its current rules.
    """
    log = log or log_of(lake, spec) or _of_catalog(spark, spec)
    quarantine = lake.pipeline(spec.pipeline).table("quarantine")
    published = columns_of(quarantine)
    if isinstance(log, JoinedLog):
        left, right = (
            TableLanding(spark, side, log.of_sides[name], now_ms)
            for name, side in log.spec.sides.items()
        )
        return JoinedLanding(
            spark=spark,
            spec=log.spec,
            log=log,
            now_ms=now_ms,
            published=published,
            left=left,
            right=right,
        )
    counted = nulls_counted(quarantine)
    if not (isinstance(spec, ResultsSpec) and isinstance(log, ResultsLog)):
        return TableLanding(spark, spec, log, now_ms, published, counted)
    upstream = open_landing(spark, lake, spec.upstream, now_ms)
    return ResultsLanding(
        spark=spark,
        spec=spec,
        log=log,
        now_ms=now_ms,
        published=published,
        nulls_counted=counted,
        upstream=upstream.by_log(log.source_log(upstream.log)),
    )


def _of_catalog(spark: SparkSession, spec: PipelineSpec) -> LandingLog:
    """The log of a landing table in a catalog.

    Raises:
        InputError: the catalog has no such table, or it is not a Delta table.
    """
    place, name = f"{spec.pipeline}: source.table", spec.source.table
    try:
        uri = spark.sql(f"DESCRIBE DETAIL {name}").select("location").first()[0]  # type: ignore[index]
    except AnalysisException as error:
        problem = str(error.getMessage() or error).splitlines()[0]
        raise InputError(place, f"no table {name} ({problem})", "check the catalog") from None
    return LandingLog.open(of_hadoop(uri), place)
