"""The data of the pages, read one request at a time and cached until the pipeline changes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from strandline.lake.store.places import is_uri
from strandline.spec import PipelineSpec
from strandline_airflow import settings
from strandline_airflow.asked_reports import AskedReports, BusyError
from strandline_airflow.page.worker import Worker

_KEPT = AskedReports[dict[str, Any]](most_kept=64, most_waiting=12)
_WORKER = Worker()
_MISSING = ("NoSlotError", "NoSuchRunError")


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
