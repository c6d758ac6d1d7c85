"""Rebuild a range of a pipeline's history by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airflow.sdk import DAG, TriggerRule

from strandline_airflow.announcing import outlets_of_any
from strandline_airflow.approvals import PreviewApprovalOperator
from strandline_airflow.commands import StrandlineReportOperator
from strandline_airflow.operators import StrandlineJobOperator, StrandlinePublishOperator
from strandline_airflow.params import reprocess_params
from strandline_airflow.requests import (
    APPROVAL,
    PREPARE,
    Requests,
    requested_engine,
)
from strandline_airflow.settings import APPROVAL_TIMEOUT, dag_defaults

_DOC = """
### Rebuild a range of history

For a bug fix, a new aggregate, an outage or a migration. *Trigger*, fill in the form, and read:

1. `prepare` computes the range again, audits it, and keeps what differs; nothing is published yet.
   What would change is in its log, and its XCom has all of it.
2. `approval` asks a person, with that preview before them (*Required Actions*), where the param
   `approval` is on; else it is skipped. Rejected, nothing is published, and `publish` is skipped;
   what was prepared stays until `strandline runs cancel` removes it. Without an answer within a
   day it fails. Other ranges are reprocessed meanwhile.
   With the param `preview` it ends here: nothing is kept, and nothing can be published.
3. `publish` publishes just what was prepared.
4. `report` makes the pipeline's report again, also after a failure.

**When it has become stale.** Somebody has published into the range after `prepare`, rows have
landed, or the rules were edited: then what was shown is no longer what would be published. If a
person has approved it, `publish` fails and says so: clear `prepare` with all after it, and it
prepares and asks again. Without approval `publish` rebuilds the range, and publishes that.

The range means the windows that **start** in [`start`, `end`). The numbers are those of a rebuild
of all history, restricted to the range. An empty diff writes nothing, so a range may be rebuilt
twice. Without `as_of` all that has arrived counts; what a run knew once is never taken back.

The param `engine` says what computes it; each engine publishes the same rows.

One run prepares at a time, and one publishes. It may run beside the daily DAG: publishing is
serialized by the pipeline's lock, and a run that was overtaken in its range ends with exit code 4
and is retried.

**When it fails**: exit code 2, the params or the pipeline are wrong (correct them and trigger it
again); 3, the audit failed and nothing was published (see *Report* and `strandline runs show`);
anything else is retried, and clearing the task is always safe.
"""


def reprocess_dag(names: Sequence[str], *, folder: Path, lake: str | None = None) -> DAG:
    """The DAG that rebuilds a range by hand; for the arguments, see `daily_dag`."""
    requests = Requests(folder)
    with DAG(
        dag_id="strandline_reprocess",
        description="Rebuild a range of a pipeline by hand",
        schedule=None,
        max_active_runs=16,  # a run that waits for a person holds no other up
        params=reprocess_params(names),
        **dag_defaults(),
        doc_md=_DOC,
        tags=["strandline", "reprocess"],
    ) as dag:
        prepare = StrandlineJobOperator(
            task_id=PREPARE,
            command="backfill",
            pipeline=requests.pipeline,
            application_args=requests.backfill(prepare=True),
            conf=requests.spark_conf,
            engine=requested_engine,
            pipelines=folder,
            lake=lake,
            max_active_tis_per_dag=1,
        )
        approval = PreviewApprovalOperator(
            task_id=APPROVAL,
            response_timeout=APPROVAL_TIMEOUT,
            pipelines=folder,
        )
        publish = StrandlinePublishOperator(
            task_id="publish",
            pipeline=requests.pipeline,
            again=requests.backfill(prepare=False),
            conf=requests.spark_conf,
            engine=requested_engine,
            pipelines=folder,
            lake=lake,
            max_active_tis_per_dag=1,
            trigger_rule=TriggerRule.NONE_FAILED,  # a skipped approval is none, and no rejected one
            outlets=outlets_of_any(),
        )
        report = StrandlineReportOperator(
            task_id="report", pipeline=requests.pipeline, pipelines=folder, lake=lake
        )
        prepare >> approval >> publish >> report.as_teardown()
    return dag
