"""A daily backfill DAG for a pipeline."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import schedule_of
from strandline_airflow.params import daily_params
from strandline_airflow.settings import dag_defaults
from strandline_airflow.task_group import daily_tasks

DOC = """
### Advance the pipeline `{pipeline}`

Publishes all that the day's arrivals decide: new and refired windows, what came too late, and
what earlier runs left undone. `advance` on one engine, which the param `engine` may name, then the
`report`, also after a failure.

**It goes up to** the last UTC midnight not after the end of the run's data interval, or after the
param `to`. Nothing has to be caught up by hand: a run that was skipped or rejected is healed by the
next one. To fill in a long time, trigger one run with `to`; there is no need for a run per day.

**A pipeline that reads another one's results** runs whenever that one has published, and goes as
far as that one has come. It recomputes what has changed there, however old.

**When it fails**, the task's error says what the job said:

| exit code | what it means | what to do |
|---|---|---|
| 2 | the input is wrong: YAML, landing table or a param | correct it, then clear the task |
| 3 | the audit failed: nothing was published | see *Report* and `strandline runs show {pipeline}` |
| 4 | someone else published into the range, or something was away | it is retried by itself |
| other | a crash or a bug | it is retried; clearing the task is always safe |

A task that was cleared, retried or killed can be run again at any time: it publishes what differs,
and where nothing differs it writes nothing.
"""


def daily_dag(spec: PipelineSpec, *, folder: Path, lake: str | None = None) -> DAG:
    """The DAG that keeps a pipeline up to date.

    Args:
        spec: the pipeline.
        folder: the folder of its file.
        lake: the lake's root; None: from the connection or the environment.
    """
    with DAG(
        dag_id=f"strandline_daily_{spec.pipeline}",
        description=f"Advance {spec.pipeline} to the end of the day",
        schedule=schedule_of(spec),
        max_active_runs=1,
        params=daily_params(),
        **dag_defaults(),
        doc_md=DOC.format(pipeline=spec.pipeline),
        tags=["strandline", "daily", spec.pipeline],
    ) as dag:
        daily_tasks(spec.pipeline, conf=dict(spec.spark), pipelines=folder, lake=lake)
    return dag
