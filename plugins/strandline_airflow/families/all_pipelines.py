"""The DAGs over all pipelines: reports, upkeep, and the check for stale pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, MultipleCronTriggerTimetable, task

from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import published_asset
from strandline_airflow.commands import (
    StrandlineMaintainOperator,
    StrandlineReportOperator,
    StrandlineWatchOperator,
)
from strandline_airflow.params import maintain_params, report_params
from strandline_airflow.requests import Requests, is_dry_run
from strandline_airflow.settings import dag_defaults

_DOC_OF_REPORT = """
### Make the quality report

Completeness, what is late and malformed and why, watermark progress, audit results: one page for
each pipeline, readable offline. It needs no Spark and takes seconds. Unpaused, it also runs
whenever a pipeline publishes; by hand the param `pipeline` chooses one.

The link *Report* of a task leads to the page. A failed task has the error of the command: exit code
2 mostly means that the pipeline has not run yet, so there is nothing to report.
"""


def report_dag(names: Sequence[str], *, folder: Path, lake: str | None = None) -> DAG:
    """The DAG that makes reports; for the arguments, see `daily_dag`."""
    published = [published_asset(name) for name in names]
    with DAG(
        dag_id="strandline_report",
        description="The quality report of one pipeline, or of all",
        schedule=reduce(or_, published) if published else None,
        max_active_runs=1,
        params=report_params(names),
        **dag_defaults(),
        doc_md=_DOC_OF_REPORT,
        tags=["strandline", "report"],
    ) as dag:

        @task
        def pipelines(**context: Any) -> list[str]:
            """The pipelines to report on."""
            return Requests(folder).pipelines_to_report(context)

        at = {"pipelines": str(folder), "lake": lake}
        StrandlineReportOperator.partial(task_id="report", **at).expand(pipeline=pipelines())
    return dag


_DOC_OF_MAINTAIN = """
### Keep the pipelines small

`strandline maintain` on Sundays at 03:00 UTC, without Spark: small files are put together; old
versions of tables, staging and audits of runs that are over and spent steps of the ledger go. The
task's log says what it is about to do, and what lay there before and after. It holds a pipeline's
lock for a short while at a time; a run that wants to publish then waits.

Trigger it with the param `dry_run` to see what it would do. It may be killed, and run again, at any
time. Exit code 2 mostly means that a pipeline file is broken; the others are maintained all the
same.
"""


def maintain_dag(names: Sequence[str], *, folder: Path, lake: str | None = None) -> DAG:
    """The DAG of the upkeep of all pipelines; for the arguments, see `daily_dag`."""
    with DAG(
        dag_id="strandline_maintain",
        description="Put small files together, remove what nobody needs any more",
        schedule=CronDataIntervalTimetable("0 3 * * 0", timezone="UTC"),
        max_active_runs=1,
        params=maintain_params(names),
        **dag_defaults(),
        doc_md=_DOC_OF_MAINTAIN,
        tags=["strandline", "maintain"],
    ) as dag:
        StrandlineMaintainOperator(
            task_id="maintain",
            pipeline=Requests(folder).pipeline_to_maintain,
            pipelines=folder,
            lake=lake,
            shows_only=is_dry_run,
        )
    return dag


_DOC_OF_WATCH = """
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
        doc_md=_DOC_OF_WATCH,
        tags=["strandline", "watch"],
    ) as dag:
        for spec in specs:
            StrandlineWatchOperator(
                task_id=spec.pipeline, pipeline=spec.pipeline, pipelines=folder, lake=lake
            )
    return dag
