"""The data of the pages, read by one process at a time and cached until the pipeline changes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from airflow.sdk.exceptions import AirflowFailException
from fastapi import HTTPException

from strandline.lake.store.places import is_uri
from strandline.spec import PipelineSpec
from strandline_airflow import settings
from strandline_airflow.asked_reports import AskedReports, BusyError
from strandline_airflow.processes import started

TIMEOUT_S = 60.0
"""The longest time for an answer, in seconds."""
_ENDED = {"kind": "Ended", "exit_code": 4}
_MISSING = ("NoSlotError", "NoSuchRunError")
_KEPT = AskedReports[dict[str, Any]](most_kept=64, most_waiting=12)


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
                return {"error": _ENDED | {"message": f"{question['pipeline']}: {error}"}}
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
        return {"error": _ENDED | {"message": f"{question['pipeline']}: {problem}; try again"}}

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


_WORKER = Worker()


class NoRunsHereError(Exception):
    """The pipeline has not run yet."""


class UnreadableError(Exception):
    """A pipeline's tables cannot be read; the message has place, problem and way out."""


def state_of(pipeline: str) -> int:
    """The time of the run history's last commit, in ns; 0 if there is none.

    On an object store: the current minute, so that what is cached is at most a minute old.
    """
    lake = settings.lake()
    if is_uri(lake):
        return now_ms() // 60_000
    log = Path(lake) / pipeline / "runs" / "_delta_log"
    return log.stat().st_mtime_ns if log.is_dir() else 0


def now_ms() -> int:
    """The current time in ms since 1970."""
    return int(time.time() * 1000)


def view(name: str, spec: PipelineSpec, **asked: Any) -> Any:
    """A view of a pipeline: see `strandline.pipeline.views.answers`.

    Raises:
        NoRunsHereError: the pipeline has not run.
        HTTPException: 404: it has no such day, slot or run; 503: too many requests are waiting.
        UnreadableError: its tables cannot be read.
    """
    pipeline = spec.pipeline
    question = {"view": name, "pipeline": pipeline, "asked": asked}
    what = (settings.lake(), spec.spec_fingerprint, state_of(pipeline), name, *asked.items())

    def read() -> dict[str, Any]:
        answer = _WORKER.ask(question)
        if "error" in answer:
            raise _refusal_of(answer["error"])
        return answer

    try:
        return _KEPT.page((pipeline, what), read)["found"]
    except BusyError:
        problem = "Other pages are being read from the lake: try again in a few seconds."
        raise HTTPException(503, problem, headers={"Retry-After": "5"}) from None


def _refusal_of(error: dict[str, Any]) -> Exception:
    if error["kind"] == "NoRunsError":
        return NoRunsHereError(error["message"])
    if error["kind"] in _MISSING:
        return HTTPException(404, error["message"])
    return UnreadableError(error["message"])
