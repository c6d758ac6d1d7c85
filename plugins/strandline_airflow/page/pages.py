"""The pages of pipelines: all of them, one's calendar, a day, a slot, a run, what is incomplete."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from strandline.model.intervals import instant_of
from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.page.access import ReadablePipeline, may_read
from strandline_airflow.page.rendering import page
from strandline_airflow.page.views import NoRunsHereError, UnreadableError, now_ms, view
from strandline_airflow.settings import pipelines_folder

router = APIRouter()
_Day = Annotated[date | None, Query()]
_Page = Annotated[int, Query(alias="page", ge=1, le=10_000)]
_Instant = Annotated[datetime, Query()]


@router.get("/")
def overview(request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """All pipelines that the user may read: how far each is, and what is not as it must be."""
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
    """The calendar of completeness of a pipeline, some weeks of it."""
    found = view("calendar", spec, until=_text(until))
    line, at_ms = _line(spec), now_ms()
    return page(
        request, "calendar.html.j2", spec=spec, line=line, calendar=found, now_ms=at_ms
    )  # fmt: skip


@router.get("/pipelines/{pipeline}/days/{day}")
def one_day(request: Request, spec: ReadablePipeline, day: date, number: _Page = 1) -> Response:
    """The slots of a day, and what is in quarantine of it."""
    found = view("day", spec, day=day.isoformat(), page=number)
    return page(request, "day.html.j2", spec=spec, day=day, found=found, number=number)


@router.get("/pipelines/{pipeline}/incomplete")
def incomplete(
    request: Request,
    spec: ReadablePipeline,
    since: _Day = None,
    until: _Day = None,
    number: _Page = 1,
) -> Response:
    """The windows that are not complete, as `strandline incomplete` lists them."""
    if since is not None and until is not None and since > until:
        raise HTTPException(422, f"{since} is after {until}: give the earlier day first.")
    found = view("incomplete", spec, since=_text(since), until=_text(until), page=number)
    asked = {"since": since, "until": until}
    return page(
        request, "incomplete.html.j2", spec=spec, found=found, number=number, asked=asked
    )  # fmt: skip


@router.get("/pipelines/{pipeline}/slot")
def slot(request: Request, spec: ReadablePipeline, start: _Instant, end: _Instant) -> Response:
    """A slot: its windows, when it was passed, what it refused, and which runs it had."""
    if start.tzinfo is None or end.tzinfo is None:
        raise HTTPException(422, "An instant needs its zone, such as 2013-01-05T06:00:00Z.")
    found = view("slot", spec, start_ms=instant_of(start), end_ms=instant_of(end))
    return page(request, "slot.html.j2", spec=spec, found=found)


@router.get("/pipelines/{pipeline}/runs/{run_id}")
def run(request: Request, spec: ReadablePipeline, run_id: str) -> Response:
    """What the run history says of a run."""
    found = view("run", spec, run_id=run_id[:100])
    return page(request, "run.html.j2", spec=spec, run=found)


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


_RANKS = {"critical": 0, "warning": 1, "info": 3}


def _line(spec: PipelineSpec) -> dict[str, Any]:
    """How a pipeline is, in a line: its state, how far it is, its last run, its alarms."""
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
