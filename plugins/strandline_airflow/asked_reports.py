"""Pages that somebody asks for: made one at a time, kept for a while, never for long."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
MOST_KEPT = 4
"""Reports of some megabytes each, in each process of Airflow's API."""
KEPT_S = 300.0
TIMEOUT_S = 120.0
"""The longest that making one may take."""
_MOST_WAITING = 4
_LONGEST_WAIT_S = 20.0


class BusyError(Exception):
    """Others are asking: a report is being made, and as many as may wait do."""


@dataclass(frozen=True)
class AskedReports(Generic[T]):
    """Pages, or what they show, by what was asked for.

    Each takes a process of its own, so that whoever reloads a page, or asks for one day after the
    other, would otherwise start as many as there are requests.
    """

    clock: Callable[[], float] = time.monotonic
    longest_wait_s: float = _LONGEST_WAIT_S
    most_kept: int = MOST_KEPT
    most_waiting: int = _MOST_WAITING
    _pages: OrderedDict[Hashable, tuple[float, T]] = field(default_factory=OrderedDict)
    _making: Lock = field(default_factory=Lock)
    _waiting: BoundedSemaphore = field(init=False)

    def __post_init__(self) -> None:
        """So many may wait."""
        object.__setattr__(self, "_waiting", BoundedSemaphore(self.most_waiting))

    def page(self, of: Hashable, make: Callable[[], T]) -> T:
        """A page, made unless one of the same is kept.

        Args:
            of: what it shows: the days, the pipeline, and the state of its tables.
            make: makes it.

        Raises:
            BusyError: others are being made, or waited for.
        """
        with self._turn():
            kept = self._pages.get(of)
            if kept is not None and self.clock() - kept[0] <= KEPT_S:
                return kept[1]
            made = make()
            self._pages[of] = self.clock(), made
            self._pages.move_to_end(of)
            while len(self._pages) > self.most_kept:
                self._pages.popitem(last=False)
            return made

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise BusyError
        try:
            if not self._making.acquire(timeout=self.longest_wait_s):
                raise BusyError
            try:
                yield
            finally:
                self._making.release()
        finally:
            self._waiting.release()
