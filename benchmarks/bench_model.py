"""What triggers and joins cost: ratios to the same windows, or to plain Spark, in one process.

    python benchmarks/bench_model.py [--rows 5000000] [--rounds 3] [--lake FOLDER]
                                     [--output FILE.json] [--engine spark|sail]
                                     [--lines continuous count function join advise]

P is what Apache Spark takes, beside another engine in a process of its own.

- continuous: windows of a minute that fire every ten seconds as well, beside the same windows, both
  with every firing kept.
- count: windows of ten seconds that fire after every tenth record, beside a plain groupBy into
  such windows (P), which ignores lateness.
- function: windows of ten seconds that hand their bids to a Python function, beside the same
  windows with aggregates.
- join: pairs of the bids of two halves within a second, beside Spark's own range join (P), which
  ignores lateness. P tries each with each of its key: four times as long for twice the bids.
- advise: losses and delays of every setting, beside a plain groupBy of the same bids (P).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

import bids
from bench import Bench
from bids import SIDES, land, land_halves, of_bids, of_pairs
from plain import PlainBeside
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rounds import figures, interleaved, machine, meter, show

from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.protocol import session_of
from strandline.lake.sessions.start import start
from strandline.pipeline.advise.advice import Question
from strandline.pipeline.advise.advise import advise
from strandline.spec.process import Process

SPREAD = Process(
    name="bench_spread:spread",
    files={
        "bench_spread.py": """
import pyarrow.compute as pc


def spread(key, window, records, watermark):
    least_and_most = pc.min_max(records["price"]).as_py()
    return [{"bids": records.num_rows, "spread": least_and_most["max"] - least_and_most["min"]}]
"""
    },
)
RETURNS = {"bids": "bigint", "spread": "bigint"}

Jobs = Mapping[str, Callable[[], tuple[float, float] | None]]


def _continuous(spark: SparkSession, folder: Path) -> Jobs:
    windows = {"window": {"tumbling": "60s"}, "firings": True}
    early = of_bids(**windows, trigger={"continuous": "10s"})
    return {
        "the same windows": Bench(spark, folder, of_bids(**windows)).engine_cold,
        "continuous: 10s": Bench(spark, folder, early).engine_cold,
    }


def _count(spark: SparkSession, folder: Path) -> Jobs:
    counting = Bench(spark, folder, of_bids(trigger={"count": 10}, firings=True))
    last = of_bids(evictor={"count": 5}, firings=False)
    return {
        "plain Spark (P)": _plain(counting),
        "count: 10": counting.engine_cold,
        "evictor, count: 5": Bench(spark, folder, last).engine_cold,
    }


def _plain(bench: Bench) -> Callable[[], tuple[float, float] | None]:
    if session_of(bench.spark).engine == "spark":
        return bench.plain
    return PlainBeside(bench.folder, "tumbling")


def _function(spark: SparkSession, folder: Path) -> Jobs:
    called = of_bids(aggregates={}).model_copy(update={"process": SPREAD, "returns": RETURNS})
    return {
        "the same windows": Bench(spark, folder, of_bids()).engine_cold,
        "a function": Bench(spark, folder, called).engine_cold,
    }


def _join(spark: SparkSession, folder: Path) -> Jobs:
    land_halves(spark, folder)
    return {
        "plain Spark (P)": partial(_plain_join, spark, folder),
        "interval join": Bench(spark, folder, of_pairs()).engine_cold,
    }


def _advise(spark: SparkSession, folder: Path) -> Jobs:
    bench = Bench(spark, folder, of_bids())

    def advice() -> None:
        advise(bench.spec, bench.lake, Question(Fraction("0.999")), spark)

    return {"plain Spark (P)": _plain(bench), "advise": advice}


def _plain_join(spark: SparkSession, folder: Path) -> None:
    """P: what Spark's range join takes."""
    left, right = (
        spark.read.format("delta").load(str(folder / "landing" / name)).alias(name)
        for name in SIDES
    )
    apart = F.unix_millis("right.bid_at") - F.unix_millis("left.bid_at")
    pairs = left.join(right, (F.col("left.key") == F.col("right.key")) & apart.between(-1000, 1000))
    columns = [F.col(f"{side}.{c}").alias(f"{side}_{c}") for side in SIDES for c in left.columns]
    pairs.select(*columns).write.format("delta").mode("overwrite").save(str(folder / "plain_pairs"))


LINES = {
    "continuous": _continuous,
    "count": _count,
    "function": _function,
    "join": _join,
    "advise": _advise,
}


def main() -> None:
    """Run the rounds and show the tables."""
    options = _options()
    console = Console()
    choice = EngineChoice(options.engine)
    results = {}
    folder = Path(options.lake or "lake").absolute() / f"bench-{options.rows}"
    if choice.name != "spark":  # before this process is a client, whose variables others inherit
        wanted = [sys.executable, bids.__file__, str(folder), str(options.rows)]
        subprocess.run(wanted, check=True)
    memory = {"spark.driver.memory": "8g"} if choice.name == "spark" else {}
    session = start(choice, "strandline bench", memory)
    spark, worked = session.spark, meter(session)
    if choice.name == "spark":
        land(spark, folder, options.rows)
    for line in options.lines:
        seconds = interleaved(console, worked, LINES[line](spark, folder), options.rounds)
        results[line] = figures(seconds)
        show(console, f"{line}: {options.rows:,} bids", results[line])
    if options.output:
        told = machine(options.rows) | {"lines": results}
        Path(options.output).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    session.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", nargs="+", choices=list(LINES), default=list(LINES))
    parser.add_argument("--engine", choices=["spark", "sail"], default="spark")
    parser.add_argument("--lake")
    parser.add_argument("--output")
    return parser.parse_args()


if __name__ == "__main__":
    main()
