"""Where the command, the lake and the pipelines are, and how often a task is tried again.

What an operator or a DAG file is given comes first, then the connection, then the environment.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import strandline
from strandline.errors import InputError
from strandline.lake.places import path_of
from strandline_airflow.connection import CONNECTION, in_connection, store_environment

SPARK_CONNECTION = "spark_default"
ENTRY_POINT = Path(strandline.__file__).parent / "cli" / "entry" / "strandline_job.py"
"""The file that starts a command as a Spark application."""

RETRIES = 2
"""Tries after the first; exit codes 2 and 3 are never tried again."""
RETRY_DELAY = timedelta(seconds=30)
"""Before the first retry; doubled before each further one."""
MAX_RETRY_DELAY = timedelta(minutes=10)


APPROVAL_TIMEOUT = timedelta(days=1)
"""So long an approval is waited for; until then no other range is reprocessed."""


def lake(given: str | None = None) -> str:
    """The lake's root; a path is made absolute.

    Raises:
        InputError: nobody says where it is.
    """
    root = _found(given, "lake", "STRANDLINE_LAKE")
    path = path_of(root)
    return root if path is None else str(path.absolute())


def pipelines_folder(given: str | Path | None = None) -> Path:
    """The folder of the pipeline files.

    Raises:
        InputError: nobody says where it is.
    """
    return Path(_found(given, "pipelines", "STRANDLINE_PIPELINES")).absolute()


def _found(given: str | Path | None, name: str, variable: str) -> str:
    found = given or in_connection(name) or os.environ.get(variable)
    if not found:
        way_out = (
            f"give `{name}` to the DAG file, to the connection {CONNECTION!r}, or set {variable}"
        )
        raise InputError(name, "nobody says where it is", way_out)
    return str(found)


def job_environment(
    given_lake: str | None = None, given_pipelines: str | Path | None = None
) -> dict[str, str]:
    """What a job reads from its environment: the same lake and pipelines as the DAGs.

    And the credentials of the lake's object store, where a connection has them.
    """
    return {
        **store_environment(),
        "STRANDLINE_LAKE": lake(given_lake),
        "STRANDLINE_PIPELINES": str(pipelines_folder(given_pipelines)),
    }


def executable() -> Path:
    """The `strandline` executable: the connection's, which may be of another environment."""
    return Path(in_connection("executable") or Path(sys.executable).with_name("strandline"))


def report_file(pipeline: str, given_lake: str | None = None) -> str:
    """Where `strandline report` puts a pipeline's page."""
    return f"{lake(given_lake)}/{pipeline}/_reports/report.html"


def task_defaults() -> dict[str, Any]:
    """The `default_args` of every DAG."""
    return {
        "owner": "strandline",
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
        "max_retry_delay": MAX_RETRY_DELAY,
    }
