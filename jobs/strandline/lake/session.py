"""One Spark session, set up for Delta and for event time in UTC."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline.engine.frames import on_one_machine
from strandline.errors import InputError, RetryableError
from strandline.lake.cluster import equip_executors
from strandline.lake.local import SMALL_PAGES, cluster_settings, delta_jars, local_settings

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # one snapshot task: the logs of these tables are small, and fifty tasks cost more than they do
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.showConsoleProgress": "false",
    # else every column that a plan names asks the JVM five times more, to tell its line in an error
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_PARTITIONS, _FEW_PARTITIONS = "spark.sql.shuffle.partitions", "8"
"""One machine has few cores: two hundred tasks for a small table would be nothing but overhead."""
_LEAST_PARTITIONS = "spark.sql.adaptive.coalescePartitions.minPartitionNum"
"""So many, where there is work for them: three equal tasks keep two cores as long as four do."""
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For queries over few rows: to compile and replan each takes longer than to interpret it."""
_FEW_BYTES = 2**20
SMALL_INPUT = {
    **FEW_ROWS,
    **SMALL_PAGES,
    # nor are they told to anybody
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
}
"""For thousands of queries over few rows, in a session that has no others."""
_ASKED_BY_EVERY_COLUMN = {
    "functions": ("col", "lit"),
    "org.apache.spark.sql.functions": ("col", "lit", "when"),
    "org.apache.spark.sql.types.Metadata": ("fromJson",),
    "PythonUtils": ("toSeq",),
    "PythonSQLUtils": (),
}
"""Classes of the JVM, and methods of theirs."""
_TIMEOUT_S = 5.0


def spark_session(
    app_name: str,
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    short: bool = False,
) -> SparkSession:
    """The session of a run; under spark-submit the one whose master the submit names.

    Args:
        app_name: shown in Spark's own pages.
        conf: the pipeline's own settings; they win over the defaults.
        master: a Spark master; None: what spark-submit says, or this machine.
        short: whether the run is over before a JVM on this machine would have warmed up.

    Raises:
        InputError: Delta's jars or Java are missing.
        RetryableError: the master does not answer, or its workers give no executor.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in _environment()
    if not submitted:  # else the submit has brought its own jars
        _require_delta()
    if master is not None and master.startswith("spark://"):
        _require_answer(master)
    # expected analysis errors become our own; their JSON traces would only hide them
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName(app_name)
    settings = dict(_SETTINGS)
    if master is not None or not submitted:
        builder = builder.master(master or "local[*]")
    if not submitted:
        local = (master or "local").startswith("local")
        settings |= local_settings(short=short) if local else cluster_settings()
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise InputError(
            "Spark",
            f"does not start ({str(error).splitlines()[0]})",
            "set JAVA_HOME to a Java 17 or 21, and check --master",
        ) from None
    except Exception as error:  # noqa: BLE001 - py4j hands any JVM exception over as its own
        raise RetryableError(
            f"Spark master {master or 'local[*]'}",
            f"does not answer ({str(error).splitlines()[0]})",
            "check the address and that the master runs, then try again",
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    _look_up_once(session)
    if not on_one_machine(session):
        equip_executors(session)
        return session
    for name in {_PARTITIONS, _LEAST_PARTITIONS} - set(conf or {}):
        session.conf.set(name, _FEW_PARTITIONS)
    return session


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
    wanted = {} if size_bytes > _FEW_BYTES else FEW_ROWS
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


def _look_up_once(session: SparkSession) -> None:
    """Keep what every column asks the JVM for.

    py4j asks the JVM anew each time that a name is used, and a short name is searched in all jars.
    """
    jvm = session.sparkContext._jvm
    for name, methods in _ASKED_BY_EVERY_COLUMN.items():
        found = getattr(jvm, name)
        for method in methods:
            setattr(found, method, getattr(found, method))
        setattr(jvm, name, found)


def _require_answer(master: str) -> None:
    """Ask a standalone master for a connection: Spark itself would try for a minute."""
    problems = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S):
                return
        except ValueError:
            raise InputError("--master", f"{address!r} is no host:port", "mend it") from None
        except OSError as error:
            problems.append(f"{address}: {error.strerror or error}")
    raise RetryableError(
        f"Spark master {master}",
        f"does not answer ({'; '.join(problems)})",
        "check the address and that the master runs, then try again",
    )


def _environment() -> Mapping[str, str]:
    import os  # noqa: PLC0415

    return os.environ


def _require_delta() -> None:
    if not any("delta-spark" in jar.name for jar in delta_jars()):
        raise InputError("Spark", f"{sys.prefix} has no Delta jars", "run: make setup")
