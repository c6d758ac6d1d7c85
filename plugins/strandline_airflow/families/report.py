"""The quality report of the pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from strandline_airflow.catalogue import published_asset
from strandline_airflow.commands import StrandlineReportOperator
from strandline_airflow.params import report_params
from strandline_airflow.requests import Requests
from strandline_airflow.settings import dag_defaults

DOC = """
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
        doc_md=DOC,
        tags=["strandline", "report"],
    ) as dag:

        @task
        def pipelines(**context: Any) -> list[str]:
            """The pipelines to report on."""
            return Requests(folder).pipelines_to_report(context)

        at = {"pipelines": str(folder), "lake": lake}
        StrandlineReportOperator.partial(task_id="report", **at).expand(pipeline=pipelines())
    return dag
