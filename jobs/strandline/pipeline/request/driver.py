"""The process that drives a run: its entry in the ledger, and whether it still lives."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING
from uuid import uuid4

import psutil

from strandline.lake.ledger.entry import UPKEEP, Driver, Entry
from strandline.lake.ledger.ledger import FINAL, OF_RUNS, UNDERWAY
from strandline.lake.publish.adopt import Attempt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = "interrupted"
"""The message of a `failed` step for an interrupted run."""
_DECIDE = ("pyspark", "delta-spark", "deltalake", "great-expectations", "pandas", "pyarrow")
"""The libraries on which the numbers and the audit depend."""
_CLOCKS_DIFFER_S = 1.0
"""The tolerance in seconds for the start of a process, which the system counts in ticks."""


def this_driver(spark: SparkSession) -> Driver:
    """This process, its program, and its engine, for the ledger."""
    # a run that only repeats one has no session, and need not load PySpark
    from strandline.lake.sessions.protocol import session_of  # noqa: PLC0415

    session = session_of(spark)
    return Driver(
        host=socket.gethostname(),
        pid=os.getpid(),
        program_version=f"{version('strandline')}+{program()[:8]}",
        engine=session.engine,
        engine_version=session.version,
    )


def attempt_of(run_id: str) -> Attempt:
    """A new attempt to publish a run."""
    return Attempt(run_id, uuid4().hex, time.time_ns() // 10**6)


def process_of(step: Entry) -> psutil.Process | None:
    """The process of this host that wrote a step; None: it has ended, or is of another host.

    A process that began after the step was written only reuses the process id.
    """
    driver = step.driver
    if driver is None or driver.host != socket.gethostname() or step.written_at is None:
        return None
    try:
        process = psutil.Process(driver.pid)
        ended = process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        begun = process.create_time()
    except psutil.Error:
        return None
    is_it = begun <= step.written_at.timestamp() + _CLOCKS_DIFFER_S
    return process if is_it and not ended else None


def state_of(steps: Sequence[Entry]) -> str:
    """The state of a run by its steps, or by whether its process still lives.

    Returns:
        `published`, `repeated`, `already_processed`, `rejected`, `dropped` or `failed`, as the
        run's last step says it; `interrupted`: it failed by an interruption; `prepared`: its
        staging waits to be published; `running` or `dead`: it has no such step, and its process
        lives or not; `unknown`: the process is on another host, or not recorded, or only a later
        version knows the last step, which may be the end of the run. If only a later version knows
        its kind, its last step's name in place of `dead` and `unknown`.
    """
    if any(step.step == "dropped" for step in steps):
        return "dropped"
    begun = [number for number, step in enumerate(steps) if step.step == "publishing"]
    since = steps[begun[-1] :] if begun else steps  # a rejected one may be publishing by now
    final = next((step for step in reversed(since) if step.step in FINAL), None)
    if final is not None:
        is_interrupted = final.step == "failed" and final.message == INTERRUPTED
        return INTERRUPTED if is_interrupted else final.step
    if since[-1].step == "prepared":
        return "prepared"
    last = last_driven(since)
    if last is not None and process_of(last) is not None:
        return "running"
    if since[-1].kind not in OF_RUNS + UPKEEP:
        return since[-1].step
    is_here = last is not None and last.driver and last.driver.host == socket.gethostname()
    return "dead" if is_here and not is_of_later_version(since[-1]) else "unknown"


def is_of_later_version(step: Entry) -> bool:
    """Whether only a later version knows a step by its name; it may be the end of its run."""
    return step.step not in UNDERWAY + FINAL


def last_driven(steps: Sequence[Entry]) -> Entry | None:
    """The last step that names the process which wrote it; None: none does."""
    return next((step for step in reversed(steps) if step.driver is not None), None)


@cache
def program() -> str:
    """A digest of the installed program, and of the libraries that its numbers depend on."""
    content = hashlib.sha256()
    for name, code in _modules(files("strandline")):
        content.update(f"{name}\n".encode() + code)
    for library in _DECIDE:
        content.update(f"{library} {_version_of(library)}\n".encode())
    return content.hexdigest()[:16]


def _version_of(library: str) -> str:
    """The installed version of a library; `none` if it is missing, like delta-spark beside Sail."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"


def _modules(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        if one.is_dir():
            yield from _modules(one, f"{below}{one.name}/")
        elif one.name.endswith(".py"):
            yield f"{below}{one.name}", one.read_bytes()
