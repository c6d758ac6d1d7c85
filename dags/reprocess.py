"""Rebuild a range of a pipeline's history by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, AssetAlias

from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.operators import StrandlineReportOperator, StrandlineSparkOperator
from strandline_airflow.params import reprocess_params
from strandline_airflow.requests import (
    backfill_request,
    requested_pipeline,
    requested_spark_conf,
)
from strandline_airflow.settings import pipelines_folder, task_defaults

DOC = """
### Rebuild a range of history

For a bug fix, a new aggregate, an outage or a migration. *Trigger*, fill in the form, and read:

1. `preview` says what would change and writes nothing; its answer is its XCom, and in its log.
2. `rebuild` computes the range again, audits it, and publishes what differs.
3. `report` makes the pipeline's report anew, also after a failure.

The range means the windows that **start** in [`start`, `end`). The numbers are those of a rebuild
of all history, restricted to the range. An empty diff writes nothing, so a range may be rebuilt
twice. Without `as_of` all that has arrived counts; what a run knew once is never taken back.

It may run beside the daily DAG: publishing is serialized by the pipeline's lock, and a run that was
overtaken in its range ends with exit code 4 and is retried.

**When it fails**: exit code 2, the params or the pipeline are wrong (trigger it again, mended);
3, the audit failed and nothing was published (see *Report* and `strandline runs show`); anything
else is retried, and clearing the task is always safe.
"""

with DAG(
    dag_id="strandline_reprocess",
    description="Rebuild a range of a pipeline by hand",
    schedule=None,
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=reprocess_params(read_catalogue(pipelines_folder()).names),
    default_args=task_defaults(),
    doc_md=DOC,
    tags=["strandline", "reprocess"],
):
    preview = StrandlineSparkOperator(
        task_id="preview",
        job="backfill.py",
        pipeline=requested_pipeline,
        application_args=backfill_request(dry_run=True),
        conf=requested_spark_conf,
    )
    rebuild = StrandlineSparkOperator(
        task_id="rebuild",
        job="backfill.py",
        pipeline=requested_pipeline,
        application_args=backfill_request(dry_run=False),
        conf=requested_spark_conf,
        outlets=[AssetAlias("strandline_reprocessed")],
    )
    report = StrandlineReportOperator(task_id="report", pipeline=requested_pipeline)
    preview >> rebuild >> report.as_teardown()
