"""The locks of a pipeline: locked files in a folder, or terms on an object store.

A file lock is released when its process dies; a term expires.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import IO, TypeVar

from deltalake import CommitProperties, Transaction

from strandline.errors import InputError, RetryableError, not_writable
from strandline.lake.store.object_store import objects_at, one_publisher, require_created_once
from strandline.lake.store.terms import LASTS_S, Term, Terms

T = TypeVar("T")
_TIMEOUT_S = 900
_PAUSE_S = 0.2
_HELD: dict[str, Holding] = {}
"""The terms of this process by the place of their pipeline."""


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive `flock` on a file, after waiting for its holder.

    Raises:
        InputError: the file cannot be created.
        RetryableError: another process has held it for a quarter of an hour, or the disk is full.
    """
    with _opened(path) as handle:
        _waited(lambda: _is_locked(handle), str(path))
        yield


@dataclass(frozen=True)
class Holding:
    """The term of this process, during which it has the lock of a pipeline on an object store."""

    terms: Terms
    term: Term
    place: str

    def require(self) -> None:
        """Check that this process still has the lock.

        Raises:
            RetryableError: another process has taken the lock.
        """
        if not self.terms.is_held(self.term):
            problem = "another run has taken the pipeline's lock meanwhile; this one stops"
            raise RetryableError(self.place, problem, "run it again")


@contextmanager
def term_of(place: str, fence: Callable[[int], None]) -> Iterator[None]:
    """Hold the lock of a pipeline on an object store, after waiting for its holder.

    Args:
        place: the URI of the pipeline.
        fence: commits to each table in the name of this term, so that commits of an earlier holder
            conflict.

    Raises:
        InputError: the store has no conditional puts.
        RetryableError: another process has held the lock for a quarter of an hour.
    """
    if one_publisher():
        yield
        return
    require_created_once(place.rpartition("/")[0])
    terms = Terms(objects_at(f"{place}/_lock"))
    holding = Holding(terms, _waited(terms.take, f"{place}/_lock"), place)
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
    """The properties of a commit, which is tried only at the version after the opened one.

    Call it after the table has been opened: a process that has taken the lock since then either has
    written the table, so that the commit fails, or is found here.

    Args:
        place: the table's place.
        by: the author of the commit, such as a run.
        transactions: transactions of applications.

    Raises:
        RetryableError: this process has lost the pipeline's lock.
    """
    require_held(place)
    custom = None if by is None else {"userMetadata": by}
    return CommitProperties(custom, max_commit_retries=0, app_transactions=[*transactions] or None)


def require_held(place: str) -> None:
    """Check that this process still has the lock, before it writes a table or removes its files.

    Args:
        place: the table's place; deltalake ends it with a slash.

    Raises:
        RetryableError: another process has taken the lock.
    """
    if holding := _HELD.get(place.rstrip("/").rpartition("/")[0]):
        holding.require()


def _waited(take: Callable[[], T | None], place: str) -> T:
    """The first result of `take` that is true; it is tried again for a quarter of an hour."""
    until_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until_s:
        if taken := take():
            return taken
        time.sleep(_PAUSE_S)
    raise RetryableError(place, "held by another publisher", "try again later")


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


def _is_locked(handle: IO[str]) -> bool:
    """Lock a file, unless another process has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
