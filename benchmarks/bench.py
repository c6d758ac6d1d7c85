"""What exactness costs: ratios to plain Spark's groupBy, interleaved in one process.

    python benchmarks/bench.py [--rows 20000000] [--rounds 5] [--lake FOLDER] [--output FILE.json]
                               [--windows tumbling sliding session]

P is the plain job: group by window and key, into Delta; it ignores lateness. Tumbling windows are
told by integer arithmetic, sliding ones by Spark's `window`, sessions by its `session_window`.

Beside the seconds stand the processor seconds of Spark and Python: on a machine that others use
too they tell more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from bids import SPEC, WINDOWS, land
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from strandline.engine.position.axis import Axis
from strandline.lake.landing import Landing
from strandline.lake.ledger import Ledger
from strandline.lake.session import spark_session
from strandline.lake.staged_cells import CELLS
from strandline.lake.store import Lake
from strandline.model.intervals import EVERYTHING
from strandline.pipeline.context import Context
from strandline.pipeline.memory import Remembered
from strandline.pipeline.observation import Observation
from strandline.pipeline.observe import observe_landing
from strandline.pipeline.plan import axis_of
from strandline.pipeline.plan_backfill import plan_backfill
from strandline.pipeline.rebuild import rebuild_into_staging
from strandline.pipeline.request import Request
from strandline.pipeline.run import run
from strandline.pipeline.world import world_of
from strandline.spec import parse_spec
from strandline.spec.window import Session, Sliding

_SCRATCH = "bids"
Figures = dict[str, Any]


class Bench:
    """The jobs that are compared, each from nothing to written tables."""

    def __init__(self, spark: SparkSession, folder: Path, windows: str) -> None:
        self.spark, self.folder = spark, folder
        self.spec = parse_spec({**SPEC, "window": WINDOWS[windows]}, origin="bids")
        self.lake = Lake.at(str(folder))
        self.parts: dict[str, list[float]] = {}

    def plain(self) -> None:
        """P: what a plain groupBy takes."""
        bids = self.spark.read.format("delta").load(str(self.folder / "landing" / "bids"))
        (
            bids.groupBy(self._plain_window(), "key")
            .agg(*(F.expr(text).alias(name) for name, text in self.spec.aggregates.items()))
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .save(str(self.folder / "plain"))
        )

    def _plain_window(self) -> Column:
        window = self.spec.window
        if isinstance(window, Session):
            return F.session_window("bid_at", f"{window.gap_ms} milliseconds").alias("window")
        if isinstance(window, Sliding):
            size, slide = (f"{ms} milliseconds" for ms in (window.sliding, window.every))
            return F.window("bid_at", size, slide).alias("window")
        ts = F.unix_millis("bid_at")
        return (ts - F.pmod(ts, F.lit(10_000))).alias("start_ms")

    def engine_cold(self) -> None:
        """Timeline, windows, quarantine, completeness."""
        self._clear()
        began = time.perf_counter()
        context, seen, axis = self._observe()
        self._part("observe", began)
        self._rebuild(context, seen, axis)

    def engine_warm(self) -> None:
        """The same with the timeline at hand."""
        context, seen, axis = self._observed
        for part in Path(context.store.staging(context.run_id)).iterdir():
            if part.name != CELLS:  # of many days they lie there until the timeline takes them
                shutil.rmtree(part)
        self._rebuild(context, seen, axis)

    def whole_run(self) -> None:
        """Everything: staging, audit, diff, publish, ledger, on a lake without tables."""
        self._clear()
        outcome = run(self.spec, self.lake, Request("backfill", range=EVERYTHING), self.spark)
        for step, seconds in outcome.seconds.items():
            self.parts.setdefault(f"run: {step}", []).append(seconds)

    def _observe(self) -> tuple[Context, Observation, Axis]:
        landing = Landing.open(self.spark, self.lake, self.spec)
        ledger = Ledger(self.lake.pipeline(self.spec.pipeline))
        context = Context(self.spark, self.spec, self.lake, landing, ledger, "bench", dry_run=False)
        axis = axis_of(landing, [])
        horizon_ms = axis.horizon_after(landing.last_arrival(axis) or 0)
        world = world_of(landing, context.store, [])
        seen = observe_landing(landing, context.staging, axis, horizon_ms, world)
        self._observed = (context, seen, axis)
        self._horizon_ms = horizon_ms
        return self._observed

    def _rebuild(self, context: Context, seen: Observation, axis: Axis) -> None:
        began = time.perf_counter()
        asked = Request("backfill", range=EVERYTHING)
        plan = plan_backfill(asked, seen.history, self._horizon_ms, Remembered([]), seen.world)
        rebuild_into_staging(context, seen, plan, axis)
        self._part("rebuild", began)

    def _clear(self) -> None:
        shutil.rmtree(self.folder / _SCRATCH, ignore_errors=True)

    def processor_seconds(self) -> float:
        """What Spark's JVM and this process have taken of the processors so far."""
        gateway: Any = self.spark.sparkContext._jvm
        jvm = gateway.java.lang.ProcessHandle.current().pid()
        times = [psutil.Process(pid).cpu_times() for pid in (jvm, os.getpid())]
        return float(sum(taken.user + taken.system for taken in times))

    def _part(self, name: str, began: float) -> None:
        self.parts.setdefault(name, []).append(time.perf_counter() - began)


def main() -> None:
    """Run the rounds and show the table."""
    options = _options()
    console = Console()
    spark = spark_session("strandline bench", {"spark.driver.memory": "8g"})
    folder = Path(options.lake or f"lake/bench-{options.rows}").absolute()
    began = time.perf_counter()
    land(spark, folder, options.rows)
    console.print(f"{options.rows:,} bids at hand after {time.perf_counter() - began:.0f} s")
    results = {}
    for windows in options.windows:
        results[windows] = _rounds(console, Bench(spark, folder, windows), options.rounds)
        _show(console, windows, options.rows, results[windows])
    if options.output:
        told = _machine(options.rows) | {"windows": results}
        Path(options.output).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    spark.stop()


def _rounds(console: Console, bench: Bench, rounds: int) -> Figures:
    jobs = {
        "plain Spark (P)": bench.plain,
        "engine, cold": bench.engine_cold,
        "engine, timeline at hand": bench.engine_warm,
        "whole first run": bench.whole_run,
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    names = list(jobs)
    for number in range(rounds + 1):
        # each round begins with another job, so that none always runs in the same one's wake
        first = number % len(names)
        for name in names[first:] + names[:first]:
            job = jobs[name]
            began, worked = time.perf_counter(), bench.processor_seconds()
            job()
            took = time.perf_counter() - began, bench.processor_seconds() - worked
            console.print(
                f"round {number}: {name}: {took[0]:.1f} s, of processors {took[1]:.1f} s"
                + " (warm-up)" * (not number)
            )
            if number:
                seconds[name].append(took)
    return _figures(seconds, bench.parts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--windows", nargs="+", choices=list(WINDOWS), default=list(WINDOWS))
    parser.add_argument("--lake")
    parser.add_argument("--output")
    return parser.parse_args()


def _figures(
    seconds: dict[str, list[tuple[float, float]]], parts: dict[str, list[float]]
) -> Figures:
    plain = seconds["plain Spark (P)"]
    jobs: Figures = {}
    for name, rounds in seconds.items():
        jobs[name] = {}
        for place, kind in enumerate(("", "processor_")):
            took = [one[place] for one in rounds]
            ratios = [one[place] / p[place] for one, p in zip(rounds, plain, strict=True)]
            jobs[name][f"{kind}seconds"] = {"min": min(took), "median": statistics.median(took)}
            jobs[name][f"{kind}ratio"] = {"min": min(ratios), "median": statistics.median(ratios)}
    of_parts = {name: statistics.median(took[1:] or took) for name, took in parts.items()}
    return {"jobs": jobs, "parts": of_parts}


def _machine(rows: int) -> Figures:
    return {
        "rows": rows,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
        "versions": {
            name: version(name) for name in ("pyspark", "delta-spark", "deltalake", "pyarrow")
        }
        | {"python": platform.python_version()},
    }


def _show(console: Console, windows: str, rows: int, result: Figures) -> None:
    table = Table(title=f"{windows}: {rows:,} bids, ratios to P in the same round")
    table.add_column("job")
    for column in ("s min", "s median", "ratio min", "ratio median", "CPU s", "CPU ratio"):
        table.add_column(column, justify="right")
    for name, figures in result["jobs"].items():
        seconds, ratio = figures["seconds"], figures["ratio"]
        worked, of_plain = figures["processor_seconds"], figures["processor_ratio"]
        table.add_row(
            name,
            f"{seconds['min']:.1f}",
            f"{seconds['median']:.1f}",
            f"{ratio['min']:.2f}",
            f"{ratio['median']:.2f}",
            f"{worked['median']:.1f}",
            f"{of_plain['median']:.2f}",
        )
    console.print(table)
    for name, took in result["parts"].items():
        console.print(f"  {name:<16} {took:7.2f} s")


if __name__ == "__main__":
    main()
