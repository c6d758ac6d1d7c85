"""P: what a plain groupBy of Apache Spark takes; beside another engine, in a process of its own.

    python benchmarks/plain.py FOLDER WINDOWS

reads a line for each round, and answers it with a line of JSON: seconds, and processor seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, cast

from bids import WINDOWS, of_bids
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from strandline.lake.sessions.remote import CLIENT_MODE
from strandline.spec import PipelineSpec
from strandline.spec.window import Session, Sliding


def plain(spark: SparkSession, folder: Path, spec: PipelineSpec) -> None:
    """Group by window and key, into Delta."""
    bids = spark.read.format("delta").load(str(folder / "landing" / "bids"))
    (
        bids.groupBy(_window(spec), "key")
        .agg(*(F.expr(text).alias(name) for name, text in spec.aggregates.items()))
        .write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .save(str(folder / "plain"))
    )


def _window(spec: PipelineSpec) -> Column:
    window = spec.window
    if isinstance(window, Session):
        return F.session_window("bid_at", f"{window.gap_ms} milliseconds").alias("window")
    if isinstance(window, Sliding):
        size, slide = (f"{ms} milliseconds" for ms in (window.sliding, window.every))
        return F.window("bid_at", size, slide).alias("window")
    ts = F.unix_millis("bid_at")
    return (ts - F.pmod(ts, F.lit(10_000))).alias("start_ms")


class PlainBeside:
    """The same in a process of its own, for an engine that shares none with Apache Spark."""

    def __init__(self, folder: Path, windows: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder), windows],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: of for name, of in os.environ.items() if name != CLIENT_MODE},
        )

    def __call__(self) -> tuple[float, float]:
        """Run it once.

        Returns:
            Its seconds and its processor seconds.
        """
        into, out = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        into.write("once\n")
        into.flush()
        seconds, worked = json.loads(out.readline())
        return float(seconds), float(worked)

    def end(self) -> None:
        """End the process."""
        cast("IO[str]", self._process.stdin).close()
        self._process.wait()


def _serve(folder: Path, windows: str) -> None:
    from rounds import meter  # noqa: PLC0415

    from strandline.lake.sessions.classic import start_classic  # noqa: PLC0415

    session = start_classic("plain", {"spark.driver.memory": "8g"})
    worked, spec = meter(session), of_bids(window=WINDOWS[windows])
    for _ in sys.stdin:
        began, before = time.perf_counter(), worked()
        plain(session.spark, folder, spec)
        print(json.dumps([time.perf_counter() - began, worked() - before]), flush=True)
    session.stop()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2])
