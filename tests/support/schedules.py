"""Processes that take a lock's terms and commit to tables, one step at a time, as a seed draws."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from threading import Semaphore, Thread

from strandline.lake.store.terms import LASTS_S, Owner, Terms

TABLES = ("windows", "quarantine", "runs")


class Killed(BaseException):
    """The process dies."""


class Overtaken(Exception):
    """Somebody has written the table since it was opened."""


class Memory:
    """Objects of a store that is right."""

    def __init__(self):
        self.held = {}

    def create(self, name, content):
        if name in self.held:
            return False
        self.held[name] = content
        return True

    def put(self, name, content):
        self.held[name] = content

    def get(self, name):
        return self.held.get(name)

    def names(self):
        return list(self.held)

    def delete(self, name):
        self.held.pop(name, None)


class MemoryTables:
    """Tables as the terms that have committed to them; a commit is tried at one version."""

    def __init__(self):
        self.commits = {name: [] for name in TABLES}

    def opened(self, name):
        return len(self.commits[name])

    length = opened

    def append(self, name, opened, number):
        if len(self.commits[name]) != opened:
            raise Overtaken
        self.commits[name].append(number)

    def terms(self, name):
        return self.commits[name]


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
    objects: object = field(default_factory=Memory)
    tables: object = field(default_factory=MemoryTables)
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
            for name in TABLES
            for terms in [self.tables.terms(name)]
            for number, lengths in self.held
            for late in terms[lengths[name] :]
            if late < number
        ]


@dataclass
class Actor:
    """A process, and the store as it sees it: whatever it does waits for its turn."""

    schedule: Schedule
    number: int
    rounds: int = 6
    go: Semaphore = field(default_factory=lambda: Semaphore(0))
    has_ended: bool = False

    def turn(self):
        self.hand_over()
        self.wait()
        self.draw()

    def wait(self):
        self.go.acquire()

    def hand_over(self):
        self.schedule.back.release()

    def draw(self):
        if self.schedule.chance.random() < 0.01:
            raise Killed

    def run(self):
        self.wait()
        try:
            for _ in range(self.rounds):
                self.publish()
        except Killed:
            pass
        finally:
            self.has_ended = True
            self.hand_over()

    def publish(self):
        schedule = self.schedule
        terms = Terms(
            self,
            Owner("a host", self.number, 0.0),
            now_s=lambda: schedule.now_s + self.number,
            has_ended=lambda owner: schedule.chance.random() < 0.1,  # wrongly, even
        )
        term = terms.take()
        if term is None:
            return
        cleanly = False
        try:
            if schedule.fences and not term.follows_cleanly:
                for name in TABLES:
                    self.fence(terms, term, name)
            schedule.held.append(
                (term.number, {name: schedule.tables.length(name) for name in TABLES})
            )
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
        opened = self.schedule.tables.opened(name)
        if self.schedule.asks and not terms.is_held(term):
            raise Overtaken
        self.turn()
        self.schedule.tables.append(name, opened, term.number)

    def create(self, name, content):
        self.turn()
        created = self.schedule.objects.create(name, content)
        # the answer may be lost, and the request repeated
        return created and self.schedule.chance.random() > 0.05

    def put(self, name, content):
        self.turn()
        self.schedule.objects.put(name, content)

    def get(self, name):
        self.turn()
        return self.schedule.objects.get(name)

    def names(self):
        self.turn()
        return self.schedule.objects.names()

    def delete(self, name):
        self.turn()
        self.schedule.objects.delete(name)
