"""The report of a pipeline and Great Expectations' Data Docs, shown without a network."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from strandline.lake.store.places import is_uri
from strandline_airflow.page.access import ReadablePipeline
from strandline_airflow.page.rendering import PLAIN, headers, page
from strandline_airflow.settings import report_file

router = APIRouter()


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
    where = report_file(pipeline)
    return None if is_uri(where) else Path(where).parent
