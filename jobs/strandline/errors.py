"""What can go wrong, and whose move it is: an error is a place, a problem and a way out."""

from __future__ import annotations

import re

from strandline.visible import visible


class StrandlineError(Exception):
    """An error that a user can act on.

    Attributes:
        place: where it is wrong (a file and YAML path, a table, an option).
        problem: what is wrong there, with the offending value.
        way_out: what to do about it.
        exit_code: the process exit code; part of the command's interface.
    """

    exit_code = 1

    def __init__(self, place: str, problem: str, way_out: str = "") -> None:
        """Keep the three parts; the message is `place: problem; way_out`."""
        self.place = place
        self.problem = problem
        self.way_out = way_out
        message = f"{place}: {problem}" + (f"; {way_out}" if way_out else "")
        super().__init__(visible(message, keep="\n"))


class UnexpectedError(StrandlineError):
    """Something that nobody has foreseen: a crash of Spark, a full disk, a bug.

    What it came from is its `__cause__`.
    """

    @classmethod
    def of(cls, place: str, error: BaseException) -> UnexpectedError:
        """What a user reads of any error; the place is where it came up."""
        way_out = "running it again is safe; STRANDLINE_TRACE=1 shows where it comes from"
        return cls(place, problem_of(error), way_out)


class InterruptedByUserError(StrandlineError):
    """Somebody has interrupted it, as with Ctrl-C."""

    exit_code = 130


class InputError(StrandlineError):
    """The input, the spec or an argument is wrong: trying again changes nothing."""

    exit_code = 2


class NoRunsError(InputError):
    """A pipeline that has not run yet is asked what its runs have left."""

    def __init__(self, pipeline: str) -> None:
        """Name the pipeline, and how to run it."""
        super().__init__(pipeline, "has no runs yet", "run strandline backfill or advance first")


class NoSuchRunError(InputError):
    """A run that the run history does not have."""

    def __init__(self, run_id: str, pipeline: str) -> None:
        """Name the run, and where all of them are listed."""
        super().__init__(run_id, "no such run", f"see strandline runs list {pipeline}")


class AuditFailedError(StrandlineError):
    """A critical expectation failed: nothing was published."""

    exit_code = 3


class RetryableError(StrandlineError):
    """Somebody else was quicker, or something was away: the same call may succeed later."""

    exit_code = 4


_ENGINES = {"pyspark", "py4j", "delta", "pysail", "grpc"}
"""Packages of engines, which come with an extra of this one."""


def not_installed(place: str, error: BaseException) -> InputError | None:
    """What it means that a package of an engine is missing; None: it is another error."""
    missing = (getattr(error, "name", None) or "").split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or missing not in _ENGINES:
        return None
    way_out = "install strandline[sail], which needs no Java, strandline[spark] or [connect]"
    return InputError(place, f"needs an engine, and none is installed (no {missing})", way_out)


_LONGEST = 300
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_CUT = re.compile(r"Parquet file size is 0 bytes|Parquet magic bytes not found")
_NOT_WRITABLE = re.compile(
    "Read-only file system|Permission denied|Operation not permitted|Not a directory|"
    "Is a directory|File exists|File name too long|Too many levels of symbolic links"
)


_OVERTAKEN = re.compile("Failed to commit transaction")
_OF_A_REQUEST = re.compile(
    "Generic (?:S3|GCS|MicrosoftAzure|URL) error|The operation lacked the necessary privileges|"
    "Error performing (?:GET|PUT|POST|HEAD|DELETE|list|bulk)"
)
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_REFUSED = re.compile(
    "InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|"
    "lacked the necessary privileges|valid authentication credentials|40[13] "
)
_NO_CREDENTIALS = re.compile("169.254.169.254|instance metadata|[Cc]redentials? provider")
_NO_HTTP = re.compile("builder error|URL scheme is not allowed")
_UNKNOWN = re.compile("Unable to recognise URL")


def storage_error(
    place: str, error: BaseException, *, of_a_store: bool = False
) -> StrandlineError | None:
    """What a full disk, or a place that cannot be read or written, means to a user.

    It is found by the system's words, which an engine, delta-rs and Arrow put into their errors.

    Args:
        place: what was to be read or written.
        error: of any class.
        of_a_store: whether a store has raised it, whatever its class.

    Returns:
        RetryableError: the disk is full, or the store has failed. InputError: the path, or its
        rights, are wrong; or a file of a table is cut. None: it is nothing of the kind.
    """
    said = str(error)
    if _OVERTAKEN.search(said):
        return RetryableError(place, "somebody else has written it meanwhile", "try again")
    if _OF_A_REQUEST.search(said):
        return store_error(place, error)
    if _FULL.search(said):
        way_out = "free space there and in TMPDIR, then run it again: nothing half written counts"
        return RetryableError(place, "the disk is full", way_out)
    is_of_a_store = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
    if _CUT.search(said):
        way_out = "it was not stored when the power was cut: see 'A power cut' in the guide"
        return InputError(place, f"a file is not whole ({telling_line(said)})", way_out)
    if not (of_a_store or is_of_a_store):
        return None
    if _NOT_WRITABLE.search(said):
        return not_writable(place, error)
    return RetryableError(place, f"the store failed ({telling_line(said)})", "try again")


def store_error(place: str, error: BaseException) -> StrandlineError:
    """What it means that an object store has refused a request, or has not answered."""
    said = str(error)
    if _UNKNOWN.search(said):
        return InputError(place, "no such kind of store is known", "name a folder, or s3://BUCKET")
    if _NO_BUCKET.search(said):
        way_out = "create it, or name another with --lake"
        return InputError(place, "there is no such bucket", way_out)
    if _NO_CREDENTIALS.search(said):
        way_out = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return InputError(place, "there are no credentials for its store", way_out)
    if _REFUSED.search(said):
        return InputError(
            place,
            "its store refuses the credentials",
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do there",
        )
    if _NO_HTTP.search(said):
        way_out = "name https://… in AWS_ENDPOINT_URL, or set AWS_ALLOW_HTTP=true"
        return InputError(place, "its store has no address that may be asked", way_out)
    return RetryableError(
        place,
        "its store does not answer as it should",
        "check AWS_ENDPOINT_URL, and that the store is there; then try again "
        f"({telling_line(said)[:_LONGEST]})",
    )


def not_writable(place: str, error: BaseException) -> StrandlineError:
    """What it means that a place which a person has named cannot be written."""
    if _FULL.search(str(error)) and (full := storage_error(place, error)):
        return full
    problem = f"cannot be written ({getattr(error, 'strerror', None) or telling_line(str(error))})"
    return InputError(place, problem, "check the path and its rights, or name another")


_OF_THE_GATEWAY = "An error occurred while calling"
"""Python's gateway to the JVM begins so; the next line has the cause."""
_OF_A_WAIT, _CAUSE = "Exception thrown in awaitResult", "Caused by: "
"""Spark says no more than this where a task failed for whose end it waited; its cause does."""


def problem_of(error: BaseException) -> str:
    """What an error of any class says, in one line: its kind, and its telling line."""
    kind, problem = type(error).__name__, telling_line(str(error))
    line = f"{kind}: {problem}" if problem else kind
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def telling_line(message: str) -> str:
    """The first line of a message that says what is wrong; empty: there is none."""
    lines = [line.strip() for line in message.splitlines()]
    telling = [line for line in lines if line and not line.startswith(_OF_THE_GATEWAY)]
    if telling and _OF_A_WAIT in telling[0]:
        causes = [line.removeprefix(_CAUSE) for line in telling if line.startswith(_CAUSE)]
        telling = [cause for cause in causes if _OF_A_WAIT not in cause] or telling
    return telling[0].removeprefix(": ") if telling else ""
