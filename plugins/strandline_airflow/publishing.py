"""The publication of a prepared run, which may have been approved or have become stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from strandline_airflow.engines import TaskEngine
from strandline_airflow.operators import StrandlineJobOperator
from strandline_airflow.outcomes import StagingIsStaleError
from strandline_airflow.requests import APPROVAL, PREPARE, Rendered, approver_of, publish_request


class StrandlinePublishOperator(StrandlineJobOperator):
    """`strandline runs publish` for the run that another task has prepared.

    A prepared run becomes stale if its range is published by another run, rows land, or the rules
    change. A stale run that a person has approved fails the task, which names the tasks to clear.
    A stale run without approval is rebuilt and published in one go, since nobody has seen its
    preview.

    Args:
        again: the arguments of `strandline backfill` for this rebuild, or a callable that returns
            them when rendered.
        prepare: the id of the task that has prepared the run; in a task group with the group's.
        approval: the id of the task that has asked a person; there need not be one.
    """

    template_fields: Sequence[str] = (*StrandlineJobOperator.template_fields, "again")

    def __init__(
        self,
        *,
        again: Rendered | list[str],
        prepare: str = PREPARE,
        approval: str = APPROVAL,
        **kwargs: Any,
    ) -> None:
        arguments = publish_request(prepare, approval)
        super().__init__(command="runs publish", application_args=arguments, **kwargs)
        self.again = again
        self.prepare = prepare
        self.approval = approval

    def execute(self, context: Context) -> Any:
        """Publish the prepared run, or rebuild and publish its range.

        Returns:
            The JSON document of the command.

        Raises:
            AirflowFailException: the run is stale and was approved, or an error of
                StrandlineJobOperator.
        """
        try:
            return super().execute(context)
        except StagingIsStaleError as stale:
            if approver_of(context, self.approval) is not None:
                way_out = (
                    f"Clear the task {self.prepare} with all after it: it prepares and asks again."
                )
                raise AirflowFailException(f"{stale}\n{way_out}") from None
            self.log.warning("%s\nNobody was to approve it: the range is rebuilt.", stale)
        self.command, self.application_args = "backfill", self.again
        return super().execute(context)

    def _repeated(self, engine: TaskEngine) -> Any:
        """None: a prepared run is never a repetition."""
        return None
