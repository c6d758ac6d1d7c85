"""The outcome of a command: its JSON document, and the exception by which it fails its task.

The document is written to a file, so that the task's log shows the text for people; a command on
another machine writes it into the lake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from strandline.errors import AuditFailedError, InputError, NoRunsError, StaleStagingError
from strandline.model.command import JSON_FILE_VARIABLE
from strandline.visible import visible


class Answer(Protocol):
    """The place to which a command writes its JSON document."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the place to the command."""

    def read(self) -> Any:
        """The document; None if there is none."""


@dataclass(frozen=True)
class AnswerFile:
    """The file into which a command on this machine writes its JSON document."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the file to the command."""
        return {JSON_FILE_VARIABLE: str(self.path)}

    def read(self, secret: str | None = None) -> Any:
        """The document; None if the command has written none, or was killed while it wrote.

        Args:
            secret: text that is replaced by `***` wherever it occurs in the document.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
            return json.loads(text.replace(secret, "***") if secret else text)
        except (FileNotFoundError, ValueError):
            return None


@contextmanager
def answer_file() -> Iterator[AnswerFile]:
    """A temporary file for the document of one command."""
    with TemporaryDirectory(prefix="strandline-") as folder:
        yield AnswerFile(Path(folder, "answer.json"))


def exit_code_of(answer: Any) -> int | None:
    """The exit code in a document about an error; None if it has none."""
    match answer:
        case {"error": _, "exit_code": int(code)}:
            return code
    return None


def _error_in(answer: Any) -> Mapping[str, str]:
    """The parts of a document's error; empty if it has no error.

    They are `kind` (missing: of a version before 0.2.0), `place`, `problem` and `way_out`.
    """
    match answer:
        case {"error": {"place": str(), "problem": str(), "way_out": str()} as error}:
            return {name: str(part) for name, part in error.items()}
    return {}


_FINAL = {
    InputError.exit_code: "the input is wrong",
    AuditFailedError.exit_code: "the audit failed, so nothing was published",
}
_LINES_SHOWN = 25
_NOISE = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (TRACE|DEBUG|INFO|WARN) "  # log4j
    r"|WARNING: |Using Spark's default log4j|Setting default log level|To adjust logging level"
)


class StagingIsStaleError(AirflowFailException):
    """The prepared run has become stale: it has to be prepared again."""


class NothingHasRunError(AirflowFailException):
    """The pipeline has never run."""


class AuditRejectedError(AirflowFailException):
    """The audit of a run failed, and nothing was published."""


_OF_KIND = {
    StaleStagingError.__name__: StagingIsStaleError,
    NoRunsError.__name__: NothingHasRunError,
}
"""The exceptions of tasks for errors of some kinds, as a command's JSON document names them."""


def failure_of(
    job: str, exit_code: int, output: Sequence[str], answer: Any = None
) -> AirflowException:
    """The exception for a failed command; without retries for wrong input and failed audits.

    Args:
        job: the command, as the message names it.
        exit_code: its exit code, not 0.
        output: its last lines.
        answer: its JSON document with the error; None if it wrote none.
    """
    meaning = _FINAL.get(exit_code)
    headline = f"{job} ended with exit code {exit_code}" + (f": {meaning}" if meaning else "")
    message = f"{headline}. It said:\n{_message_of(output, answer)}"
    if exit_code == AuditFailedError.exit_code:
        return AuditRejectedError(message)
    kind = _error_in(answer).get("kind")
    if kind in _OF_KIND:
        return _OF_KIND[kind](message)
    return AirflowFailException(message) if meaning else AirflowException(message)


def _message_of(output: Sequence[str], answer: Any) -> str:
    """The error in a command's document; if there is none, its last lines without Spark's log."""
    match _error_in(answer):
        case {"place": place, "problem": problem, "way_out": way_out}:
            message = f"{place}: {problem}" + (f"; {way_out}" if way_out else "")
            return visible(message, keep="\n")
    lines = [line for line in output if line.strip() and not _NOISE.match(line)]
    return "\n".join(lines[-_LINES_SHOWN:])
