"""The daily tasks of a pipeline as a task group, for your own DAGs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup

from strandline.errors import InputError
from strandline.spec import find_spec
from strandline_airflow import settings
from strandline_airflow.announcing import outlets_of
from strandline_airflow.commands import StrandlineReportOperator
from strandline_airflow.operators import StrandlineJobOperator
from strandline_airflow.requests import advance_request, requested_engine


def daily_tasks(pipeline: str, *, conf: dict[str, str], **at: Any) -> None:
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
            daily_tasks(
                pipeline, conf=_spark_of(pipelines, pipeline), pipelines=pipelines, lake=lake
            )


def _spark_of(pipelines: str | Path | None, pipeline: str) -> dict[str, str]:
    """The Spark settings in a pipeline's file; none if it cannot be read: the task will fail."""
    try:
        return dict(find_spec(settings.pipelines_folder(pipelines), pipeline).spark)
    except InputError:
        return {}
