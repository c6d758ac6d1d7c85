"""A Spark standalone cluster on this machine: a master, and two workers of one core each."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from strandline.lake.local import delta_jars, spark_folder

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL = {
    "spark.executor.memory": "640m",
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.ui.enabled": "false",
}
"""What a pipeline asks of it in `spark:`."""
_TIMEOUT_S = 240


@dataclass(frozen=True)
class Cluster:
    """The master's address, and the processes of the workers."""

    master: str
    workers: tuple[psutil.Process, psutil.Process]

    def kill_a_worker(self) -> None:
        """Kill a worker and the executor on it, as when its machine goes."""
        worker = self.workers[0]
        executors = worker.children(recursive=True)
        assert executors
        for process in (worker, *executors):
            process.kill()


@contextmanager
def cluster_of_plain_spark(folder: Path) -> Iterator[Cluster]:
    """A cluster whose Spark has neither Delta nor this project; its pages are for this machine."""
    spark = _plain_spark(folder / "spark")
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = _start(spark, "master", "master.Master", "--port", "0")
        started.append(master)
        address = _said(spark, "master", r"Starting Spark master at (\S+)")[0]
        for name in ("worker-1", "worker-2"):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(spark / name))
            started.append(_start(spark, name, "worker.Worker", *work, address))
        _said(spark, "master", r"Registering (worker)", times=2)
        first, second = (psutil.Process(worker.pid) for worker in started[1:])
        yield Cluster(address, (first, second))
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)  # each has a group of its own, with its children
            process.wait()


def _plain_spark(home: Path) -> Path:
    """The Spark of this environment, but for Delta's jars."""
    own = spark_folder()
    assert own is not None
    (home / "jars").mkdir(parents=True)
    for name in ("bin", "python"):
        (home / name).symlink_to(own / name)
    for jar in {*(own / "jars").iterdir()} - {*delta_jars()}:
        (home / "jars" / jar.name).symlink_to(jar)
    return home


def _start(spark: Path, name: str, role: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (spark / name).with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [
                *(str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"),
                *("--host", "127.0.0.1", "--webui-port", "0", *arguments),
            ],
            env={
                **os.environ,
                "SPARK_HOME": str(spark),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
                "JDK_JAVA_OPTIONS": _QUICK,
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _said(spark: Path, name: str, what: str, *, times: int = 1) -> list[str]:
    """What a log says, waited for."""
    log, deadline = (spark / name).with_suffix(".log"), time.monotonic() + _TIMEOUT_S
    while len(found := re.findall(what, log.read_text())) < times:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return found
