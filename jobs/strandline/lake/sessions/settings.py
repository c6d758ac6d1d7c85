"""Settings of sessions on every engine, and settings for queries over few rows."""

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
"""Settings that affect results, or the form in which they are written."""
WITHOUT_LINES = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""Switches off PySpark's search for the caller's line at each call of its API, which takes a third
of the processor time of building a plan. It cannot be set on a Connect server."""
QUICKLY_PLANNED = {"spark.sql.constraintPropagation.enabled": "false"}
"""Switches off the filters that Spark's optimizer derives from predicates and aliases of a plan. A
small run of windows over two sources takes 13 of its 21 processor seconds for deriving them; for
many rows of one source they are worth it: without them a rebuild takes a tenth longer."""
FEW_ROWS = {
    **QUICKLY_PLANNED,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for queries over few rows, for which compiling and replanning take too long."""
_FEW_BYTES = 2**20


@contextmanager
def for_input_of(
    spark: SparkSession,
    size_bytes: int,
    own: Mapping[str, str] | None = None,
    *,
    two_sources: bool = False,
) -> Iterator[None]:
    """A context in which queries are interpreted if the landing files are small.

    Queries over two sources are `QUICKLY_PLANNED`, whatever the size.

    Args:
        spark: the session.
        size_bytes: the size of the landing files to read.
        own: the pipeline's settings, which are not overridden.
        two_sources: whether the pipeline has two sources.
    """
    few = session_of(spark).for_few_rows
    of_two = {name: few[name] for name in few if two_sources and name in QUICKLY_PLANNED}
    wanted = of_two if size_bytes > _FEW_BYTES else few
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
