"""Pages made on request: one at a time, and cached for some minutes."""

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
"""The number of cached pages, some megabytes each, in each process of Airflow's API."""
KEPT_S = 300.0
"""The age in seconds after which a cached page is made again."""
TIMEOUT_S = 120.0
"""The longest time in seconds for making one page."""
_MOST_WAITING = 4
_LONGEST_WAIT_S = 20.0


class BusyError(Exception):
    """Too many requests are waiting for the page that is being made."""


@dataclass(frozen=True)
class AskedReports(Generic[T]):
    """A cache of pages, or of their data, by request.

    Making one starts a process, so a limit is needed: without it, reloading a page again and again
    would start as many processes as there are requests.
    """

    clock: Callable[[], float] = time.monotonic
    longest_wait_s: float = _LONGEST_WAIT_S
    most_kept: int = MOST_KEPT
    most_waiting: int = _MOST_WAITING
    _pages: OrderedDict[Hashable, tuple[float, T]] = field(default_factory=OrderedDict)
    _making: Lock = field(default_factory=Lock)
    _waiting: BoundedSemaphore = field(init=False)

    def __post_init__(self) -> None:
        """Set the number of requests that may wait."""
        object.__setattr__(self, "_waiting", BoundedSemaphore(self.most_waiting))

    def page(self, of: Hashable, make: Callable[[], T]) -> T:
        """The cached page, or a new one.

        Args:
            of: the key of the page: pipeline, days, and the state of the pipeline's tables.
            make: makes the page.

        Raises:
            BusyError: too many requests are waiting.
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
