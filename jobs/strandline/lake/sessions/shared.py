"""The check that executors on other machines see the lake."""

from __future__ import annotations

import shutil
from pathlib import Path

from strandline.errors import InputError, problem_of
from strandline.lake.sessions.exceptions import FAILURES
from strandline.lake.sessions.protocol import EngineSession
from strandline.lake.store.lake import Lake


def require_shared(session: EngineSession, lake: Lake, probe: str) -> None:
    """Have every executor write a file into the lake, and check that all files are visible here.

    Without this check, files in a folder that each machine has for itself would be lost silently.

    Args:
        session: the session with the executors.
        lake: the lake.
        probe: the prefix of the files, unique among current runs.

    Raises:
        InputError: an executor does not see the lake's folder, or may not write into it.
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
    """The problem if files of some of the tasks are not visible here; empty if all are."""
    found = len([*folder.glob("part-*.parquet")])
    if found == tasks:
        return ""
    return f"of {tasks} files that the executors wrote into it {tasks - found} are not here"
