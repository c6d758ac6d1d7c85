"""The tasks of a day of a pipeline, for a DAG of one's own."""

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
    """The tasks `advance`, and after it, also if that has failed, `report`.

    Args:
        pipeline: its name.
        conf: Spark's settings, of the pipeline.
        at: where things are: `lake` and `pipelines` of the operators.
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
    """A day of a pipeline within a DAG of one's own: `advance`, then `report`.

    It advances to the end of the run's data interval, or after the DAG's param `to`, if it has
    one. What has to have landed before stands upstream of the group.

    Args:
        pipeline: the pipeline's name; the group's too, unless `group_id` says another.
        pipelines: the folder of its file; None: as the connection or the environment says.
        lake: the lake's root; None: the same.
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
    """The Spark configuration in a pipeline's file; none where it cannot be read: the task says."""
    try:
        return dict(find_spec(settings.pipelines_folder(pipelines), pipeline).spark)
    except InputError:
        return {}
