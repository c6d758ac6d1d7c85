"""A daily backfill of a pipeline: its tasks, as a group for your own DAGs and as a DAG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TaskGroup

from strandline.errors import InputError
from strandline.spec import PipelineSpec, find_spec
from strandline_airflow import settings
from strandline_airflow.announcing import outlets_of
from strandline_airflow.catalogue import schedule_of
from strandline_airflow.commands import StrandlineReportOperator
from strandline_airflow.operators import StrandlineJobOperator
from strandline_airflow.params import daily_params
from strandline_airflow.requests import advance_request, requested_engine
from strandline_airflow.settings import dag_defaults


def _daily_tasks(pipeline: str, *, conf: dict[str, str], **at: Any) -> None:
    """The tasks `advance` and `report`, which runs also if `advance` has failed.

    Args:
        pipeline: the pipeline's name.
        conf: the pipeline's Spark settings.
        at: the operators' arguments `lake` and `pipelines`.
    """
    advance = StrandlineJobOperator(
        task_id="advance",
        command="advance",
        pipeline=pipeline,
        application_args=advance_request(pipeline),
        conf=conf,
        engine=requested_engine,
        outlets=outlets_of(pipeline),
        **at,
    )
    # A teardown also runs after a failure, and leaves the run's state to the other tasks.
    advance >> StrandlineReportOperator(task_id="report", pipeline=pipeline, **at).as_teardown()


class StrandlineTaskGroup(TaskGroup):
    """The daily tasks of a pipeline in your own DAG: `advance`, then `report`.

    `advance` goes to the end of the run's data interval, or to the DAG's param `to` if it has one.
    Put the tasks that land the data upstream of the group.

    Args:
        pipeline: the pipeline's name; it is the group's id, too, unless `group_id` is given.
        pipelines: the folder of its file; None: from the connection or the environment.
        lake: the lake's root; None: from the connection or the environment.
        group: further arguments of Airflow's TaskGroup.
    """

    def __init__(
        self,
        pipeline: str,
        *,
        pipelines: str | Path | None = None,
        lake: str | None = None,
        **group: Any,
    ) -> None:
        super().__init__(**{"group_id": pipeline, **group})
        with self:
            _daily_tasks(
                pipeline, conf=_spark_of(pipelines, pipeline), pipelines=pipelines, lake=lake
            )


def _spark_of(pipelines: str | Path | None, pipeline: str) -> dict[str, str]:
    """The Spark settings in a pipeline's file; none if it cannot be read: the task will fail."""
    try:
        return dict(find_spec(settings.pipelines_folder(pipelines), pipeline).spark)
    except InputError:
        return {}


_DOC = """
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
        doc_md=_DOC.format(pipeline=spec.pipeline),
        tags=["strandline", "daily", spec.pipeline],
    ) as dag:
        _daily_tasks(spec.pipeline, conf=dict(spec.spark), pipelines=folder, lake=lake)
    return dag
