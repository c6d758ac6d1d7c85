"""A form of the reprocess DAG as a person fills it in, the calls of its tasks, the end of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

FORM = {
    "pipeline": "flights",
    "start": "2013-02-10",
    "end": "2013-02-13",
    "reason": "the delays were wrong",
}


def job(call: list[str]) -> list[str]:
    """The command and its arguments in a call of `spark-submit`: what follows its script."""
    (script,) = (position for position, one in enumerate(call) if one.endswith(".py"))
    return call[script + 1 :]


def arguments(call: list[str]) -> list[str]:
    """The arguments of the command in a call of `spark-submit`."""
    command, *rest = job(call)
    return rest[1:] if command == "runs" else rest


def kill_once(task: Any, is_under_way: Callable[[], Any]) -> int:
    """Kill a task of Airflow that runs in a thread, once it is under way.

    Returns:
        How often its `execute` has failed: 0 looks like a task that has succeeded.
    """
    from airflow.sdk.exceptions import AirflowException

    ends: list[BaseException] = []

    def execute() -> None:
        try:
            task.execute({})
        except AirflowException as error:
            ends.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    deadline = time.monotonic() + 60
    while not is_under_way():
        assert time.monotonic() < deadline and thread.is_alive()
        time.sleep(0.2)
    task.on_kill()
    thread.join(timeout=10)
    return len(ends)
