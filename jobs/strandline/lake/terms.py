"""The lock of a pipeline on an object store: each term of it is an object, created if absent.

Whoever creates the next term holds the lock, until they end the term or let it expire; a store that
creates an object once makes sure that no two have the same term. A term that expired may have a
holder who is only slow, and whose last commit is still under way: see `Term.follows_cleanly`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from uuid import uuid4

import psutil

LASTS_S = 60.0
"""For how long a term is held without being extended."""
_KEPT, _MOST = 16, 200
"""Terms that stay, and objects at which older ones are removed."""
_SAID = ".said"


class Objects(Protocol):
    """Some objects of a store, by their names below one prefix."""

    def create(self, name: str, content: bytes) -> bool:
        """Create an object; whether it did not exist."""

    def put(self, name: str, content: bytes) -> None:
        """Write an object, whether it exists or not."""

    def get(self, name: str) -> bytes | None:
        """What an object holds; None: it does not exist."""

    def names(self) -> list[str]:
        """All objects."""

    def delete(self, name: str) -> None:
        """Remove an object."""


@dataclass(frozen=True)
class Owner:
    """A process that asks for the lock, and when it began, in s: a process id comes again."""

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    begun: float = field(default_factory=lambda: psutil.Process().create_time())

    @classmethod
    def of(cls, said: dict[str, Any]) -> Owner:
        """The owner that a term names."""
        return cls(str(said["host"]), int(said["pid"]), float(said["begun"]))

    def is_gone(self) -> bool:
        """Whether it was a process of this host that has ended; of other hosts nobody knows."""
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
    """A term that somebody has taken.

    Attributes:
        number: of the terms of a lock no two have the same; later ones have larger ones.
        content: what its object holds, which no other one does.
        follows_cleanly: whether the term before it was ended by its holder, all of whose commits
            were answered. Else each table has to get a commit of the new term, on which none
            that was prepared before it can follow, before anything else.
    """

    number: int
    content: bytes
    follows_cleanly: bool


@dataclass(frozen=True)
class Terms:
    """The terms of one lock.

    Attributes:
        objects: where they lie; nothing else does.
        owner: who asks.
        now_s: the time by this machine's clock. Clocks that differ cost retries, and no rows.
        is_gone: whether an owner is known to have ended.
    """

    objects: Objects
    owner: Owner = field(default_factory=Owner)
    now_s: Callable[[], float] = time.time
    is_gone: Callable[[Owner], bool] = Owner.is_gone

    def take(self) -> Term | None:
        """Try once to take the next term; None: somebody holds the lock, or was quicker."""
        newest, cleanly = self._newest(), True
        if newest:
            said = self._said(newest)
            if said.get("ended") is None and not self._has_expired(said):
                return None
            cleanly = said.get("ended") == "cleanly"
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
        """Whether nobody has taken a later term: ask between the read and the commit."""
        return (
            self.objects.get(_name(term.number)) == term.content
            and self.objects.get(_name(term.number + 1)) is None
        )

    def extend(self, term: Term) -> None:
        """Hold a term for some more time."""
        self.objects.put(_name(term.number) + _SAID, self._content(owner=asdict(self.owner)))

    def end(self, term: Term, *, cleanly: bool) -> None:
        """Let go of a term; `cleanly`: no commit is under way whose answer did not come."""
        ended = "cleanly" if cleanly else "with a commit that may still come"
        self.objects.put(_name(term.number) + _SAID, self._content(ended=ended))

    def _content(self, **more: Any) -> bytes:
        return json.dumps({"expires_at_s": self.now_s() + LASTS_S, **more}).encode()

    def _said(self, number: int) -> dict[str, Any]:
        """What the holder of a term has said last."""
        name = _name(number)
        content = self.objects.get(name + _SAID) or self.objects.get(name)
        return {"ended": "removed"} if content is None else dict(json.loads(content))

    def _has_expired(self, said: dict[str, Any]) -> bool:
        return self.now_s() > said["expires_at_s"] or self.is_gone(Owner.of(said["owner"]))

    def _newest(self) -> int:
        """The number of the newest term; 0: there was none."""
        return max((int(name) for name in self.objects.names() if name.isdigit()), default=0)

    def _remove_old(self, number: int) -> None:
        """Remove terms of long ago, the oldest first: who has one of them finds it gone."""
        names = sorted(self.objects.names())
        if len(names) > _MOST:
            for name in names:
                if int(name.removesuffix(_SAID)) <= number - _KEPT:
                    self.objects.delete(name)


def _name(number: int) -> str:
    return f"{number:012}"
