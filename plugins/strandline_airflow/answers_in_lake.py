"""The JSON document of a command on another machine, which leaves it in the lake."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from strandline.lake.store.places import uri_of
from strandline.model.command import JSON_FILE_VARIABLE
from strandline_airflow import settings
from strandline_airflow.processes import PlainProcess
from strandline_airflow.submit import SubmitSpec

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


@dataclass(frozen=True)
class AnswerInLake:
    """The document of a command, which its driver writes and the task reads, each by the lake.

    It lies beside the pipeline's reports, whose upkeep removes it if no task has read it.

    Attributes:
        spec: the command.
        log: the task's logger.
    """

    spec: SubmitSpec
    log: Logger

    @property
    def uri(self) -> str:
        """The URI of the document; the same for each try of a task."""
        lake, pipeline = self.spec.environment["STRANDLINE_LAKE"], self.spec.first_argument
        of_command = sha256("\n".join(self.spec.arguments).encode()).hexdigest()[:20]
        return f"{uri_of(lake)}/{pipeline}/_reports/answers/{of_command}.json"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the place to the command."""
        return {JSON_FILE_VARIABLE: self.uri}

    def read(self) -> Any:
        """The document, which is removed; None if there is none, or the lake is out of reach."""
        command = [str(settings.executable()), "document", self.uri]
        done = PlainProcess().run(command, self.spec.environment, self.log)
        return None if done.exit_code else done.answer
