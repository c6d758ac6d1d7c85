"""The state of a pipeline: the steps of its ledger, folded once, in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

from strandline.engine.position.clock import Closure
from strandline.errors import NoSuchRunError
from strandline.lake.entry import UPKEEP, Entry
from strandline.lake.in_force import OverriddenRange, closures, overridden_ranges
from strandline.lake.taken_back import (
    TakenBack,
    frontier_of,
    moved_by,
    no_further_than,
    pairs_taken_back,
)
from strandline.model.intervals import EVERYTHING, TimeRange

WHOLE = ("published", "maintained", "erased")
"""Steps that are written, under the lock, when every table is whole."""
_DATELESS = "arrival day unknown"
"""How the book of the rows without an arrival day begins."""


@dataclass(frozen=True)
class UnfinishedPublish:
    """A publish that began, and neither ended nor was dropped: who takes the lock next ends it.

    A failure on the way is no end: some tables may be written, and others not.

    Attributes:
        begun: its step `publishing`.
        drop: its step `dropping`, from which on it is taken back; None: it is to be finished.
    """

    begun: Entry
    drop: Entry | None = None

    @property
    def run_id(self) -> str:
        """The run that publishes."""
        return self.begun.run_id

    @property
    def notice(self) -> str:
        """What a reader of the tables should know of it."""
        return (
            f"run {self.run_id} has begun to publish and has not ended: everything is shown as it "
            "was before; the next run finishes it if it has died"
        )

    def after(self, step: Entry) -> UnfinishedPublish | None:
        """The same once a step is written; None: the step has ended it."""
        if step.run_id != self.run_id:
            return self
        if step.step == "dropping":
            return replace(self, drop=step)
        return None if step.step in {"published", "dropped"} else self


@dataclass(frozen=True)
class PipelineState:
    """What the steps of a ledger come to.

    Attributes:
        steps: all of them, oldest first.
        runs: the steps of each run, by its id, in the order of their first steps.
        published: the published steps, since the tables were last recreated.
        whole: the steps that name the versions of all tables which belong together, since then.
        noted: the arrival days to recompute, each with the step that has noted it last.
        unfinished: a publish that has begun and not ended; None: there is none.
    """

    steps: Sequence[Entry] = ()
    runs: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    published: Sequence[Entry] = ()
    whole: Sequence[Entry] = ()
    noted: Mapping[date, Entry] = field(default_factory=dict)
    unfinished: UnfinishedPublish | None = None

    @classmethod
    def of(cls, steps: Iterable[Entry]) -> PipelineState:
        """The state after some steps, from an empty ledger on."""
        return cls().after(steps)

    def after(self, steps: Iterable[Entry]) -> PipelineState:
        """The state once some more steps are written."""
        more = tuple(steps)
        runs, noted, unfinished = {**self.runs}, {**self.noted}, self.unfinished
        published, whole = [*self.published], [*self.whole]
        for step in more:
            runs[step.run_id] = (*runs.get(step.run_id, ()), step)
            if unfinished is not None:
                unfinished = unfinished.after(step)
            if step.step == "publishing":
                unfinished = UnfinishedPublish(step)
            elif step.step == "owed":
                noted |= dict.fromkeys(step.owed or (), step)
            elif step.step == "published":
                if step.recreated:
                    published, whole = [], []
                published.append(step)
                noted = _not_settled_by(step, noted)
            if step.step in WHOLE and step.versions is not None:
                whole.append(step)
        steps_by_now = (*self.steps, *more)
        return PipelineState(steps_by_now, runs, tuple(published), tuple(whole), noted, unfinished)

    def until(self, position: int) -> PipelineState:
        """The state just after the step of a position of the ledger was written."""
        if position >= self.position:
            return self
        return PipelineState.of(step for step in self.steps if step.position <= position)

    @property
    def recreating(self) -> PipelineState:
        """The same for a run that recreates the tables: nothing is published."""
        return replace(self, published=())

    def steps_of(self, run_id: str, pipeline: str) -> Sequence[Entry]:
        """The steps of a run of the pipeline of this name.

        Raises:
            NoSuchRunError: there is no such run.
        """
        steps = self.runs.get(run_id)
        if steps is None:
            raise NoSuchRunError(run_id, pipeline)
        return steps

    @property
    def versions(self) -> Mapping[str, int] | None:
        """The versions of all tables that belong together now; None: nothing is published."""
        return self.whole[-1].versions if self.whole else None

    @property
    def position(self) -> int:
        """The position of the last step; 0: there is none."""
        return self.steps[-1].position if self.steps else 0

    @property
    def days_to_recompute(self) -> list[date]:
        """The arrival days whose changes are still to be published.

        A run settles the days that it knew of: those noted before the ledger's position that it is
        based on, and those that it has noted itself.
        """
        return sorted(self.noted)

    @cached_property
    def taken_back(self) -> Sequence[TakenBack]:
        """The published steps that a revert has taken back, each with the revert's."""
        return pairs_taken_back(self.published)

    @cached_property
    def in_force(self) -> Sequence[Entry]:
        """The published steps of runs that no revert has taken back; reverts are none of them."""
        taken_back = {pair.run.position for pair in self.taken_back}
        published = (entry for entry in self.published if entry.kind != "revert")
        return [entry for entry in published if entry.position not in taken_back]

    @cached_property
    def frontier_ms(self) -> int | None:
        """The midnight up to which all that Flink would have emitted is published."""
        return frontier_of(self.published, self.taken_back)

    @cached_property
    def closures(self) -> Sequence[Closure]:
        """The ranges of windows that `--close` keeps closed."""
        return closures(self.in_force)

    @cached_property
    def overridden(self) -> Sequence[OverriddenRange]:
        """The ranges of windows that are published by the rules of one run alone."""
        return overridden_ranges(self.in_force)

    def closures_in(self, within: TimeRange) -> list[Closure]:
        """The closures in force of a range."""
        return [closure for closure in self.closures if closure.windows.overlaps(within)]

    def published_into(self, within: TimeRange) -> list[Entry]:
        """The published steps in force whose range shares an instant with a range."""
        return [run for run in self.in_force if run.range and run.range.overlaps(within)]

    def largest_horizon(self, within: TimeRange = EVERYTHING) -> int | None:
        """The largest horizon published into any part of a range, by runs in force."""
        horizons = (run.horizon_ms for run in self.published_into(within))
        return max((ms for ms in horizons if ms is not None), default=None)

    def knows_more(self, horizon_ms: int) -> bool:
        """Whether anything is published as of a later horizon."""
        largest_ms = self.largest_horizon()
        return largest_ms is not None and largest_ms > horizon_ms

    def frontier_within(self, known_until_ms: int | None) -> int | None:
        """The frontier; no further than to where the source is known (None: anywhere)."""
        return no_further_than(known_until_ms, self.frontier_ms)

    def frontier_after(self, run: Entry, completes_ms: int | None) -> int | None:
        """The frontier once a run is published.

        Args:
            run: the run; one that reverts another brings back the frontier from before that one, if
                what has published since stands no further.
            completes_ms: the midnight up to which the run itself publishes everything.
        """
        if run.kind == "revert":
            done = replace(run, step="published", position=self.position + 1)
            return self.after([done]).frontier_ms
        return moved_by(run, self.frontier_ms, completes_ms)

    def published_since(self, run: Entry) -> list[Entry]:
        """The published steps since a run's base that touch slots which the run touches too.

        A run that recreates the tables touches all. And every erasure counts: what the run has
        read may hold the rows that had to leave.
        """
        return [
            entry
            for entry in self.steps
            if entry.position > run.base
            and entry.run_id != run.run_id
            and (entry.step == "erased" or _shares_slots(entry, run))
        ]

    def steps_of_others(self, base: int, own: Collection[str]) -> list[Entry]:
        """The steps since a position of the ledger that other runs than one's own have written."""
        return [e for e in self.steps if e.position > base and e.run_id not in own]

    def erased_since(self, base: int) -> Entry | None:
        """The last erasure since a position of the ledger; None: there is none."""
        since = (entry for entry in reversed(self.steps) if entry.step == "erased")
        return next((entry for entry in since if entry.position > base), None)

    def has_step(self, run_id: str, step: str) -> bool:
        """Whether a run has written a step of a name."""
        return any(entry.step == step for entry in self.runs.get(run_id, ()))

    @property
    def clock_start_ms(self) -> int | None:
        """When the job's clock started, as the first observation has fixed it."""
        return next((e.clock_start_ms for e in self.steps if e.clock_start_ms is not None), None)

    @property
    def complete_ms(self) -> int | None:
        """The midnight before which every slot was closed once the last run had published."""
        return self.published[-1].complete_ms if self.published else None

    @property
    def first_landing_id(self) -> str | None:
        """The id of the first landing table that a run has read; None: no run has said it."""
        return next((entry.landing_id for entry in self.steps if entry.landing_id), None)

    @property
    def missing_days(self) -> Sequence[date]:
        """The arrival days that the last run knew with more rows than the landing table had."""
        return next((e.lost for e in reversed(self.steps) if e.lost is not None), ())

    @property
    def timeline_rules(self) -> set[str]:
        """The fingerprints of the rules of the timeline that anything was published by."""
        return {entry.timeline_fingerprint for entry in self.published}

    @property
    def has_upkeep(self) -> bool:
        """Whether rows may have left by upkeep or erasure."""
        return any(entry.kind in UPKEEP for entry in self.steps)


def rows_without_day(steps: Iterable[Entry]) -> int:
    """How many rows without an arrival day the last of some steps has read, by its books."""
    books: Sequence[Mapping[str, Any]] = ()
    for step in steps:
        books = books if step.books is None else step.books
    return sum(book["total"] for book in books if book["name"].startswith(_DATELESS))


def _not_settled_by(run: Entry, noted: Mapping[date, Entry]) -> dict[date, Entry]:
    """The days to recompute that a published run has left."""
    settled = set(run.settled or ())

    def knew(note: Entry) -> bool:
        return note.position <= run.base or note.run_id == run.run_id

    return {day: note for day, note in noted.items() if day not in settled or not knew(note)}


def _shares_slots(published: Entry, run: Entry) -> bool:
    """Whether a step is a published one, and touches slots that a run touches too."""
    if published.step != "published":
        return False
    if run.recreated or published.recreated:
        return True
    one, other = published.touched, run.touched
    return one is not None and other is not None and one.overlaps(other)
