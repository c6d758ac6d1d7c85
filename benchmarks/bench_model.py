"""What triggers and joins cost: ratios to the same windows, or to plain Spark, in one process.

    python benchmarks/bench_model.py [--rows 5000000] [--rounds 3] [--lake FOLDER]
                                     [--output FILE.json] [--lines continuous count]

- continuous: windows of a minute that fire every ten seconds as well, beside the same windows, both
  with every firing kept.
- count: windows of ten seconds that fire after every tenth record, beside a plain groupBy into
  such windows (P), which ignores lateness.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import Bench
from bids import land
from pyspark.sql import SparkSession
from rich.console import Console
from rounds import figures, interleaved, machine, show

from strandline.lake.session import spark_session

Jobs = Mapping[str, Callable[[], None]]


def _continuous(spark: SparkSession, folder: Path) -> Jobs:
    windows = {"window": {"tumbling": "60s"}, "firings": True}
    return {
        "the same windows": Bench(spark, folder, **windows).engine_cold,
        "continuous: 10s": Bench(
            spark, folder, **windows, trigger={"continuous": "10s"}
        ).engine_cold,
    }


def _count(spark: SparkSession, folder: Path) -> Jobs:
    counting = Bench(spark, folder, trigger={"count": 10}, firings=True)
    return {"plain Spark (P)": counting.plain, "count: 10": counting.engine_cold}


LINES = {"continuous": _continuous, "count": _count}


def main() -> None:
    """Run the rounds and show the tables."""
    options = _options()
    console = Console()
    spark = spark_session("strandline bench", {"spark.driver.memory": "8g"})
    folder = Path(options.lake or f"lake/bench-{options.rows}").absolute()
    land(spark, folder, options.rows)
    results = {}
    for line in options.lines:
        seconds = interleaved(console, spark, LINES[line](spark, folder), options.rounds)
        results[line] = figures(seconds)
        show(console, f"{line}: {options.rows:,} bids", results[line])
    if options.output:
        told = machine(options.rows) | {"lines": results}
        Path(options.output).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    spark.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", nargs="+", choices=list(LINES), default=list(LINES))
    parser.add_argument("--lake")
    parser.add_argument("--output")
    return parser.parse_args()


if __name__ == "__main__":
    main()
