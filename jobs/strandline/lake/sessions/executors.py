"""The preparation of executors on other machines.

They need neither this library nor its packages. They need Python with pyarrow only if records are
replayed, or a user-defined function is called.
"""

from __future__ import annotations

import time
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from strandline.errors import RetryableError
from strandline.lake.local import delta_jars

_TIMEOUT_S, _PAUSE_S = 120.0, 0.5


def equip_executors(spark: SparkSession) -> None:
    """Send Delta's jars to the workers, and wait for a first executor.

    A standalone master would let an application wait for ever if no worker has free resources.

    Raises:
        RetryableError: no executor has started within two minutes.
    """
    java: Any = spark.sparkContext._jsc
    for jar in delta_jars():
        java.addJar(str(jar))
    master = str(spark.sparkContext.master)
    if not master.startswith("spark://"):
        return  # others say by themselves why an application waits
    executors, before = 0, -1
    deadline = time.monotonic() + _TIMEOUT_S
    while executors == 0 or executors != before:  # the others come within the same moment
        if time.monotonic() > deadline:
            raise _none_came(spark)
        time.sleep(_PAUSE_S)
        try:
            executors, before = java.sc().getExecutorMemoryStatus().size() - 1, executors
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
        f"no worker has started an executor of {memory} and {cores} cores in {_TIMEOUT_S:.0f} s",
        "look at the master's page for live workers and their free resources; the pipeline's "
        "spark: block sets the request (spark.executor.memory, spark.executor.cores)",
    )
