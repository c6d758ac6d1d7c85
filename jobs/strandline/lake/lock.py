"""The locks of a pipeline: files of a folder, or terms of an object store.

The system frees a file when its holder dies; a term expires.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import IO

from deltalake import CommitProperties, Transaction

from strandline.errors import InputError, RetryableError, not_writable
from strandline.lake.object_store import objects_at, one_publisher, require_created_once
from strandline.lake.terms import LASTS_S, Term, Terms

_TIMEOUT_S = 900
_PAUSE_S = 0.2
_HELD: dict[str, Holding] = {}
"""The terms that this process holds, by the place of their pipeline."""


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive `flock` on a file, waiting for whoever has it.

    Raises:
        InputError: the file cannot be made.
        RetryableError: its holder did not let go for a quarter of an hour, or the disk is full.
    """
    with _opened(path) as handle:
        _wait_for(handle, path)
        yield


@dataclass(frozen=True)
class Holding:
    """A term that this process holds."""

    terms: Terms
    term: Term
    place: str

    def require(self) -> None:
        """Refuse to go on unless the term is still held.

        Raises:
            RetryableError: somebody has taken the lock since.
        """
        if not self.terms.is_held(self.term):
            problem = "another run has taken the pipeline's lock meanwhile; this one stops"
            raise RetryableError(self.place, problem, "run it again")


@contextmanager
def term_of(place: str, fence: Callable[[int], None]) -> Iterator[None]:
    """Hold the lock of a pipeline on an object store, waiting for whoever has it.

    Args:
        place: of the pipeline, below the lake.
        fence: gives each table a commit of this term.

    Raises:
        InputError: the store creates no object just once.
        RetryableError: its holder did not let go for a quarter of an hour.
    """
    if one_publisher():
        yield
        return
    require_created_once(place.rpartition("/")[0])
    terms = Terms(objects_at(f"{place}/_lock"))
    holding = Holding(terms, _wait_for_term(terms, place), place)
    cleanly, done = False, Event()
    extending = Thread(target=_extend, args=(holding, done), daemon=True)
    extending.start()
    _HELD[place] = holding
    try:
        if not holding.term.follows_cleanly:
            fence(holding.term.number)
        yield
        cleanly = True
    except InputError:
        cleanly = True
        raise
    finally:
        del _HELD[place]
        done.set()
        extending.join()
        with suppress(Exception):  # it expires
            terms.end(holding.term, cleanly=cleanly)


def commit(
    place: str, by: str | None = None, transactions: Sequence[Transaction] = ()
) -> CommitProperties:
    """What a commit says of itself; it is tried at just the version after the one that was read.

    Ask for it after the table has been opened, and not before: whoever took the lock since then has
    either written the table, so that the commit fails, or is found here.

    Args:
        place: of the table.
        by: the run, or what else commits.
        transactions: of applications.

    Raises:
        RetryableError: this process held the pipeline's lock, and has lost it.
    """
    require_held(place)
    said = None if by is None else {"userMetadata": by}
    return CommitProperties(said, max_commit_retries=0, app_transactions=[*transactions] or None)


def require_held(place: str) -> None:
    """Refuse to write a table, or to remove its files, if this process has lost the lock it held.

    Args:
        place: of the table; deltalake ends it with a slash.

    Raises:
        RetryableError: somebody has taken the lock since.
    """
    if holding := _HELD.get(place.rstrip("/").rpartition("/")[0]):
        holding.require()


def _wait_for_term(terms: Terms, place: str) -> Term:
    until_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until_s:
        if term := terms.take():
            return term
        time.sleep(_PAUSE_S)
    raise RetryableError(f"{place}/_lock", "held by another publisher", "try again later")


def _extend(holding: Holding, done: Event) -> None:
    while not done.wait(LASTS_S / 4):
        with suppress(Exception):  # it is tried again; who has lost the term finds out elsewhere
            holding.terms.extend(holding.term)


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        raise not_writable(str(path.parent), error) from None


def _wait_for(handle: IO[str], path: Path) -> None:
    for _ in range(int(_TIMEOUT_S / _PAUSE_S)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    raise RetryableError(str(path), "held by another publisher", "try again later")
