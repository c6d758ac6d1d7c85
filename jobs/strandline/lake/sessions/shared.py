"""Whether executors on other machines see the lake."""

from __future__ import annotations

import shutil
from pathlib import Path

from strandline.errors import InputError, problem_of
from strandline.lake.sessions.failures import FAILURES
from strandline.lake.sessions.protocol import EngineSession
from strandline.lake.store import Lake


def require_shared(session: EngineSession, lake: Lake, probe: str) -> None:
    """Have every executor write a file into the lake, and look for each of them from here.

    A folder that each machine has for itself takes what is written there, and says nothing.

    Args:
        session: whose executors are asked.
        lake: where they must be able to write.
        probe: names the files; no other run that is under way has the same one.

    Raises:
        InputError: the lake is a folder that some executor does not see, or may not write into.
    """
    if session.on_one_machine or lake.folder is None:
        return
    folder = lake.folder / f"_seen-by-{probe}"
    tasks = 2 * session.parallelism
    try:
        session.spark.range(0, tasks, 1, tasks).write.parquet(session.to_write(str(folder)))
        problem = _missing(folder, tasks)
    except FAILURES as error:
        problem = f"an executor cannot write into it: {problem_of(error)}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if problem:
        raise InputError(
            f"lake {lake.root}",
            problem,
            "mount the same storage at this path on every worker, with the right to write for the "
            "worker's user, or give an object store with --lake",
        )


def _missing(folder: Path, tasks: int) -> str:
    found = len([*folder.glob("part-*.parquet")])
    if found == tasks:
        return ""
    return f"of {tasks} files that the executors wrote into it {tasks - found} are not here"
