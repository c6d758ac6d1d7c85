"""The DAG that checks at fixed times which pipelines have become stale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airflow.sdk import DAG, MultipleCronTriggerTimetable

from strandline.spec import PipelineSpec
from strandline_airflow.settings import dag_defaults
from strandline_airflow.watching import StrandlineWatchOperator

DOC = """
### Alert of pipelines that have become stale

A pipeline whose file has an alert on `stale` is asked for its status at the times that its alerts
say, and whoever they name is alerted, once, until it is no longer so. Runs cannot do that: none may
have begun.
"""


def times_of(spec: PipelineSpec) -> set[str]:
    """The times of the day, in UTC, at which a pipeline is checked."""
    return {alert.by for alert in spec.alerts if "stale" in alert.on}


def watch_dag(specs: Sequence[PipelineSpec], *, folder: Path, lake: str | None = None) -> DAG:
    """The DAG that checks each pipeline with an alert on `stale`; arguments as of `daily_dag`."""
    times = sorted({time for spec in specs for time in times_of(spec)})
    crons = [f"{int(time[3:])} {int(time[:2])} * * *" for time in times]
    with DAG(
        dag_id="strandline_watch",
        description="Alert of pipelines that have become stale",
        schedule=MultipleCronTriggerTimetable(*crons, timezone="UTC"),
        max_active_runs=1,
        **dag_defaults(),
        doc_md=DOC,
        tags=["strandline", "watch"],
    ) as dag:
        for spec in specs:
            StrandlineWatchOperator(
                task_id=spec.pipeline, pipeline=spec.pipeline, pipelines=folder, lake=lake
            )
    return dag
