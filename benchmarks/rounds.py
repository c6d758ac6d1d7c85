"""Jobs run in turn in one process, and what they took beside the first of them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from strandline.lake.sessions.classic import ClassicSession
from strandline.lake.sessions.embedded import EmbeddedSession
from strandline.lake.sessions.protocol import EngineSession

Seconds = dict[str, list[tuple[float, float]]]
"""By job, of each round: seconds, and processor seconds."""
Figures = dict[str, Any]


def interleaved(
    console: Console,
    worked: Callable[[], float],
    jobs: Mapping[str, Callable[[], tuple[float, float] | None]],
    rounds: int,
) -> Seconds:
    """Run all jobs in each round, after a round that warms up and does not count.

    Args:
        console: where each round is shown.
        worked: the processor seconds so far (`meter`).
        jobs: one that runs in another process gives its own seconds, and processor seconds.
        rounds: how many count.
    """
    seconds: Seconds = {name: [] for name in jobs}
    names = list(jobs)
    for number in range(rounds + 1):
        # each round begins with another job, so that none always runs in the same one's wake
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began, before = time.perf_counter(), worked()
            took = jobs[name]() or (time.perf_counter() - began, worked() - before)
            console.print(
                f"round {number}: {name}: {took[0]:.1f} s, of processors {took[1]:.1f} s"
                + " (warm-up)" * (not number)
            )
            if number:
                seconds[name].append(took)
    return seconds


def meter(session: EngineSession) -> Callable[[], float]:
    """What an engine beside this process, and this process, have taken of the processors so far."""
    if isinstance(session, ClassicSession):
        gateway: Any = session.spark.sparkContext._jvm
        engine = gateway.java.lang.ProcessHandle.current().pid()
    elif isinstance(session, EmbeddedSession):
        engine = session.server.pid
    else:
        msg = f"what {session.engine} takes of the processors is not known here"
        raise SystemExit(msg)
    processes = [psutil.Process(pid) for pid in {engine, os.getpid()}]

    def worked() -> float:
        """Processor seconds, the engine's Python workers included."""
        all_of_them = {one for process in processes for one in process.children(recursive=True)}
        total = 0.0
        for process in {*processes, *all_of_them}:
            with suppress(psutil.NoSuchProcess):
                taken = process.cpu_times()
                total += taken.user + taken.system
        return total

    return worked


def figures(seconds: Seconds, parts: Mapping[str, list[float]] | None = None) -> Figures:
    """Least and median of seconds and of ratios to the first job in the same round."""
    base = next(iter(seconds.values()))
    jobs: Figures = {}
    for name, rounds in seconds.items():
        jobs[name] = {}
        for place, kind in enumerate(("", "processor_")):
            took = [one[place] for one in rounds]
            ratios = [
                one[place] / of_base[place] for one, of_base in zip(rounds, base, strict=True)
            ]
            jobs[name][f"{kind}seconds"] = {"min": min(took), "median": statistics.median(took)}
            jobs[name][f"{kind}ratio"] = {"min": min(ratios), "median": statistics.median(ratios)}
    of_parts = {name: statistics.median(took[1:] or took) for name, took in (parts or {}).items()}
    return {"jobs": jobs, "parts": of_parts}


def show(console: Console, title: str, result: Figures) -> None:
    """The figures as a table."""
    base = next(iter(result["jobs"]))
    table = Table(title=f"{title}, ratios to {base} in the same round")
    table.add_column("job")
    for column in ("s min", "s median", "ratio min", "ratio median", "CPU s", "CPU ratio"):
        table.add_column(column, justify="right")
    for name, of_job in result["jobs"].items():
        seconds, ratio = of_job["seconds"], of_job["ratio"]
        worked, of_base = of_job["processor_seconds"], of_job["processor_ratio"]
        table.add_row(
            name,
            f"{seconds['min']:.1f}",
            f"{seconds['median']:.1f}",
            f"{ratio['min']:.2f}",
            f"{ratio['median']:.2f}",
            f"{worked['median']:.1f}",
            f"{of_base['median']:.2f}",
        )
    console.print(table)
    for name, took in result["parts"].items():
        console.print(f"  {name:<16} {took:7.2f} s")


def machine(rows: int) -> Figures:
    """What the figures were measured with."""
    return {
        "rows": rows,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
        "versions": {
            name: version(name) for name in ("pyspark", "delta-spark", "deltalake", "pyarrow")
        }
        | {"python": platform.python_version()},
    }
