"""What exactness costs: ratios to plain Spark's groupBy, interleaved in one process.

    python benchmarks/bench.py [--rows 20000000] [--rounds 5] [--lake FOLDER] [--output FILE.json]
                               [--windows tumbling sliding session] [--engine spark|sail]

P is the plain job of Apache Spark: group by window and key, into Delta; it ignores lateness. Beside
another engine it runs in a process of its own, in turn with the others. Tumbling windows are
told by integer arithmetic, sliding ones by Spark's `window`, sessions by its `session_window`.

Beside the seconds stand the processor seconds of Spark and Python: on a machine that others use
too they tell more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import bids
from bids import WINDOWS, land, of_bids
from plain import PlainBeside, plain
from pyspark.sql import SparkSession
from rich.console import Console
from rounds import figures, interleaved, machine, meter, show

from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.start import start
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.staged_cells import CELLS
from strandline.model.intervals import EVERYTHING
from strandline.pipeline.observe.landing_status import landing_status_of
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.observe.observe import observe_landing
from strandline.pipeline.plan.backfill import plan_backfill
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.rebuild import rebuild_into_staging
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request
from strandline.pipeline.run import run
from strandline.spec import PipelineSpec

_STAGING = "_staging"


class Bench:
    """The jobs that are compared, each from nothing to written tables."""

    def __init__(self, spark: SparkSession, folder: Path, spec: PipelineSpec) -> None:
        self.spark, self.folder, self.spec = spark, folder, spec
        self.lake = Lake.at(str(folder))
        self.parts: dict[str, list[float]] = {}

    def plain(self) -> None:
        """P: what a plain groupBy takes."""
        plain(self.spark, self.folder, self.spec)

    def engine_cold(self) -> None:
        """Timeline, windows, quarantine, completeness."""
        self._clear()
        began = time.perf_counter()
        context, seen = self._observe()
        self._part("observe", began)
        self._rebuild(context, seen)

    def engine_warm(self) -> None:
        """The same with the timeline at hand."""
        context, seen = self._observed
        for part in Path(context.store.staging(context.run_id)).glob("*"):
            if part.name != CELLS:  # of many days they lie there until the timeline takes them
                shutil.rmtree(part, ignore_errors=True)
        self._rebuild(context, seen)

    def whole_run(self) -> None:
        """Everything: staging, audit, diff, publish, ledger, on a lake without tables."""
        self._clear(but=_STAGING)  # there may lie what was observed
        outcome = run(self.spec, self.lake, Request("backfill", range=EVERYTHING), self.spark)
        for step, seconds in outcome.seconds.items():
            self.parts.setdefault(f"run: {step}", []).append(seconds)

    def _observe(self) -> tuple[Context, Observation]:
        landing = open_landing(self.spark, self.lake, self.spec)
        ledger = Ledger(self.lake.pipeline(self.spec.pipeline))
        context = Context(self.spark, self.spec, self.lake, landing, ledger, "bench", dry_run=False)
        axis = landing.axis(PipelineState())
        horizon_ms = landing.horizon_after(axis)
        status = landing_status_of(landing, context.store, PipelineState())
        seen = observe_landing(landing, context.staging, axis, horizon_ms, status)
        self._observed = (context, seen)
        self._horizon_ms = horizon_ms
        return self._observed

    def _rebuild(self, context: Context, seen: Observation) -> None:
        began = time.perf_counter()
        asked = Request("backfill", range=EVERYTHING)
        earlier = EarlierRuns(context, asked, PipelineState(), seen)
        plan = plan_backfill(asked, seen.history, self._horizon_ms, earlier, seen.status)
        rebuild_into_staging(context, PlannedRun(PipelineState(), seen, plan))
        self._part("rebuild", began)

    def _clear(self, but: str | None = None) -> None:
        for part in (self.folder / self.spec.pipeline).glob("*"):
            if part.name != but:
                shutil.rmtree(part, ignore_errors=True)

    def _part(self, name: str, began: float) -> None:
        self.parts.setdefault(name, []).append(time.perf_counter() - began)


def main() -> None:
    """Run the rounds and show the table."""
    options = _options()
    console = Console()
    choice = EngineChoice(options.engine)
    memory = {"spark.driver.memory": "8g"} if choice.name == "spark" else {}
    folder = Path(options.lake or f"lake/bench-{options.rows}").absolute()
    began = time.perf_counter()
    if choice.name != "spark":  # before this process is a client, whose variables others inherit
        wanted = [sys.executable, bids.__file__, str(folder), str(options.rows)]
        subprocess.run(wanted, check=True)
    session = start(choice, "strandline bench", memory)
    spark, worked = session.spark, meter(session)
    if choice.name == "spark":
        land(spark, folder, options.rows)
    console.print(f"{options.rows:,} bids at hand after {time.perf_counter() - began:.0f} s")
    results = {}
    for windows in options.windows:
        bench = Bench(spark, folder, of_bids(window=WINDOWS[windows]))
        beside = None if choice.name == "spark" else PlainBeside(folder, windows)
        jobs = {
            "plain Spark (P)": beside or bench.plain,
            "engine, cold": bench.engine_cold,
            "engine, timeline at hand": bench.engine_warm,
            "whole first run": bench.whole_run,
        }
        took = interleaved(console, worked, jobs, options.rounds)
        if beside is not None:
            beside.end()
        results[windows] = figures(took, bench.parts)
        show(console, f"{windows}: {options.rows:,} bids", results[windows])
    if options.output:
        told = machine(options.rows) | {"windows": results}
        Path(options.output).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    session.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["spark", "sail"], default="spark")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--windows", nargs="+", choices=list(WINDOWS), default=list(WINDOWS))
    parser.add_argument("--lake")
    parser.add_argument("--output")
    return parser.parse_args()


if __name__ == "__main__":
    main()
