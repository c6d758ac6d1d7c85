"""Processes that take a lock's terms and commit to tables, one step at a time, as a seed draws."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from threading import Semaphore, Thread

from strandline.lake.terms import LASTS_S, Owner, Terms

TABLES = ("windows", "quarantine", "runs")


class Killed(BaseException):
    """The process dies."""


class Overtaken(Exception):
    """Somebody has written the table since it was opened."""


@dataclass
class Schedule:
    """Which process goes on, which dies, and what a clock says, by a seed.

    Attributes:
        asks: whether a process asks before each commit whether its term is still held.
        fences: whether it gives each table a commit where the term before was not ended cleanly.
    """

    seed: int
    asks: bool = True
    fences: bool = True
    objects: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in TABLES})
    held: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    now_s: float = 0.0

    def run(self, processes: int = 4) -> Schedule:
        """Let them all run to their ends."""
        self.chance, self.back = random.Random(self.seed), Semaphore(0)
        actors = [Actor(self, number) for number in range(processes)]
        threads = [Thread(target=actor.run, daemon=True) for actor in actors]
        for thread in threads:
            thread.start()
        while alive := [actor for actor in actors if not actor.has_ended]:
            self.now_s += self.chance.choices((0, 1, 5, LASTS_S + 1), (5, 5, 2, 0.4))[0]
            self.chance.choice(alive).go.release()
            self.back.acquire()
        for thread in threads:
            thread.join()
        return self

    def late_commits(self) -> list[tuple[str, int, int]]:
        """Commits of earlier terms than one that had been taken, and had fenced, before them."""
        return [
            (name, late, number)
            for number, lengths in self.held
            for name, commits in self.tables.items()
            for late in commits[lengths[name] :]
            if late < number
        ]


@dataclass
class Actor:
    """A process, and the store as it sees it: whatever it does waits for its turn."""

    schedule: Schedule
    number: int
    go: Semaphore = field(default_factory=lambda: Semaphore(0))
    has_ended: bool = False

    def turn(self):
        self.schedule.back.release()
        self.go.acquire()
        if self.schedule.chance.random() < 0.01:
            raise Killed

    def run(self):
        self.go.acquire()
        try:
            for _ in range(6):
                self.publish()
        except Killed:
            pass
        finally:
            self.has_ended = True
            self.schedule.back.release()

    def publish(self):
        schedule = self.schedule
        terms = Terms(
            self,
            Owner("a host", self.number, 0.0),
            now_s=lambda: schedule.now_s + self.number,
            is_gone=lambda owner: schedule.chance.random() < 0.1,  # wrongly, even
        )
        term = terms.take()
        if term is None:
            return
        cleanly = False
        try:
            if schedule.fences and not term.follows_cleanly:
                for name in TABLES:
                    self.fence(terms, term, name)
            lengths = {name: len(commits) for name, commits in schedule.tables.items()}
            schedule.held.append((term.number, lengths))
            for name in TABLES:
                self.commit(terms, term, name)
            schedule.published.append(term.number)
            cleanly = True
        except Overtaken:
            pass
        finally:
            terms.end(term, cleanly=cleanly)

    def fence(self, terms, term, name):
        while True:
            try:
                return self.commit(terms, term, name)
            except Overtaken:
                if not terms.is_held(term):
                    raise

    def commit(self, terms, term, name):
        self.turn()
        version = len(self.schedule.tables[name])
        if self.schedule.asks and not terms.is_held(term):
            raise Overtaken
        self.turn()
        if len(self.schedule.tables[name]) != version:
            raise Overtaken
        self.schedule.tables[name].append(term.number)

    def create(self, name, content):
        self.turn()
        if name in self.schedule.objects:
            return False
        self.schedule.objects[name] = content
        # the answer may be lost, and the request repeated
        return self.schedule.chance.random() > 0.05

    def put(self, name, content):
        self.turn()
        self.schedule.objects[name] = content

    def get(self, name):
        self.turn()
        return self.schedule.objects.get(name)

    def names(self):
        self.turn()
        return list(self.schedule.objects)

    def delete(self, name):
        self.turn()
        self.schedule.objects.pop(name, None)
