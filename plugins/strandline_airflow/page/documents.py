"""The report of a pipeline and Great Expectations' Data Docs, shown without a network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from airflow.sdk.exceptions import AirflowFailException
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from strandline.errors import InputError
from strandline.lake.store.places import is_uri
from strandline_airflow import settings
from strandline_airflow.asked_reports import TIMEOUT_S, AskedReports, BusyError
from strandline_airflow.outcomes import answer_file, failure_of
from strandline_airflow.page.access import ReadablePipeline
from strandline_airflow.page.rendering import PLAIN, headers, page
from strandline_airflow.page.views import state_of
from strandline_airflow.processes import started

router = APIRouter()
# The page runs its own scripts only, as nobody: it holds values out of the data, and Airflow's
# cookie and API must stay out of their reach.
_POLICY = "sandbox allow-scripts; default-src 'none'; img-src data: blob:; font-src data:; "
_POLICY += "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'"
_ASKED = AskedReports[str]()
_Day = Annotated[str | None, Query(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


@router.get("/pipelines/{pipeline}/report")
def report_page(request: Request, spec: ReadablePipeline) -> Response:
    """The report in a frame, with a link back to the pipeline; on an object store made now."""
    folder = _reports(spec.pipeline)
    has_report = folder is None or (folder / "report.html").is_file()
    return page(request, "report.html.j2", spec=spec, has_report=has_report)


@router.get("/pipelines/{pipeline}/audits")
def audits_page(request: Request, spec: ReadablePipeline) -> Response:
    """The Data Docs in a frame, with a link back to the pipeline."""
    folder = _reports(spec.pipeline)
    has_docs = folder is not None and (folder / "data_docs" / "index.html").is_file()
    return page(request, "audits.html.j2", spec=spec, folder=folder, has_docs=has_docs)


@router.get("/docs/{pipeline}/{path:path}")
def data_docs(spec: ReadablePipeline, path: str) -> Response:
    """An HTML file of the Data Docs' folder, and of no other folder.

    Raises:
        HTTPException: 404: the folder has no such file, or it is not HTML.
    """
    missing = HTTPException(404, "There is no such page of the audits.")
    folder = _reports(spec.pipeline)
    if folder is None or "\0" in path or not path.endswith(".html"):
        raise missing
    docs = (folder / "data_docs").resolve()
    try:
        file = (docs / path).resolve()
        if not file.is_relative_to(docs) or not file.is_file():
            raise missing
    except OSError:  # a name that no file can have
        raise missing from None
    policy = f"{PLAIN}; style-src 'unsafe-inline'; img-src data:"
    return FileResponse(file, media_type="text/html", headers=headers(policy))


def _reports(pipeline: str) -> Path | None:
    """The folder of a pipeline's report; None if it is on an object store."""
    where = settings.report_file(pipeline)
    return None if is_uri(where) else Path(where).parent


@router.get("/reports/{pipeline}")
def report(spec: ReadablePipeline, since: _Day = None, until: _Day = None) -> Response:
    """The last report of a pipeline; on request for the days of a query, and on an object store."""
    pipeline = spec.pipeline
    answer_headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    where = settings.report_file(pipeline)
    if since or until or is_uri(where):
        return HTMLResponse(_asked_report(pipeline, since, until), headers=answer_headers)
    if not Path(where).is_file():
        raise HTTPException(404, "There is no report yet: run the DAG strandline_report.")
    return FileResponse(where, media_type="text/html", headers=answer_headers)


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
