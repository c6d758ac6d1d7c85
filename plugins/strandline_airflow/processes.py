"""A program as a plain process of a task, and the termination of a process with its children."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
from airflow.sdk.exceptions import AirflowFailException

from strandline.visible import visible
from strandline_airflow.outcomes import answer_file
from strandline_airflow.settings import CONNECTION

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

LINES_KEPT = 200
"""The number of last lines of a process's output that are kept for an error message."""
_GRACE_SECONDS = 3  # Airflow itself waits 5 s before it kills the task


@contextmanager
def started(program: str) -> Iterator[None]:
    """Starts a program, which an error names.

    Raises:
        AirflowFailException: it cannot be started; a retry would not mend it.
    """
    try:
        yield
    except OSError as error:
        problem = f"the command {program} cannot be started ({error.strerror})"
        way_out = f"the connection {CONNECTION!r} may name another one as `executable`"
        raise AirflowFailException(f"{problem}: {way_out}") from None


@dataclass(frozen=True)
class Ended:
    """The result of a process.

    Attributes:
        exit_code: 0 if it succeeded.
        output: the last lines that it printed.
        answer: the JSON document that it wrote; None if it wrote none.
    """

    exit_code: int
    output: list[str]
    answer: Any = None


class PlainProcess:
    """A process whose output is the task's log."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[str] | None = None

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Logger,
        *,
        secret: str | None = None,
    ) -> Ended:
        """Run a command to its end.

        Args:
            command: the program and its arguments; the log shows them.
            environment: variables in addition to the task's; the log does not show them.
            log: the task's logger.
            secret: text that the log and the output show as `***`.

        Raises:
            AirflowFailException: it cannot be started.
        """
        with answer_file() as file:
            exit_code, output = self._logged(
                command, {**environment, **file.environment}, log, secret
            )
            return Ended(exit_code, output, file.read(secret))

    def _logged(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Logger,
        secret: str | None,
    ) -> tuple[int, list[str]]:
        """Run a command and log its lines; its exit code and last lines."""
        log.info("Running %s", command)
        with started(command[0]):
            self._running = running = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="backslashreplace",
            )
        output: deque[str] = deque(maxlen=LINES_KEPT)
        # no `with`: a task that takes too long is unwound from here and ends the process after
        # that, so nothing may wait for it, nor close what it writes to
        if running.stdout is not None:
            for line in running.stdout:
                shown = line.replace(secret, "***") if secret else line
                output.append(visible(shown.rstrip(), keep="\t"))
                log.info("%s", output[-1])
            running.stdout.close()
        return running.wait(), list(output)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._running is not None:
            end_tree(self._running)


def end_tree(process: subprocess.Popen[Any], *, ask_all: bool = False) -> None:
    """Terminate a process and its children, and kill all that still run after the grace time.

    Args:
        process: the process; it gets SIGTERM first, so that it can end its work in order.
        ask_all: whether its children get SIGTERM as well; needed if it does not forward the signal.
    """
    if process.poll() is not None:
        return
    deadline = time.monotonic() + _GRACE_SECONDS
    below: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
    _signal(below if ask_all else [], "terminate")
    process.terminate()
    # only its own Popen may wait for it: whoever else did would take its exit code away, and who
    # waits for it as well would take the end for a success
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_SECONDS)
    psutil.wait_procs(below, timeout=max(0.1, deadline - time.monotonic()))
    process.kill()
    _signal(below, "kill")


def _signal(processes: list[psutil.Process], how: str) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            getattr(process, how)()
