"""A process that reads the lake for the page; it is kept between requests and restarted."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from threading import Timer
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from strandline_airflow import settings
from strandline_airflow.processes import started

TIMEOUT_S = 60.0
"""The longest time for an answer, in seconds."""
ENDED = {"kind": "Ended", "exit_code": 4}


@dataclass
class Worker:
    """The process `strandline views`, which loads the libraries that Airflow's API does not have.

    It answers one question at a time; a timeout, a lack of memory or a crash fails this question.
    """

    _process: subprocess.Popen[str] | None = None
    _started_for: Any = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question: `found`, or an `error`."""
        line = json.dumps(question) + "\n"
        for _ in range(2):
            is_new = self._process is None
            try:
                process = self._running()
            except AirflowFailException as error:
                return {"error": ENDED | {"message": f"{question['pipeline']}: {error}"}}
            timer = Timer(TIMEOUT_S, process.kill)
            timer.start()
            try:
                answer = _exchanged(process, line)
            finally:
                timer.cancel()
            if answer is not None:
                return answer
            self.end()
            if is_new:  # an older one may have ended for want of questions: it is started again
                break
        problem = f"the process that reads it has ended, or took longer than {TIMEOUT_S:.0f} s"
        return {"error": ENDED | {"message": f"{question['pipeline']}: {problem}; try again"}}

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        environment = settings.job_environment()
        command = [str(settings.executable()), "views"]
        started_for = (command, environment)
        if self._process is not None and self._started_for != started_for:
            self.end()
        if self._process is None:
            with started(command[0]):
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env={**os.environ, **environment},
                )
            self._started_for = started_for
        return self._process


def _exchanged(process: subprocess.Popen[str], line: str) -> dict[str, Any] | None:
    """The answer of the process to a line; None if it has ended, or printed something else."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(line)
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
    except (BrokenPipeError, ValueError):
        return None
    return found if isinstance(found, dict) else None
