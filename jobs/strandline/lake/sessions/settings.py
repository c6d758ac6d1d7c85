"""Settings of sessions: on every engine, for queries over few rows, and for an object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from strandline.errors import InputError
from strandline.lake.local import spark_folder
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


_PACKAGE = "org.apache.hadoop:hadoop-aws"
_S3A = "spark.hadoop.fs.s3a"
_BY_HAND = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def s3a_settings(environment: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of S3A that correspond to delta-rs' environment variables.

    Credentials are not among them: S3A reads them from the environment.

    Args:
        environment: the environment variables of the process.
        conf: the pipeline's settings.

    Raises:
        InputError: S3A is not among Spark's jars. This is not checked under spark-submit, whose
            option `--packages` may add it.
    """
    if "PYSPARK_GATEWAY_PORT" not in environment and not (
        {*_BY_HAND} & {*conf} or _jars("hadoop-aws")
    ):
        raise InputError(
            "engine spark",
            f"reads no object store without {_PACKAGE}, which is not among its jars",
            f"add spark.jars.packages: {_PACKAGE}:{_hadoop_version()} below spark: in the file; "
            "or give --engine sail, which needs none",
        )
    found = {
        f"{_S3A}.endpoint.region": environment.get("AWS_REGION"),
        f"{_S3A}.endpoint": environment.get("AWS_ENDPOINT_URL"),
        # in memory: its folder on disk wants a file system with checksums, which is left out here
        f"{_S3A}.fast.upload.buffer": "bytebuffer",
        # each bucket below the endpoint's address, and not a host of its own
        f"{_S3A}.path.style.access": "true" if environment.get("AWS_ENDPOINT_URL") else None,
    }
    return {name: value for name, value in found.items() if value}


def _hadoop_version() -> str:
    """The version of Spark's Hadoop, which S3A must have."""
    (client,) = _jars("hadoop-client-api")[:1] or ["hadoop-client-api-VERSION"]
    return client.rpartition("-")[2]


def _jars(name: str) -> list[str]:
    """The names of Spark's jars with a prefix, without suffix."""
    folder = spark_folder()
    return [] if folder is None else [jar.stem for jar in (folder / "jars").glob(f"*{name}-*.jar")]
