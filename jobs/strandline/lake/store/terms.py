"""The lock of a pipeline on an object store: a sequence of terms, each an object created if absent.

The process that creates the next term's object holds the lock until it ends the term, or lets it
expire; conditional puts ensure that no two processes have the same term. The holder of an expired
term may only be slow, with a commit still in progress: see `Term.follows_cleanly`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

import psutil

from strandline.lake.store.object_store import StoreObjects

LASTS_S = 60.0
"""The time in seconds after which a term expires if it is not extended."""
_TERMS_KEPT, _MOST = 16, 200
"""The number of terms that are kept, and the number of objects at which older ones are removed."""
_STATE = ".said"
"""The suffix of the object with the last state of a term, as its owner wrote it."""


@dataclass(frozen=True)
class Owner:
    """A process that takes the lock, with its start in s, since process ids are reused."""

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    begun: float = field(default_factory=lambda: psutil.Process().create_time())

    @classmethod
    def of(cls, content: dict[str, Any]) -> Owner:
        """The owner in a term's content."""
        return cls(str(content["host"]), int(content["pid"]), float(content["begun"]))

    def has_ended(self) -> bool:
        """Whether it is an ended process of this host; False for processes of other hosts."""
        if self.host != socket.gethostname():
            return False
        try:
            process = psutil.Process(self.pid)
            ended = process.status() == psutil.STATUS_ZOMBIE
            return ended or bool(process.create_time() != self.begun)
        except psutil.NoSuchProcess:
            return True


@dataclass(frozen=True)
class Term:
    """A taken term.

    Attributes:
        number: its number, unique and ascending among the terms of a lock.
        content: the content of its object, unique among all terms.
        follows_cleanly: whether the previous term was ended by its holder after all its commits
            were answered. Otherwise each table first gets a commit of the new term, so that commits
            prepared before it have a conflict.
    """

    number: int
    content: bytes
    follows_cleanly: bool


@dataclass(frozen=True)
class Terms:
    """The terms of one lock, as objects in a store.

    Attributes:
        objects: a prefix with the objects of the terms, and no others.
        owner: the process that takes the lock.
        now_s: the current time of this machine; differing clocks cause retries, but lose no rows.
        has_ended: whether an owner is known to have ended.
    """

    objects: StoreObjects
    owner: Owner = field(default_factory=Owner)
    now_s: Callable[[], float] = time.time
    has_ended: Callable[[Owner], bool] = Owner.has_ended

    def take(self) -> Term | None:
        """Try once to take the next term; None if another process has the lock, or was faster."""
        newest, cleanly = self._newest(), True
        if newest:
            state = self._state_of(newest)
            if state.get("ended") is None and not self._has_expired(state):
                return None
            cleanly = state.get("ended") == "cleanly"
        number = newest + 1
        content = self._content(token=uuid4().hex, owner=asdict(self.owner))
        created = self.objects.create(_name(number), content)
        # an answer may have been lost, and the request repeated: then the object is this one's
        if not created and self.objects.get(_name(number)) != content:
            return None
        # whoever slept since the list was read may have created a term that was removed since
        if self._newest() != number:
            return None
        self._remove_old(number)
        return Term(number, content, cleanly)

    def is_held(self, term: Term) -> bool:
        """Whether a term still holds the lock; to be checked between a read and its commit."""
        return (
            self.objects.get(_name(term.number)) == term.content
            and self.objects.get(_name(term.number + 1)) is None
        )

    def extend(self, term: Term) -> None:
        """Extend a term's expiry."""
        self.objects.put(_name(term.number) + _STATE, self._content(owner=asdict(self.owner)))

    def end(self, term: Term, *, cleanly: bool) -> None:
        """End a term; `cleanly`: the store has answered all its commits."""
        ended = "cleanly" if cleanly else "with a commit that may still come"
        self.objects.put(_name(term.number) + _STATE, self._content(ended=ended))

    def _content(self, **more: Any) -> bytes:
        return json.dumps({"expires_at_s": self.now_s() + LASTS_S, **more}).encode()

    def _state_of(self, number: int) -> dict[str, Any]:
        """The last state that the holder of a term has written."""
        name = _name(number)
        content = self.objects.get(name + _STATE) or self.objects.get(name)
        return {"ended": "removed"} if content is None else dict(json.loads(content))

    def _has_expired(self, state: dict[str, Any]) -> bool:
        return self.now_s() > state["expires_at_s"] or self.has_ended(Owner.of(state["owner"]))

    def _newest(self) -> int:
        """The number of the newest term; 0 if there was none."""
        return max((int(name) for name in self.objects.names() if name.isdigit()), default=0)

    def _remove_old(self, number: int) -> None:
        """Remove old terms, the oldest first; a holder of a removed term has lost the lock."""
        names = sorted(self.objects.names())
        if len(names) > _MOST:
            for name in names:
                if int(name.removesuffix(_STATE)) <= number - _TERMS_KEPT:
                    self.objects.delete(name)


def _name(number: int) -> str:
    return f"{number:012}"
