"""The exception by which a failed command fails its task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from strandline.errors import AuditFailedError, InputError, NoRunsError, StaleStagingError
from strandline.visible import visible
from strandline_airflow.answers import error_of

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
    message = f"{headline}. It said:\n{_error_of(output, answer)}"
    if exit_code == AuditFailedError.exit_code:
        return AuditRejectedError(message)
    kind = error_of(answer).get("kind")
    if kind in _OF_KIND:
        return _OF_KIND[kind](message)
    return AirflowFailException(message) if meaning else AirflowException(message)


def _error_of(output: Sequence[str], answer: Any) -> str:
    """The error in a command's document; if there is none, its last lines without Spark's log."""
    match error_of(answer):
        case {"place": place, "problem": problem, "way_out": way_out}:
            message = f"{place}: {problem}" + (f"; {way_out}" if way_out else "")
            return visible(message, keep="\n")
    lines = [line for line in output if line.strip() and not _NOISE.match(line)]
    return "\n".join(lines[-_LINES_SHOWN:])
