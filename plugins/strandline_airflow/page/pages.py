"""The pages: all pipelines, the calendar, days, slots and runs of one, and those of a DAG."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.serialized_dag import SerializedDagModel
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.model.command import shared_id
from strandline.model.intervals import EVERYTHING, instant_of
from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.page.access import ReadableDag, ReadablePipeline, may_read
from strandline_airflow.page.rendering import page
from strandline_airflow.page.views import NoRunsHereError, UnreadableError, now_ms, view
from strandline_airflow.settings import pipelines_folder

router = APIRouter()
_Day = Annotated[date | None, Query()]
_Page = Annotated[int, Query(alias="page", ge=1, le=10_000)]
_Instant = Annotated[datetime, Query()]
_Name = Annotated[str | None, Query(min_length=1, max_length=250, pattern=r"^[^\x00-\x1f]+$")]


@router.get("/")
def overview(request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """The pipelines that the user may read, with their progress and their findings."""
    found = read_catalogue(pipelines_folder())
    readable = [
        spec for name, spec in found.specs.items() if may_read(name, request, user, session)
    ]
    lines = [_line(spec) for spec in readable]
    return page(
        request,
        "overview.html.j2",
        lines=sorted(lines, key=lambda line: (line["rank"], line["pipeline"])),
        hidden=len(found.specs) - len(readable),
        broken=[str(error) for error in found.broken] if readable or not found.specs else [],
        now_ms=now_ms(),
    )


@router.get("/pipelines/{pipeline}")
def calendar(request: Request, spec: ReadablePipeline, until: _Day = None) -> Response:
    """Some weeks of a pipeline's calendar of completeness."""
    found = view("calendar", spec, until=_text(until))
    line, at_ms = _line(spec), now_ms()
    return page(
        request, "calendar.html.j2", spec=spec, line=line, calendar=found, now_ms=at_ms
    )  # fmt: skip


@router.get("/pipelines/{pipeline}/days/{day}")
def one_day(request: Request, spec: ReadablePipeline, day: date, number: _Page = 1) -> Response:
    """The slots of a day, and its quarantined rows by reason."""
    found = view("day", spec, day=day.isoformat(), page=number)
    _require_page(found, number)
    return page(request, "day.html.j2", spec=spec, day=day, found=found, number=number)


@router.get("/pipelines/{pipeline}/incomplete")
def incomplete(
    request: Request,
    spec: ReadablePipeline,
    since: _Day = None,
    until: _Day = None,
    number: _Page = 1,
) -> Response:
    """The incomplete windows, as `strandline incomplete` lists them."""
    if since is not None and until is not None and since > until:
        raise HTTPException(422, f"{since} is after {until}: give the earlier day first.")
    found = view("incomplete", spec, since=_text(since), until=_text(until), page=number)
    _require_page(found, number)
    asked = {"since": since, "until": until}
    return page(
        request, "incomplete.html.j2", spec=spec, found=found, number=number, asked=asked
    )  # fmt: skip


@router.get("/pipelines/{pipeline}/slot")
def slot(request: Request, spec: ReadablePipeline, start: _Instant, end: _Instant) -> Response:
    """A slot: its windows, the watermark's crossings, its late records, and its runs."""
    if start.tzinfo is None or end.tzinfo is None:
        raise HTTPException(422, "An instant needs its zone, such as 2013-01-05T06:00:00Z.")
    within = instant_of(start), instant_of(end)
    if not all(at_ms in EVERYTHING for at_ms in within):
        raise HTTPException(422, "An instant lies in the years 0001 to 9999, in UTC.")
    found = view("slot", spec, start_ms=within[0], end_ms=within[1])
    return page(request, "slot.html.j2", spec=spec, found=found)


@router.get("/pipelines/{pipeline}/runs/{run_id}")
def run(request: Request, spec: ReadablePipeline, run_id: str) -> Response:
    """A run, as the run history has it."""
    found = view("run", spec, run_id=run_id[:100])
    return page(request, "run.html.j2", spec=spec, run=found)


def _require_page(found: dict[str, Any], number: int) -> None:
    """Refuse a page after the last one: it has no row, and would look like a list without rows."""
    if number > 1 and not found["listed"]:
        raise HTTPException(404, f"There is no page {number}.")


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


_RANKS = {"critical": 0, "warning": 1, "info": 3}


def _line(spec: PipelineSpec) -> dict[str, Any]:
    """A pipeline's line in the overview: state, progress, last run, findings."""
    line: dict[str, Any] = {"pipeline": spec.pipeline, "status": None, "alarms": []}
    try:
        status = view("status", spec)
    except NoRunsHereError:
        return line | {"state": "has not run yet", "tone": "idle", "rank": 2}
    except UnreadableError as error:
        return line | {"state": str(error), "tone": "critical", "rank": 0}
    alarms = [one for one in status["findings"] if one["severity"] != "info"]
    tone = alarms[0]["severity"] if alarms else "ok"
    rank = _RANKS.get(tone, 3)
    state = status["state"]
    return line | {"state": state, "tone": tone, "status": status, "alarms": alarms, "rank": rank}


@router.get("/dag")
def of_dag(
    request: Request,
    dag_id: ReadableDag,
    user: GetUserDep,
    session: SessionDep,
    run_id: _Name = None,
    task_id: _Name = None,
) -> Response:
    """The pipelines of a DAG, a DAG run or a task, and the run's attempts."""
    specs = read_catalogue(pipelines_folder()).specs
    named = [name for name in specs if name in {*_names(dag_id, run_id, task_id, session)}]
    readable = [name for name in named if may_read(name, request, user, session)]
    shared = shared_id(f"{dag_id}/{run_id}")
    runs = {name: _attempts(specs[name], shared) for name in readable if run_id}
    asked = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id}
    return page(request, "dag.html.j2", asked=asked, pipelines=readable, runs=runs)


def _attempts(spec: PipelineSpec, shared: str) -> list[dict[str, Any]]:
    """The attempts of a run; none if the run history cannot be read."""
    try:
        found: list[dict[str, Any]] = view("runs", spec, shared=shared)
    except (NoRunsHereError, UnreadableError):
        return []
    return found


def _names(dag_id: str, run_id: str | None, task_id: str | None, session: Session) -> Iterator[str]:
    """The names of the pipelines in a DAG's tasks and in the params of a run."""
    dag = SerializedDagModel.get_dag(dag_id, session=session)
    for task in dag.tasks if dag is not None else ():
        if task_id in {None, task.task_id}:
            yield _text_or_empty(getattr(task, "pipeline", None))
    if run_id is None:
        return
    of_run = (RenderedTaskInstanceFields.dag_id == dag_id) & (
        RenderedTaskInstanceFields.run_id == run_id
    )
    for fields in session.scalars(select(RenderedTaskInstanceFields.rendered_fields).where(of_run)):
        yield _text_or_empty((fields or {}).get("pipeline"))
    asked = select(DagRun.conf).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    yield _text_or_empty((session.scalar(asked) or {}).get("pipeline"))


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
