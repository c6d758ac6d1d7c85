"""The FastAPI app of the page: each route needs a signed-in user, and each error is a page."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, HTTPException, Request
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from strandline.errors import StrandlineError
from strandline_airflow.page import documents, pages
from strandline_airflow.page.access import SIGNED_IN
from strandline_airflow.page.rendering import page
from strandline_airflow.page.views import NoRunsHereError, UnreadableError

app = FastAPI(
    title="Strandline",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[SIGNED_IN],
)
for one in (pages, documents):
    app.include_router(one.router)


@app.get("/{path:path}")
def nothing_here(path: str) -> Response:
    """Answer 404 for every other path, also only to signed-in users."""
    raise HTTPException(404, "There is no such page.")


_TITLES = {401: "You are not signed in", 403: "You may not see this", 404: "Not found"}


def _is_for_a_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _error_page(request: Request, status: int, detail: str) -> Response:
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    return page(request, "error.html.j2", status=status, code=status, title=title, detail=detail)


@app.exception_handler(StarletteHTTPException)
async def _http_error(request: Request, error: StarletteHTTPException) -> Response:
    if not _is_for_a_browser(request):
        return await http_exception_handler(request, error)
    answer = _error_page(request, error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


@app.exception_handler(RequestValidationError)
async def _invalid_request(request: Request, error: RequestValidationError) -> Response:
    if not _is_for_a_browser(request):
        return await request_validation_exception_handler(request, error)
    problems = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
    return _error_page(request, 422, problems)


@app.exception_handler(UnreadableError)
@app.exception_handler(StrandlineError)
async def _unreadable(request: Request, error: Exception) -> Response:
    """The page of an error while reading tables or settings."""
    return await _http_error(request, HTTPException(503, str(error)))


@app.exception_handler(NoRunsHereError)
async def _no_runs_yet(request: Request, error: Exception) -> Response:
    """The page of a pipeline that has not run yet, with the command that runs it."""
    if not _is_for_a_browser(request):
        return await http_exception_handler(request, HTTPException(404, str(error)))
    return page(request, "nothing.html.j2", pipeline=request.path_params["pipeline"])
