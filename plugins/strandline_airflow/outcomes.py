"""What a finished job means to Airflow: its result, or an error that says what the job said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from strandline.errors import AuditFailedError, InputError
from strandline.visible import visible

_FINAL = {
    InputError.exit_code: "the input is wrong",
    AuditFailedError.exit_code: "the audit failed, so nothing was published",
}
_STALE = "is stale"
"""So begins what `runs publish` says of a staging that others, or other rules, have overtaken."""
_LINES_SHOWN = 25
_DOCUMENT = re.compile(r"^\{", re.MULTILINE)
_NOISE = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (TRACE|DEBUG|INFO|WARN) "  # log4j
    r"|WARNING: |Using Spark's default log4j|Setting default log level|To adjust logging level"
)


class StagingIsStaleError(AirflowFailException):
    """What was prepared is no longer what would be published: it has to be prepared again."""


class AuditRejectedError(AirflowFailException):
    """The audit of a run failed: nothing is published until what it found is mended."""


def result_of(output: Sequence[str]) -> Any:
    """The JSON document that a job printed last, or null if it printed none.

    Args:
        output: the lines of stdout and stderr as they came; log lines may stand around it.
    """
    decoder, text, found, position = json.JSONDecoder(), "\n".join(output), None, 0
    while start := _DOCUMENT.search(text, position):
        try:
            found, position = decoder.raw_decode(text, start.start())
        except ValueError:
            position = start.end()
    return found


def failure_of(job: str, exit_code: int, output: Sequence[str]) -> AirflowException:
    """The exception for a job that failed: final for wrong input and failed audits."""
    meaning = _FINAL.get(exit_code)
    headline = f"{job} ended with exit code {exit_code}" + (f": {meaning}" if meaning else "")
    message = f"{headline}. It said:\n{_said(output)}"
    if exit_code == AuditFailedError.exit_code:
        return AuditRejectedError(message)
    if _error_in(output).get("problem", "").startswith(_STALE):
        return StagingIsStaleError(message)
    return AirflowFailException(message) if meaning else AirflowException(message)


def _said(output: Sequence[str]) -> str:
    """The error that a job printed with `--json`; else its last lines, less Spark's own."""
    match _error_in(output):
        case {"place": place, "problem": problem, "way_out": way_out}:
            message = f"{place}: {problem}" + (f"; {way_out}" if way_out else "")
            return visible(message, keep="\n")
    said = [line for line in output if line.strip() and not _NOISE.match(line)]
    return "\n".join(said[-_LINES_SHOWN:])


def _error_in(output: Sequence[str]) -> dict[str, str]:
    """The parts of the error that a job printed with `--json`; empty: it printed none."""
    match result_of(output):
        case {"error": {"place": str(), "problem": str(), "way_out": str()} as error}:
            return dict(error)
    return {}
