"""The reports, served by Airflow to those who are signed in."""

from __future__ import annotations

from pathlib import Path

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse

from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.settings import pipelines_folder, report_file

# The page runs its own scripts only, as nobody: it holds values out of the data, and Airflow's
# cookie and API must stay out of their reach.
_POLICY = "sandbox allow-scripts; default-src 'none'; img-src data: blob:; font-src data:; "
_POLICY += "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'"

# Airflow authenticates nobody at a plugin's app: every route has to.
app = FastAPI(
    title="Strandline",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(requires_access_view(AccessView.PLUGINS))],
)


@app.get("/reports/{pipeline}")
def report(pipeline: str) -> FileResponse:
    """The report of a pipeline, as it was last made."""
    if pipeline not in read_catalogue(pipelines_folder()).specs:
        raise HTTPException(404, f"There is no pipeline {pipeline}.")
    where = report_file(pipeline)
    if "://" in where:
        raise HTTPException(404, f"The report lies on an object store: {where}")
    if not Path(where).is_file():
        raise HTTPException(404, "There is no report yet: run the DAG strandline_report.")
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    return FileResponse(where, media_type="text/html", headers=headers)
