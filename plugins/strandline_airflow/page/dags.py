"""The pages that Airflow shows beside a DAG, a DAG run or a task: the pipelines they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.serialized_dag import SerializedDagModel
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.model.command import shared_id
from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.page.access import ReadableDag, may_read
from strandline_airflow.page.rendering import page
from strandline_airflow.page.views import NoRunsHereError, UnreadableError, view
from strandline_airflow.settings import pipelines_folder

router = APIRouter()
_Name = Annotated[str | None, Query(min_length=1, max_length=250, pattern=r"^[^\x00-\x1f]+$")]


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
    runs = {name: _runs(specs[name], shared) for name in readable if run_id}
    asked = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id}
    return page(request, "dag.html.j2", asked=asked, pipelines=readable, runs=runs)


def _runs(spec: PipelineSpec, shared: str) -> list[dict[str, Any]]:
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
            yield _text(getattr(task, "pipeline", None))
    if run_id is None:
        return
    of_run = (RenderedTaskInstanceFields.dag_id == dag_id) & (
        RenderedTaskInstanceFields.run_id == run_id
    )
    for fields in session.scalars(select(RenderedTaskInstanceFields.rendered_fields).where(of_run)):
        yield _text((fields or {}).get("pipeline"))
    asked = select(DagRun.conf).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    yield _text((session.scalar(asked) or {}).get("pipeline"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
