"""What was prepared, and perhaps approved, is published; or it has become stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from strandline_airflow.engines import TaskEngine
from strandline_airflow.operators import StrandlineJobOperator
from strandline_airflow.outcomes import StagingIsStaleError
from strandline_airflow.requests import PREPARE, Rendered


class StrandlinePublishOperator(StrandlineJobOperator):
    """`strandline runs publish`: what the task `prepare` has prepared, as it was shown.

    A staging may have become stale: somebody has published into its range since, rows have landed,
    or the rules have changed. If a person has approved it, the task fails and says what to clear.
    Else the range is rebuilt and published in one go: nobody has looked at what would have been.

    Args:
        again: the arguments of `strandline backfill` for that, or a callable that gives them when
            rendered.
    """

    template_fields: Sequence[str] = (*StrandlineJobOperator.template_fields, "again")

    def __init__(self, *, again: Rendered | list[str], **kwargs: Any) -> None:
        super().__init__(command="runs publish", **kwargs)
        self.again = again

    def execute(self, context: Context) -> Any:
        """Publish it.

        Returns:
            As of StrandlineJobOperator.

        Raises:
            AirflowFailException: it is stale, and was approved; or as of StrandlineJobOperator.
        """
        try:
            return super().execute(context)
        except StagingIsStaleError as stale:
            if context["params"]["approval"]:
                way_out = f"Clear the task {PREPARE} with all after it: it prepares and asks again."
                raise AirflowFailException(f"{stale}\n{way_out}") from None
            self.log.warning("%s\nNobody was to approve it: the range is rebuilt.", stale)
        self.command, self.application_args = "backfill", self.again
        return super().execute(context)

    def _repeated(self, engine: TaskEngine) -> Any:
        """What is prepared is no repetition."""
        return None
