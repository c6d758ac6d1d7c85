"""Handling of failures.

Each leaves a `failed` step and is raised as one of the program's errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException, SparkRuntimeException
from pyspark.sql import SparkSession

from strandline.engine.replay.operator_io import OF_A_RECORD
from strandline.errors import (
    AuditFailedError,
    InputError,
    RetryableError,
    StrandlineError,
    UnexpectedError,
    file_missing,
    problem_of,
    storage_error,
    was_interrupted,
)
from strandline.lake.local import MEMORY
from strandline.lake.sessions.exceptions import FAILURES, OF_VALUES
from strandline.lake.sessions.protocol import session_of
from strandline.pipeline.request.driver import INTERRUPTED
from strandline.spec.common import EngineName
from strandline.spec.functions import RAISED_BY

_THROWN = (*OF_VALUES, SparkRuntimeException)
"""Errors of an expression on a value that it cannot take; Sail has one class for all of them."""
_NO_MEMORY = re.compile("Resources exhausted|Failed to allocate additional")
"""Sail's message if its memory pool is exhausted and the operation cannot spill to disk."""
_NOT_WHOLE = re.compile("Exception deserializing response|Wire format was corrupt")
"""gRPC's message if an engine's answer cannot be decoded: the connection is at fault."""
_STAGED = "_staging"
"""The folder of files that no table's log names."""
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
"""Spark's message if all executors with some cached rows have died."""


@contextmanager
def failures_recorded(
    spark: SparkSession,
    pipeline: str,
    run_id: str,
    say_failed: Callable[[str], object],
    thrown: Callable[[], InputError | None] = lambda: None,
) -> Iterator[None]:
    """Record a `failed` step for an error raised inside, then raise it as a StrandlineError.

    A rejected run already has its step. A KeyboardInterrupt is raised unchanged.

    Args:
        spark: the session of the run.
        pipeline: its name.
        run_id: the id of the run.
        say_failed: writes the step with a message; if that fails, the original error is raised.
        thrown: finds the pipeline's expression that fails on a value; None: there is none.

    Raises:
        InputError: an expression or the user's function fails on a value.
        RetryableError: executors have died with data that no other one had, or the disk is full.
        UnexpectedError: any other error, which is its `__cause__`.
    """
    try:
        yield
    except AuditFailedError:
        raise
    except StrandlineError as error:
        _leave(say_failed, str(error))
        raise
    except KeyboardInterrupt:
        _leave(say_failed, INTERRUPTED)
        raise
    except Exception as error:
        message, raised = _as_ours(error, spark, pipeline, run_id, thrown)
        _leave(say_failed, INTERRUPTED if was_interrupted(error) else message)
        raise raised from error


def _as_ours(
    error: Exception,
    spark: SparkSession,
    pipeline: str,
    run_id: str,
    thrown: Callable[[], InputError | None],
) -> tuple[str, StrandlineError]:
    """The message of an error for the ledger, and the program's error to raise."""
    run = f"{pipeline} run {run_id}"
    if failure := _said_in_a_worker(pipeline, error):
        return failure
    if failed := storage_error(run, error) or _of_a_missing_file(run, pipeline, error):
        return failed.problem, failed
    session = session_of(spark)
    if session.has_ended:
        ended, way_out = _ended(session.engine)
        return ended, RetryableError(run, ended, way_out)
    on_sail = session.engine == "sail"
    if on_sail and _NO_MEMORY.search(str(error)):
        problem = "it needs more memory than Sail has been given"
        way_out = f"give --engine spark, or more: {MEMORY} below spark: in the file"
        return problem, InputError(pipeline, problem, way_out)
    if _NOT_WHOLE.search(str(error)):
        problem = f"an answer of {session.engine} could not be decoded"
        return problem, RetryableError(run, problem, "run it again")
    if found := _found(error, thrown):
        return str(found), found
    if isinstance(error, PySparkException if on_sail else _THROWN):
        problem = str(error).splitlines()[0]
        return problem, _not_computed(pipeline, problem, on_sail=on_sail)
    if _LOST in str(error):
        lost = "all executors have died that kept some rows of it"
        return lost, RetryableError(run, lost, "run it again")
    return problem_of(error), UnexpectedError.of(run, error)


def _ended(engine: EngineName) -> tuple[str, str]:
    """The problem of a run whose engine has ended before it, and the way out."""
    if engine == "connect":
        return "the server answers no more, or was restarted", "run it again once it answers"
    way_out = "run it again; if memory has run out, over a shorter range or with --engine spark"
    return f"the process of {engine} has ended before the run", way_out


def _of_a_missing_file(run: str, pipeline: str, error: Exception) -> InputError | None:
    """The error of a table without one of its files; None: the error has another cause."""
    is_of_a_table = isinstance(error, FileNotFoundError) and _STAGED not in str(error)
    return file_missing(run, pipeline, error) if is_of_a_table else None


def _not_computed(pipeline: str, problem: str, *, on_sail: bool) -> InputError:
    way_out = "if an expression of the pipeline throws on some value, use its try_… form"
    return InputError(
        pipeline,
        f"{'Sail' if on_sail else 'Spark'} cannot compute it ({problem})",
        f"{way_out}; or give --engine spark" if on_sail else way_out,
    )


def _found(error: BaseException, thrown: Callable[[], InputError | None]) -> InputError | None:
    """The expression that made the engine fail; None: not found."""
    if not isinstance(error, FAILURES) or _LOST in str(error):
        return None
    with suppress(Exception):
        return thrown()
    return None


def _said_in_a_worker(pipeline: str, error: BaseException) -> tuple[str, InputError] | None:
    """The error of a user's function, or of a replay: message for the ledger, and error to raise.

    None: the error has another cause.
    """
    text = str(error)
    if found := re.search(re.escape(RAISED_BY) + "(.*)", text):
        way_out = "correct the function: nothing has been published"
        return found[1], InputError(f"{pipeline}: process", found[1], way_out)
    if found := re.search(re.escape(OF_A_RECORD) + r"(\S+): (.*)", text):
        way_out = "leave them out by source.valid, or give a default (coalesce) or a limit (least)"
        place, problem = found[1], found[2]
        return f"{place}: {problem}", InputError(f"{pipeline}: {place}", problem, way_out)
    return None


def _leave(say_failed: Callable[[str], object], message: str) -> None:
    with suppress(Exception):
        say_failed(message)
