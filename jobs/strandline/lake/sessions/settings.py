"""Settings of sessions that any engine may be given, and of queries over few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from strandline.lake.sessions.protocol import session_of

EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that decide the answers, or the form in which they are written."""
WITHOUT_LINES = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""By default PySpark looks for the caller's line at each call of its API, to show it in errors: a
third of the processor time in which a plan is built. On a Connect server it cannot be set."""
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For queries over few rows: to compile and replan each takes longer than to interpret it."""
_FEW_BYTES = 2**20


@contextmanager
def for_input_of(
    spark: SparkSession, size_bytes: int, own: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Within it, queries are interpreted where the files that they read are small.

    Args:
        spark: the session.
        size_bytes: of the landing files to read.
        own: the pipeline's own settings; they stay.
    """
    wanted = {} if size_bytes > _FEW_BYTES else session_of(spark).for_few_rows
    changed = {name: value for name, value in wanted.items() if name not in (own or {})}
    before = {name: str(spark.conf.get(name)) for name in changed}
    _set(spark, changed)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)
