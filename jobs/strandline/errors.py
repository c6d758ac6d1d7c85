"""Errors with a place, a problem and a way out; their exit codes distinguish what to do."""

from __future__ import annotations

import re

from strandline.visible import visible


class StrandlineError(Exception):
    """An error that a user can act on.

    Attributes:
        place: the place of the problem (a file and YAML path, a table, an option).
        problem: the problem, with the offending value.
        way_out: what to do about it.
        exit_code: the exit code of the process, a part of the command's interface.
    """

    exit_code = 1

    def __init__(self, place: str, problem: str, way_out: str = "") -> None:
        """Set the parts; the message is `place: problem; way_out`."""
        self.place = place
        self.problem = problem
        self.way_out = way_out
        named = visible(place) if place.strip() else repr(place)
        message = f"{named}: {problem}" + (f"; {way_out}" if way_out else "")
        super().__init__(visible(message, keep="\n"))


class UnexpectedError(StrandlineError):
    """An unexpected error, such as a crash of Spark or a bug; its origin is its `__cause__`."""

    @classmethod
    def of(cls, place: str, error: BaseException) -> UnexpectedError:
        """The error for any exception; its place is the part of the program that raised it."""
        way_out = "running it again is safe; STRANDLINE_TRACE=1 shows where it comes from"
        return cls(place, problem_of(error), way_out)


class InterruptedByUserError(StrandlineError):
    """The user has interrupted the command, as with Ctrl-C."""

    exit_code = 130

    def __init__(self, place: str) -> None:
        """An interruption of the command or pipeline that `place` names."""
        super().__init__(place, "interrupted", "running it again is safe")


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an error is an interruption, or was raised while one was cleaned up."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


class InputError(StrandlineError):
    """The data, the pipeline's file or an argument is wrong; a retry would fail, too."""

    exit_code = 2


class NoAccessError(InputError):
    """Whoever runs the command may not read a place; another user may."""


class NoRunsError(InputError):
    """The results of a pipeline are requested before its first run."""

    def __init__(self, pipeline: str, lake: str) -> None:
        """Name the pipeline, the root of the lake, and the command that runs it."""
        super().__init__(
            pipeline,
            f"has no runs yet in the lake {lake}",
            "run strandline backfill or advance first, or name another lake (--lake)",
        )


class NoSuchRunError(InputError):
    """The run history has no run of this id."""

    def __init__(self, run_id: str, pipeline: str, lake: str) -> None:
        """Name the run, the root of the lake, and the command that lists all runs."""
        problem = f"no such run of {pipeline} in the lake {lake}"
        super().__init__(run_id, problem, f"see strandline runs list {pipeline}")


class StaleStagingError(InputError):
    """A prepared run that is out of date, so that it cannot be published."""

    def __init__(self, place: str, reason: str, way_out: str) -> None:
        """Name the prepared run, what has changed since, and how to prepare it again."""
        super().__init__(place, f"is out of date: {reason}", way_out)


class AuditFailedError(StrandlineError):
    """A critical expectation has failed, and nothing was published."""

    exit_code = 3


class RetryableError(StrandlineError):
    """A conflict with another process, or a missing service: a retry may succeed."""

    exit_code = 4


_ENGINES = {"pyspark", "py4j", "delta", "pysail", "grpc"}
"""The packages of engines, which are installed by an extra of this package."""


def not_installed(place: str, error: BaseException) -> InputError | None:
    """The error for a missing package of an engine; None for another exception."""
    missing = (getattr(error, "name", None) or "").split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or missing not in _ENGINES:
        return None
    way_out = "install strandline[sail], which needs no Java, strandline[spark] or [connect]"
    return InputError(place, f"needs an engine, and none is installed (no {missing})", way_out)


_LONGEST = 300
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_TOO_LARGE = re.compile(r"File too large")
_CUT = re.compile(r"Parquet file size is 0 bytes|Parquet magic bytes not found")
_DAMAGED_LOG = re.compile(
    "Kernel error: (?:Json error|Arrow error: Parquet error|No table metadata or protocol|"
    ".*found gap)"
)
_NOT_WRITABLE = re.compile(
    "Read-only file system|Permission denied|Operation not permitted|Not a directory|"
    "Is a directory|File exists|File name too long|Too many levels of symbolic links"
)


_NO_RIGHT = re.compile("Permission denied|Operation not permitted")
_OVERTAKEN = re.compile("Failed to commit transaction")
_REQUEST_FAILED = re.compile(
    "Generic (?:S3|GCS|MicrosoftAzure|URL) error|The operation lacked the necessary privileges|"
    "Error performing (?:GET|PUT|POST|HEAD|DELETE|list|bulk)"
)
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_CREDENTIALS_REFUSED = re.compile(
    "InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|"
    "lacked the necessary privileges|valid authentication credentials|40[13] "
)
_NO_CREDENTIALS = re.compile("169.254.169.254|instance metadata|[Cc]redentials? provider")
_NO_HTTP = re.compile("builder error|URL scheme is not allowed")
_UNKNOWN = re.compile("Unable to recognise URL")


def storage_error(
    place: str, error: BaseException, *, of_a_store: bool = False, to_read: bool = False
) -> StrandlineError | None:
    """The error for a full disk or a limit on it, or for a place that cannot be read or written.

    It is recognized by the system's texts, which engines, delta-rs and Arrow repeat in their
    errors.

    Args:
        place: the place that is read or written.
        error: an exception of any class.
        of_a_store: whether an object store has raised it.
        to_read: whether the place was only to be read.

    Returns:
        RetryableError if the disk is full, a limit is reached, or the store has failed; InputError
        if the path or its permissions are wrong, a file of a table is truncated, or a table's log
        is damaged; None for another exception.
    """
    text = str(error)
    if _OVERTAKEN.search(text):
        return RetryableError(place, "somebody else has written it meanwhile", "try again")
    if _REQUEST_FAILED.search(text):
        return store_error(place, error)
    if _FULL.search(text):
        way_out = (
            "free space there and in TMPDIR, then run it again: partly written files are ignored"
        )
        return RetryableError(place, "the disk is full", way_out)
    if _TOO_LARGE.search(text):
        way_out = "raise it (ulimit -f), then run it again: partly written files are ignored"
        return RetryableError(place, "a file would exceed the limit on the size of files", way_out)
    is_of_system = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
    if _CUT.search(text):
        way_out = "it was not stored when the power was cut: see 'A power cut' in the guide"
        return InputError(place, f"a file is not whole ({telling_line(text)})", way_out)
    telling, restore = telling_line(text)[:_LONGEST], "restore the files of its _delta_log"
    if _DAMAGED_LOG.search(text):
        return InputError(place, f"a table's log is damaged ({telling})", f"{restore} from a copy")
    if "Missing commit file" in text:  # of Sail, also for a version before the last checkpoint
        way_out = f"run it again, or with --engine spark; else {restore} from a copy"
        return InputError(place, f"a table lacks a commit ({telling})", way_out)
    if not (of_a_store or is_of_system):
        return None
    if _NOT_WRITABLE.search(text):
        return _cannot_be_read(place, error) if to_read else _refused(place, error)
    return RetryableError(place, f"the store failed ({telling_line(text)})", "try again")


def store_error(place: str, error: BaseException) -> StrandlineError:
    """The error for a request that an object store has refused or not answered."""
    text = str(error)
    if _UNKNOWN.search(text):
        return InputError(place, "no such kind of store is known", "name a folder, or s3://BUCKET")
    if _NO_BUCKET.search(text):
        way_out = "create it, or name another with --lake"
        return InputError(place, "there is no such bucket", way_out)
    if _NO_CREDENTIALS.search(text):
        way_out = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return NoAccessError(place, "there are no credentials for its store", way_out)
    if _CREDENTIALS_REFUSED.search(text):
        return NoAccessError(
            place,
            "its store refuses the credentials",
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do there",
        )
    if _NO_HTTP.search(text):
        way_out = "name https://… in AWS_ENDPOINT_URL, or set AWS_ALLOW_HTTP=true"
        return InputError(place, "its store has no address that may be asked", way_out)
    return RetryableError(
        place,
        "its store does not answer as it should",
        "check AWS_ENDPOINT_URL, and that the store is there; then try again "
        f"({telling_line(text)[:_LONGEST]})",
    )


def not_writable(place: str, error: BaseException) -> StrandlineError:
    """The error for a place, given by the user, that cannot be written."""
    full = _FULL.search(str(error)) or _TOO_LARGE.search(str(error))
    if full and (known := storage_error(place, error)):
        return known
    return InputError(place, f"cannot be written ({_of_the_system(error)})", _OTHER_PATH)


def _refused(place: str, error: BaseException) -> StrandlineError:
    """The error for a file that the system refuses: of Python's errors its name is known."""
    file = getattr(error, "filename", None)
    if file is None or str(file) in place:
        return not_writable(place, error)
    return InputError(place, f"{file} cannot be used ({_of_the_system(error)})", _OTHER_PATH)


def _cannot_be_read(place: str, error: BaseException) -> InputError:
    problem = f"cannot be read ({_of_the_system(error)})"
    is_refused = _NO_RIGHT.search(str(error)) is not None
    return (NoAccessError if is_refused else InputError)(place, problem, _OTHER_PATH)


def _of_the_system(error: BaseException) -> str:
    """The system's words for an error, without the number and the path."""
    return getattr(error, "strerror", None) or telling_line(str(error))


_OTHER_PATH = "check the path and its rights, or name another"
_GATEWAY_PREFIX = "An error occurred while calling"
"""The first words of errors of the JVM gateway, whose next line has the cause."""
_CHAINED = re.compile("^\\s*(?:\x1b\\[\\d+m)?↳(?:\x1b\\[0m)? (.*)$", re.MULTILINE)
"""A cause in an error of delta-rs, on a line of its own below the error."""
_AWAIT_FAILED, _CAUSE = "Exception thrown in awaitResult", "Caused by: "
"""The text of Spark's error for a failed task, and the prefix of the line with its cause."""


def file_missing(place: str, pipeline: str, error: Exception | None = None) -> InputError:
    """The error of a published table whose log names a file that is not there."""
    which = "" if error is None else f" ({problem_of(error)})"
    return InputError(
        place,
        f"a file that the table's log names is missing{which}",
        "restore it, or publish everything again: "
        f"strandline advance {pipeline} --recreate --to … --reason …; the next runs of pipelines "
        "over its results follow",
    )


def error_of(pipeline: str, error: Exception) -> StrandlineError:
    """The error for any exception over a pipeline's tables; a damaged one raises any class."""
    known = error if isinstance(error, StrandlineError) else storage_error(pipeline, error)
    return known or StrandlineError(pipeline, problem_of(error))


def problem_of(error: BaseException) -> str:
    """The class and the most informative line of any exception."""
    kind, problem = type(error).__name__, telling_line(str(error))
    line = f"{kind}: {problem}" if problem else kind
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def telling_line(message: str) -> str:
    """The most informative line of a message; empty if there is none."""
    if chained := _CHAINED.findall(message):  # the first line of delta-rs has no cause
        return ": ".join(line.strip() for line in chained)
    lines = [line.strip() for line in message.splitlines()]
    telling = [line for line in lines if line and not line.startswith(_GATEWAY_PREFIX)]
    if telling and _AWAIT_FAILED in telling[0]:
        causes = [line.removeprefix(_CAUSE) for line in telling if line.startswith(_CAUSE)]
        telling = [cause for cause in causes if _AWAIT_FAILED not in cause] or telling
    return telling[0].removeprefix(": ") if telling else ""
