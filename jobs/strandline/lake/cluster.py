"""Executors on other machines: what they are sent, and whether they see the lake.

They run no Python, so that neither the library nor its packages are needed there. Only where
records are walked over, or a function of the user's own is called, is Python with pyarrow.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline.engine.frames import on_one_machine
from strandline.errors import InputError, RetryableError, problem_of
from strandline.lake.local import delta_jars
from strandline.lake.store import Lake

_TIMEOUT_S, _PAUSE_S = 120.0, 0.5


def equip_executors(spark: SparkSession) -> None:
    """Send Delta's jars along, whatever Spark the workers have, and wait for a first executor.

    A standalone master lets an application that no worker has room for wait for ever, silently.

    Raises:
        RetryableError: no executor came in two minutes.
    """
    java: Any = spark.sparkContext._jsc
    for jar in delta_jars():
        java.addJar(str(jar))
    master = str(spark.sparkContext.master)
    if not master.startswith("spark://"):
        return  # others say by themselves why an application waits
    there, before = 0, -1
    deadline = time.monotonic() + _TIMEOUT_S
    while there == 0 or there != before:  # the others come within the same moment
        if time.monotonic() > deadline:
            raise _none_came(spark)
        time.sleep(_PAUSE_S)
        try:
            there, before = java.sc().getExecutorMemoryStatus().size() - 1, there
        except Py4JJavaError:  # the master has given up, and Spark has stopped itself
            raise RetryableError(
                f"Spark master {master}",
                "its workers start executors that end at once",
                "see the file stderr of the application in a worker's work folder",
            ) from None


def _none_came(spark: SparkSession) -> RetryableError:
    conf = spark.sparkContext.getConf()
    memory = conf.get("spark.executor.memory", "1g")
    cores = conf.get("spark.executor.cores", "any")
    return RetryableError(
        f"Spark master {spark.sparkContext.master}",
        f"no worker has taken an executor of {memory} and {cores} cores in {_TIMEOUT_S:.0f} s",
        "see on the master's page which workers are alive and what they have free; the pipeline's "
        "spark: block says what is asked (spark.executor.memory, spark.executor.cores)",
    )


def require_shared(spark: SparkSession, lake: Lake) -> None:
    """Have every executor write a file into the lake, and look for each of them from here.

    A folder that each machine has for itself takes what is written there, and says nothing.

    Raises:
        InputError: the lake is a folder that some executor does not see, or may not write into.
    """
    if on_one_machine(spark) or lake.folder is None:
        return
    folder = lake.folder / f"_seen-by-{spark.sparkContext.applicationId}"
    tasks = 2 * spark.sparkContext.defaultParallelism
    try:
        spark.range(0, tasks, 1, tasks).write.parquet(folder.as_uri())
        problem = _missing(folder, tasks)
    except (PySparkException, Py4JJavaError) as error:
        problem = f"an executor cannot write into it: {problem_of(error)}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if problem:
        raise InputError(
            f"lake {lake.root}",
            problem,
            "mount the same storage at this path on every worker, with the right to write for the "
            "worker's user, or give an object store with --lake",
        )


def _missing(folder: Path, tasks: int) -> str:
    found = len([*folder.glob("part-*.parquet")])
    if found == tasks:
        return ""
    return f"of {tasks} files that the executors wrote into it {tasks - found} are not here"
