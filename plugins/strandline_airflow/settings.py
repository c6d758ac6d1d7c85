"""Where the project's parts lie, and how often a task is tried again."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from strandline.lake.places import path_of

PROJECT = Path(__file__).resolve().parents[2]
JOBS = PROJECT / "jobs"
SPARK_CONNECTION = "spark_default"
ENGINE_CONNECTION = "strandline_engine"
"""Says which engine tasks run on, and where it is; it need not be there."""

RETRIES = 2
"""Tries after the first; exit codes 2 and 3 are never tried again."""
RETRY_DELAY = timedelta(seconds=30)
"""Before the first retry; doubled before each further one."""
MAX_RETRY_DELAY = timedelta(minutes=10)


APPROVAL_TIMEOUT = timedelta(days=1)
"""So long an approval is waited for; until then no other range is reprocessed."""


def lake() -> str:
    """The lake's root: STRANDLINE_LAKE, or `lake/` in the project; a path is made absolute."""
    root = os.environ.get("STRANDLINE_LAKE") or "lake"
    path = path_of(root)
    return root if path is None else str(PROJECT / path)


def pipelines_folder() -> Path:
    """The folder of the pipeline files: STRANDLINE_PIPELINES, or `pipelines/` in the project."""
    return PROJECT / (os.environ.get("STRANDLINE_PIPELINES") or "pipelines")


def job_environment() -> dict[str, str]:
    """What a job reads from its environment: the same lake and pipelines as the DAGs."""
    return {"STRANDLINE_LAKE": lake(), "STRANDLINE_PIPELINES": str(pipelines_folder())}


def executable() -> Path:
    """The `strandline` executable of this environment."""
    return Path(sys.executable).with_name("strandline")


def script_of(command: str) -> str:
    """The script that runs a command of `strandline` under spark-submit."""
    return str(JOBS / f"{command.rsplit(maxsplit=1)[-1]}.py")


def report_file(pipeline: str) -> str:
    """Where `strandline report` puts a pipeline's page."""
    return f"{lake()}/{pipeline}/_reports/report.html"


def task_defaults() -> dict[str, Any]:
    """The `default_args` of every DAG."""
    return {
        "owner": "strandline",
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
        "max_retry_delay": MAX_RETRY_DELAY,
    }
