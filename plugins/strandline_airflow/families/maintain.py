"""The upkeep of the pipelines, once a week."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from strandline_airflow.commands import StrandlineMaintainOperator
from strandline_airflow.params import maintain_params
from strandline_airflow.requests import Requests, is_dry_run
from strandline_airflow.settings import dag_defaults

DOC = """
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
        doc_md=DOC,
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
