"""Apache Spark with its driver in this process: the only module that uses the JVM."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import psutil
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline.errors import InputError, RetryableError, problem_of
from strandline.lake.local import (
    SMALL_PAGES,
    WORKERS_PYTHON,
    cluster_settings,
    delta_jars,
    local_settings,
)
from strandline.lake.sessions.executors import equip_executors
from strandline.lake.sessions.interruptions import log_no_interruption, own_interrupt
from strandline.lake.sessions.protocol import ApacheSession, register
from strandline.lake.sessions.remote import CLIENT_MODE
from strandline.lake.sessions.settings import EVERYWHERE, FEW_ROWS, WITHOUT_LINES
from strandline.spec.common import EngineName

_SETTINGS = {
    **EVERYWHERE,
    **WITHOUT_LINES,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # one snapshot task: the logs of these tables are small, and fifty tasks cost more than they do
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.showConsoleProgress": "false",
}
_PARTITIONS, _FEW_PARTITIONS = "spark.sql.shuffle.partitions", "8"
"""The number of shuffle partitions on one machine, where Spark's 200 tasks would be overhead."""
_LEAST_PARTITIONS = "spark.sql.adaptive.coalescePartitions.minPartitionNum"
"""The least number of partitions: with two cores, three tasks take as long as four."""
SMALL_INPUT = {
    **FEW_ROWS,
    **SMALL_PAGES,
    # nor does anybody look at them
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
}
"""Settings for a session with thousands of queries over few rows."""
_ENDS_WITHIN_S = 5
_ASKED_BY_EVERY_COLUMN = {
    "functions": ("col", "lit"),
    "org.apache.spark.sql.functions": ("col", "lit", "when"),
    "org.apache.spark.sql.types.Metadata": ("fromJson",),
    "PythonUtils": ("toSeq",),
    "PythonSQLUtils": (),
}
"""Classes of the JVM with their methods, which are looked up once."""
_TELL_OF_TASKS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
)
"""The loggers of the JVM with messages about failed tasks."""
_HERE = "local[*]"
_TIMEOUT_S = 5.0


_OF_A_CLIENT = (CLIENT_MODE, "SPARK_REMOTE", "SPARK_API_MODE")
"""Environment variables that would make PySpark a client of Spark Connect."""


@dataclass(frozen=True)
class ClassicSession(ApacheSession):
    """A session whose driver is this process; see `EngineSession`."""

    spark: SparkSession
    engine: EngineName = "spark"
    for_few_rows: Mapping[str, str] = field(default_factory=lambda: FEW_ROWS)

    @property
    def version(self) -> str:
        """The version of Apache Spark."""
        return self.spark.version

    @property
    def on_one_machine(self) -> bool:
        """Whether the executors are in the driver's process."""
        return str(self.spark.sparkContext.master).startswith("local")

    @property
    def has_ended(self) -> bool:
        """Whether the JVM of this process has ended."""
        process = getattr(SparkContext._gateway, "proc", None)
        return process is not None and process.poll() is not None

    @property
    def parallelism(self) -> int:
        """The cores of all executors."""
        return self.spark.sparkContext.defaultParallelism

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept by the executors.

        On a cluster two executors keep each partition, so that it is not lost if one dies.
        """
        if self.on_one_machine:
            return rows.localCheckpoint()
        return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK_2)


def start_classic(
    app_name: str,
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    short: bool = False,
) -> ClassicSession:
    """Open the session of a run; under spark-submit with the master of the submit.

    Args:
        app_name: the application's name in Spark's UI.
        conf: the pipeline's settings, which override the defaults.
        master: a Spark master; None: spark-submit's, or this machine.
        short: whether the run is too short for a JVM to warm up.

    Raises:
        InputError: Delta's jars or Java are missing.
        RetryableError: the master does not answer, or its workers give no executor.
    """
    for name in _OF_A_CLIENT:
        os.environ.pop(name, None)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    own_jars = {"spark.jars", "spark.jars.packages"} & {*(conf or {})}
    if not submitted and not own_jars:  # else the submit, or Spark, brings its own jars
        _require_delta()
    if master is not None and master.startswith("spark://"):
        _require_answer(master)
    # expected analysis errors become our own; their JSON traces would only hide them
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    log_no_interruption()
    builder = SparkSession.builder.appName(app_name)
    settings = dict(_SETTINGS)
    if master is not None or not submitted:
        builder = builder.master(master or _HERE)
    if not submitted:
        local = (master or _HERE).startswith("local")
        settings |= local_settings(short=short) if local else cluster_settings()
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    session = ClassicSession(_created(builder, master or _HERE))
    register(session)
    if session.on_one_machine:
        _fit_this_machine(session.spark, own={*(conf or {})})
    else:
        equip_executors(session.spark)
        _use_their_python(session.spark)
    return session


def _created(builder: SparkSession.Builder, master: str) -> SparkSession:
    """The session of a builder; an error names `master`."""
    others = _children()
    try:
        with own_interrupt():
            spark = builder.getOrCreate()
    except KeyboardInterrupt:
        _kill_all_but(others)
        raise
    except (PySparkException, RuntimeError, OSError) as error:
        raise InputError(
            "Spark",
            f"does not start ({str(error).splitlines()[0]})",
            "set JAVA_HOME to a Java 17 or 21, and check --master",
        ) from None
    except Exception as error:  # noqa: BLE001 - py4j hands any JVM exception over as its own
        if master.startswith("local"):
            problem = f"{master!r} cannot be started ({problem_of(error)})"
            raise InputError("--master", problem, "give local[*], or a number of cores") from None
        raise RetryableError(
            f"Spark master {master}",
            f"does not answer ({str(error).splitlines()[0]})",
            "check the address and that the master runs, then try again",
        ) from None
    spark.sparkContext.setLogLevel("ERROR")
    _log_no_failed_task(spark)
    _look_up_once(spark)
    return spark


def _children() -> set[psutil.Process]:
    """The processes that this process, or one of these, has started and that live."""
    return {*psutil.Process().children(recursive=True)}


def _kill_all_but(others: Collection[psutil.Process]) -> None:
    """End the processes of an interrupted start of Spark.

    A JVM that is still starting would find that PySpark has removed the folder for its port, and
    then wait for connections without an end.
    """
    for _ in range(_ENDS_WITHIN_S):  # a script among them may have started one more meanwhile
        started = _children().difference(others)
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(started, timeout=1)
        if not started:
            return


def _fit_this_machine(spark: SparkSession, own: Collection[str]) -> None:
    """Set the defaults for executors in the driver's process, without overriding `own` settings."""
    # whatever `python3` comes first on the PATH, or PYSPARK_PYTHON names: it may lack pyarrow
    spark.sparkContext.pythonExec = sys.executable
    for name in {_PARTITIONS, _LEAST_PARTITIONS} - {*own}:
        spark.conf.set(name, _FEW_PARTITIONS)


def _use_their_python(spark: SparkSession) -> None:
    """Set the executors' Python from the settings, which only spark-submit would read."""
    context = spark.sparkContext
    context.pythonExec = context.getConf().get(WORKERS_PYTHON, context.pythonExec)


def _log_no_failed_task(session: SparkSession) -> None:
    """Switch off the JVM's log messages about tasks that fail: their job raises the same error."""
    jvm: Any = session.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    for name in _TELL_OF_TASKS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def _look_up_once(session: SparkSession) -> None:
    """Cache the JVM classes and methods that every column uses.

    py4j asks the JVM at each use of a name, and searches a short name in all jars.
    """
    jvm = session.sparkContext._jvm
    for name, methods in _ASKED_BY_EVERY_COLUMN.items():
        found = getattr(jvm, name)
        for method in methods:
            setattr(found, method, getattr(found, method))
        setattr(jvm, name, found)


def _require_answer(master: str) -> None:
    """Check that a standalone master accepts connections; Spark itself would retry for a minute."""
    problems = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S):
                return
        except ValueError:
            raise InputError("--master", f"{address!r} is not HOST:PORT", "correct it") from None
        except OSError as error:
            problems.append(f"{address}: {error.strerror or error}")
    raise RetryableError(
        f"Spark master {master}",
        f"does not answer ({'; '.join(problems)})",
        "check the address and that the master runs, then try again",
    )


def _require_delta() -> None:
    if any("delta-spark" in jar.name for jar in delta_jars()):
        return
    other = "; or use Sail, which is installed: --engine sail" if find_spec("pysail") else ""
    raise InputError("Spark", f"{sys.prefix} has no Delta jars", f"run: strandline jars{other}")
