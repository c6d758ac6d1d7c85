"""What a day costs after a long history: beside the same day as the only one, in pairs.

    python benchmarks/bench_growth.py [--history 1 30 365] [--channels 64] [--rows 1] [--pairs 3]
                                      [--windows tumbling] [--lake FOLDER] [--output FILE.json]

Each pair runs `strandline` twice, one after the other: over a lake that has published so many days,
and over one that has that day alone. Told are the ratios of wall time, of the peak memory of the
driver's Python, and of what its JVM's heap held alive. That is what full collections leave, which
are asked for all along as many more pairs, whose time does not count. An engine without a JVM
(Sail, Connect) has no heap and no such pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import yaml
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

FIRST_DAY = date(2024, 1, 1)
MINUTE_MS, DAY_MS = 60_000, 86_400_000
STRAGGLERS = 200
"""So many records of each day come late, by up to `LATEST_MS`."""
LATEST_MS = 26 * 60 * MINUTE_MS
WINDOWS = {
    "tumbling": {"tumbling": "1m"},
    "session": {"session": "10s"},  # of some minutes: each key has a record every two seconds
    "seconds": {"tumbling": "10s"},
}
_INSTANT = pa.timestamp("ms", tz="UTC")
_LEFT_ALIVE = re.compile(r"Pause Full \(Diagnostic Command\) \d+M->(\d+)M\(")
_JCMD = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "jcmd"


@dataclass(frozen=True)
class Cost:
    """What one run took: of time and Python's memory or, where that is asked for, of the heap."""

    wall_s: float
    python_mib: float
    heap_mib: float


@dataclass(frozen=True)
class World:
    """The data of a benchmark: by seed, the same everywhere."""

    channels: int
    rows: int
    windows: str
    idleness: bool

    def spec(self) -> dict[str, object]:
        """The pipeline."""
        watermark = {
            "strategy": "bounded_out_of_orderness",
            "bound": "1m",
            "emit": {"every": "1s"},
        }
        return {
            "pipeline": "growth",
            "source": {
                "table": "landing/growth",
                "arrival_date": "arrived_on",
                "arrival_time": "arrived_at",
                "event_time": "happened_at",
                "channel": "channel",
                "channels": [f"{number:04d}" for number in range(self.channels)],
                "key": ["device"],
            },
            "watermark": watermark | ({"idleness": "10m"} if self.idleness else {}),
            "window": WINDOWS[self.windows],
            "allowed_lateness": "0s",
            "aggregates": {"total": "sum(amount)", "arrived": "count(*)"},
            "quality": {"max_late_share": 1.0},
        }

    def day(self, number: int) -> pa.Table:
        """The rows that arrive on a day."""
        random = np.random.default_rng(number)
        step_ms = MINUTE_MS // self.rows
        ticks = np.arange(DAY_MS // step_ms) * step_ms
        start_ms = (FIRST_DAY - date(1970, 1, 1)).days * DAY_MS + number * DAY_MS
        arrived = np.repeat(ticks, self.channels)
        arrived = start_ms + arrived + random.integers(0, step_ms, len(arrived))
        delay = random.integers(0, 30_000, len(arrived))
        late = random.choice(len(arrived), STRAGGLERS, replace=False)
        delay[late] = random.integers(0, LATEST_MS, STRAGGLERS)
        channels = np.tile(np.arange(self.channels), len(ticks))
        names = [f"{number:04d}" for number in range(self.channels)]
        return pa.table(
            {
                "arrived_at": pa.array(arrived, pa.int64()).cast(_INSTANT),
                "happened_at": pa.array(arrived - delay, pa.int64()).cast(_INSTANT),
                "channel": pa.array(names).take(pa.array(channels)),
                "device": pa.array(["ab"[n % 2] for n in range(self.channels)]).take(
                    pa.array(channels)
                ),
                "amount": pa.array(random.integers(0, 100, len(arrived)), pa.int64()),
                "arrived_on": pa.array([self.date(number)] * len(arrived), pa.date32()),
            }
        )

    @staticmethod
    def date(number: int) -> date:
        """The date of a day."""
        return FIRST_DAY + timedelta(days=number)


class Home:
    """A folder with a lake and the pipeline's file."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder, self.world = folder, world
        (folder / "pipelines").mkdir(parents=True, exist_ok=True)
        (folder / "pipelines" / "growth.yaml").write_text(yaml.safe_dump(world.spec()))

    def land(self, numbers: range) -> None:
        """Let some days arrive."""
        for number in numbers:
            write_deltalake(
                str(self.folder / "lake" / "landing" / "growth"),
                self.world.day(number),
                mode="append",
                partition_by=["arrived_on"],
            )

    def copy(self, folder: Path) -> Home:
        """The same elsewhere: Delta never writes into a file that there is, so they are linked."""
        shutil.copytree(self.folder, folder, copy_function=os.link)
        return Home(folder, self.world)

    def run(self, *arguments: str, collecting: bool = False) -> Cost:
        """One command, to its end; `collecting`: with a full collection every second."""
        log, peak, begun = self.folder / "gc.log", 0, time.perf_counter()
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name("strandline")), arguments[0], "growth"),
                    *(*arguments[1:], "--lake", str(self.folder / "lake")),
                    *("--pipelines", str(self.folder / "pipelines")),
                ],
                env=os.environ | {"JDK_JAVA_OPTIONS": f"-Xlog:gc:file={log}"},
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            watched = psutil.Process(process.pid)
            while process.poll() is None:
                with suppress(psutil.Error):
                    peak = max(peak, watched.memory_info().rss)
                    if collecting:
                        _collect(watched)
                time.sleep(1 if collecting else 0.05)
            if process.returncode:
                said.seek(0)
                raise SystemExit(f"{arguments} ended with {process.returncode}: {said.read()}")
        wall_s = time.perf_counter() - begun
        alive = [
            int(found) for found in _LEFT_ALIVE.findall(log.read_text() if log.exists() else "")
        ]
        return Cost(wall_s, peak / 2**20, float(max(alive, default=0)))


def _collect(process: psutil.Process) -> None:
    """Have each JVM below a process collect all that is not alive."""
    for child in process.children(recursive=True):
        if child.name() == "java":
            subprocess.run([_JCMD, str(child.pid), "GC.run"], capture_output=True, check=False)


def measure(world: World, history: int, pairs: int, scratch: Path, *, heap: bool) -> dict[str, Any]:
    """The ratios of one more day, and of one old day as a range, after so many days.

    `heap`: the engine has a JVM whose heap is measured, too.
    """
    long = Home(scratch / f"long-{history}", world)
    long.land(range(history))
    first = long.run("advance", "--to", str(world.date(history)))
    timed = [pair_of_runs(long, history, scratch) for _ in range(pairs)]
    collected = [
        pair_of_runs(long, history, scratch, collecting=True) for _ in range(pairs if heap else 0)
    ]
    shutil.rmtree(long.folder)
    return {
        "history": history,
        "observing all": asdict(first),
        **{
            name: {
                "wall_s": _compared(timed, name, "wall_s"),
                "python_mib": _compared(timed, name, "python_mib"),
                **({"heap_mib": _compared(collected, name, "heap_mib")} if heap else {}),
            }
            for name in timed[0]
        },
    }


def pair_of_runs(
    long: Home, history: int, scratch: Path, *, collecting: bool = False
) -> dict[str, tuple[Cost, Cost]]:
    """What one more day and an old one cost after a history, and what each costs alone."""
    world, old = long.world, history // 2
    after = long.copy(scratch / "after")
    after.land(range(history, history + 1))
    alone, alone_old = Home(scratch / "alone", world), Home(scratch / "alone-old", world)
    alone.land(range(history, history + 1))
    alone_old.land(range(old, old + 1))
    more = "advance", "--to", str(world.date(history + 1))
    again = "backfill", "--start", str(world.date(old)), "--end", str(world.date(old + 1))
    found = {
        name: (
            after.run(*command, collecting=collecting),
            other.run(*command, collecting=collecting),
        )
        for name, command, other in (
            ("one more day", more, alone),
            ("an old day", again, alone_old),
        )
    }
    for home in (after, alone, alone_old):
        shutil.rmtree(home.folder)
    return found


def _compared(
    pairs: list[dict[str, tuple[Cost, Cost]]], name: str, measured: str
) -> dict[str, float]:
    """The medians of what some pairs of runs took, and of their ratios."""
    found = [tuple(getattr(cost, measured) for cost in pair[name]) for pair in pairs]
    return {
        "after": statistics.median(after for after, _ in found),
        "alone": statistics.median(alone for _, alone in found),
        "ratio": statistics.median(after / max(alone, 1e-9) for after, alone in found),
    }


def _rows_in_a_minute(text: str) -> int:
    """A number of rows that a minute's milliseconds can tell apart."""
    rows = int(text)
    if not 1 <= rows <= MINUTE_MS:
        raise argparse.ArgumentTypeError(f"{rows} is not between 1 and {MINUTE_MS}")
    return rows


def main() -> None:
    """Measure, print a table, keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--history", type=int, nargs="+", default=[1, 30, 365])
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument(
        "--rows", type=_rows_in_a_minute, default=1, help="of a channel in a minute (1 to 60,000)"
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--windows", choices=WINDOWS, default="tumbling")
    parser.add_argument("--idleness", action="store_true")
    parser.add_argument(
        "--lake", type=Path, help="a folder for the lakes; default: a temporary one"
    )
    parser.add_argument("--output", type=Path, help="the numbers as JSON")
    chosen = parser.parse_args()
    world = World(chosen.channels, chosen.rows, chosen.windows, chosen.idleness)
    heap = os.environ.get("STRANDLINE_ENGINE", "spark") == "spark"
    with tempfile.TemporaryDirectory(dir=chosen.lake) as scratch:
        found = [
            measure(world, days, chosen.pairs, Path(scratch), heap=heap) for days in chosen.history
        ]
    table = Table(
        "history", "run", "wall s", "alone", "ratio", "Python MiB", "ratio", "heap", "ratio"
    )
    for one in found:
        for name in ("one more day", "an old day"):
            told = one[name]
            wall, python = told["wall_s"], told["python_mib"]
            alive = told.get("heap_mib")
            table.add_row(
                str(one["history"]),
                name,
                *(f"{wall[part]:.1f}" for part in ("after", "alone")),
                f"{wall['ratio']:.2f}",
                f"{python['after']:.0f}",
                f"{python['ratio']:.2f}",
                *((f"{alive['after']:.0f}", f"{alive['ratio']:.2f}") if alive else ("", "")),
            )
    Console().print(table)
    if chosen.output:
        written = {"at": datetime.now(UTC).isoformat(), "world": asdict(world), "found": found}
        chosen.output.write_text(json.dumps(written, indent=2))


if __name__ == "__main__":
    main()
