"""The reports, served by Airflow to signed-in users."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from airflow.sdk.exceptions import AirflowFailException
from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import FileResponse, HTMLResponse, Response

from strandline.errors import InputError
from strandline.lake.store.places import is_uri
from strandline_airflow import settings
from strandline_airflow.answers import answer_file
from strandline_airflow.asked_reports import TIMEOUT_S, AskedReports, BusyError
from strandline_airflow.outcomes import failure_of
from strandline_airflow.page.access import ReadablePipeline
from strandline_airflow.page.views import state_of
from strandline_airflow.processes import started

# The page runs its own scripts only, as nobody: it holds values out of the data, and Airflow's
# cookie and API must stay out of their reach.
_POLICY = "sandbox allow-scripts; default-src 'none'; img-src data: blob:; font-src data:; "
_POLICY += "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'"

router = APIRouter()
_ASKED = AskedReports[str]()
_Day = Annotated[str | None, Query(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


@router.get("/reports/{pipeline}")
def report(spec: ReadablePipeline, since: _Day = None, until: _Day = None) -> Response:
    """The last report of a pipeline; on request for the days of a query, and on an object store."""
    pipeline = spec.pipeline
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    where = settings.report_file(pipeline)
    if since or until or is_uri(where):
        return HTMLResponse(_asked_report(pipeline, since, until), headers=headers)
    if not Path(where).is_file():
        raise HTTPException(404, "There is no report yet: run the DAG strandline_report.")
    return FileResponse(where, media_type="text/html", headers=headers)


def _asked_report(pipeline: str, since: str | None, until: str | None) -> str:
    """The report of the queried days, cached until the pipeline's run history changes."""
    shown = (settings.lake(), pipeline, since, until, state_of(pipeline))
    try:
        return _ASKED.page(shown, lambda: _report_of(pipeline, since=since, until=until))
    except BusyError:
        problem = "Other reports are being made: try again in a minute."
        raise HTTPException(503, problem, headers={"Retry-After": "60"}) from None
    except AirflowFailException as error:
        raise HTTPException(503, str(error)) from None
    except subprocess.TimeoutExpired:
        problem = f"It took longer than {TIMEOUT_S:.0f} s: ask for fewer days, or run the DAG "
        raise HTTPException(504, f"{problem}strandline_report.") from None


def _report_of(pipeline: str, **days: str | None) -> str:
    """The report of the queried days, made in a process: its libraries are not loaded here."""
    command = settings.executable()
    asked = [f"--{name}={day}" for name, day in days.items() if day]
    with TemporaryDirectory() as folder, answer_file() as file:
        arguments = ["report", pipeline, *asked, "--no-docs", f"--output={folder}", "--json"]
        with started(str(command)):
            done = subprocess.run(
                [str(command), *arguments],
                check=False,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                env={**os.environ, **settings.job_environment(), **file.environment},
            )
        if done.returncode:
            status = 400 if done.returncode == InputError.exit_code else 500
            output = done.stderr.splitlines()
            failure = failure_of(command.name, done.returncode, output, file.read())
            raise HTTPException(status, str(failure))
        return Path(folder, "report.html").read_text(encoding="utf-8")
