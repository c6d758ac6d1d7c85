"""What can go wrong, and whose move it is: an error is a place, a problem and a way out."""

from __future__ import annotations


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
        super().__init__(f"{place}: {problem}" + (f"; {way_out}" if way_out else ""))


class InputError(StrandlineError):
    """The input, the spec or an argument is wrong: trying again changes nothing."""

    exit_code = 2


class AuditFailedError(StrandlineError):
    """A critical expectation failed: nothing was published."""

    exit_code = 3


class RetryableError(StrandlineError):
    """Somebody else was quicker, or something was away: the same call may succeed later."""

    exit_code = 4
