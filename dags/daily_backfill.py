"""A daily backfill DAG for every pipeline file."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from strandline_airflow.catalogue import published_asset, read_catalogue, schedule_of
from strandline_airflow.commands import StrandlineReportOperator
from strandline_airflow.operators import StrandlineJobOperator
from strandline_airflow.params import daily_params
from strandline_airflow.requests import advance_request, requested_engine
from strandline_airflow.settings import pipelines_folder, task_defaults

DOC = """
### Advance the pipeline `{pipeline}`

Publishes all that the day's arrivals decide: new and refired windows, what came too late, and
what earlier runs left undone. `advance` on one engine, which the param `engine` may name, then the
`report`, also after a failure.

**It goes up to** the last UTC midnight not after the end of the run's data interval, or after the
param `to`. Nothing has to be caught up by hand: a run that was skipped or rejected is healed by the
next one. To fill in a long time, trigger one run with `to`; there is no need for a run per day.

**A pipeline that reads another one's results** runs whenever that one has published, and goes as
far as that one has come. What changed there, be it of long ago, it heals.

**When it fails**, the task's error says what the job said:

| exit code | what it means | what to do |
|---|---|---|
| 2 | the input is wrong: YAML, landing table or a param | mend it, then clear the task |
| 3 | the audit failed: nothing was published | see *Report* and `strandline runs show {pipeline}` |
| 4 | someone else published into the range, or something was away | it is retried by itself |
| other | a crash or a bug | it is retried; clearing the task is always safe |

A task that was cleared, retried or killed can be run again at any time: it publishes what differs,
and where nothing differs it writes nothing.
"""

for pipeline, spec in read_catalogue(pipelines_folder()).specs.items():
    with DAG(
        dag_id=f"strandline_daily_{pipeline}",
        description=f"Advance {pipeline} to the end of the day",
        schedule=schedule_of(spec),
        start_date=datetime(1970, 1, 1, tzinfo=UTC),  # `airflow backfill` reaches all of history
        catchup=False,
        max_active_runs=1,
        params=daily_params(),
        default_args=task_defaults(),
        doc_md=DOC.format(pipeline=pipeline),
        tags=["strandline", "daily", pipeline],
    ):
        advance = StrandlineJobOperator(
            task_id="advance",
            command="advance",
            pipeline=pipeline,
            application_args=advance_request(pipeline),
            conf=dict(spec.spark),
            engine=requested_engine,
            outlets=[published_asset(pipeline)],
        )
        # A teardown also runs after a failure, and leaves the run's state to the other tasks.
        advance >> StrandlineReportOperator(task_id="report", pipeline=pipeline).as_teardown()
