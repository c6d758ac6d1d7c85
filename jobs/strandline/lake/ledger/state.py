"""The state of a pipeline, folded from the steps of its ledger in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from strandline.engine.position.clock import Closure
from strandline.errors import NoSuchRunError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.in_force import (
    OverriddenRange,
    closures,
    overridden_ranges,
    with_missing_days,
)
from strandline.lake.ledger.publications import (
    TakenBack,
    UnfinishedPublish,
    frontier_of,
    moved_by,
    no_further_than,
    pairs_taken_back,
)
from strandline.model.intervals import EVERYTHING, TimeRange, merged

if TYPE_CHECKING:
    from strandline.lake.store.store import Store

WHOLE = ("published", "maintained", "erased")
"""Steps that are written under the lock when no publication is unfinished."""


@dataclass(frozen=True)
class PipelineState:
    """The state of a pipeline after the steps of its ledger.

    Attributes:
        steps: all steps, the oldest first.
        runs: the steps of each run by run id, in the order of their first steps.
        published: the steps `published` since the tables were last recreated.
        whole: the steps since then that name consistent versions of all tables.
        noted: the arrival days to recompute, each with the last step that has noted it.
        unfinished: the unfinished publication; None: there is none.
        known_gaps: the ranges whose gaps were acknowledged since then, in ascending order.
    """

    steps: Sequence[Entry] = ()
    runs: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    published: Sequence[Entry] = ()
    whole: Sequence[Entry] = ()
    noted: Mapping[date, Entry] = field(default_factory=dict)
    unfinished: UnfinishedPublish | None = None
    known_gaps: Sequence[TimeRange] = ()

    @classmethod
    def of(cls, steps: Iterable[Entry]) -> PipelineState:
        """The state after some steps of an empty ledger."""
        return cls().after(steps)

    def after(self, steps: Iterable[Entry]) -> PipelineState:
        """The state after further steps."""
        more = tuple(steps)
        runs, noted, unfinished = {**self.runs}, {**self.noted}, self.unfinished
        published, whole, known = [*self.published], [*self.whole], self.known_gaps
        for step in more:
            runs[step.run_id] = (*runs.get(step.run_id, ()), step)
            if unfinished is not None:
                unfinished = unfinished.after(step)
            if step.step == "publishing":
                unfinished = UnfinishedPublish(step)
            elif step.step == "owed":
                noted |= dict.fromkeys(step.owed or (), step)
            elif step.step == "acknowledged":
                known = merged([*known, *(TimeRange(*one) for one in step.kept or ())])
            elif step.step == "published":
                if step.recreated:
                    published, whole, known = [], [], ()
                published.append(step)
                noted = _not_settled_by(step, noted)
            if step.step in WHOLE and step.versions is not None:
                whole.append(step)
        steps, of_tables = (*self.steps, *more), (tuple(published), tuple(whole))
        return PipelineState(steps, runs, *of_tables, noted, unfinished, known)

    def until(self, position: int) -> PipelineState:
        """The state after the step at a position of the ledger."""
        if position >= self.position:
            return self
        return PipelineState.of(step for step in self.steps if step.position <= position)

    @property
    def recreating(self) -> PipelineState:
        """The state for a run that recreates the tables: nothing is published."""
        return replace(self, published=(), known_gaps=())

    def steps_of(self, run_id: str, store: Store) -> Sequence[Entry]:
        """The steps of a run; `store`: the tables, whose lake the error names.

        Raises:
            NoSuchRunError: the ledger has no such run.
        """
        steps = self.runs.get(run_id)
        if steps is None:
            raise NoSuchRunError(run_id, store.pipeline, store.lake.root)
        return steps

    @property
    def versions(self) -> Mapping[str, int] | None:
        """The version of each table after the last complete publication; None: there is none."""
        return self.whole[-1].versions if self.whole else None

    @property
    def position(self) -> int:
        """The position of the last step; 0 if there is none."""
        return self.steps[-1].position if self.steps else 0

    @property
    def days_to_recompute(self) -> list[date]:
        """The arrival days whose changes are not published yet.

        A published run settles the days that were noted before its base position of the ledger, and
        the days that it has noted itself.
        """
        return sorted(self.noted)

    @cached_property
    def taken_back(self) -> Sequence[TakenBack]:
        """The published steps that were reverted, each with the published step of its revert."""
        return pairs_taken_back(self.published)

    @cached_property
    def reverted_by(self) -> Mapping[str, str]:
        """The run of the revert of each reverted run."""
        return {pair.run.run_id: pair.by.run_id for pair in self.taken_back}

    @cached_property
    def in_force(self) -> Sequence[Entry]:
        """The published steps of runs that were not reverted, without the steps of reverts."""
        taken_back = {pair.run.position for pair in self.taken_back}
        published = (entry for entry in self.published if entry.kind != "revert")
        return [entry for entry in published if entry.position not in taken_back]

    @property
    def last_by_file(self) -> Entry | None:
        """The last run in force that used the pipeline's file as it was; None: there is none.

        Its rules are the last ones that a run has published by, whichever runs have failed, or were
        reverted, since; windows outside its range may be by earlier ones.
        """
        return next((run for run in reversed(self.in_force) if not run.overrides), None)

    @property
    def runs_by_end(self) -> Sequence[Sequence[Entry]]:
        """The steps of each run, in the order of their last steps."""
        return sorted(self.runs.values(), key=lambda steps: steps[-1].position)

    @cached_property
    def frontier_ms(self) -> int | None:
        """The frontier: the midnight up to which everything that Flink would emit is published."""
        return frontier_of(self.published, self.taken_back)

    @cached_property
    def closures(self) -> Sequence[Closure]:
        """The ranges of windows that are closed by `--close`."""
        return closures(self.in_force)

    @cached_property
    def overridden(self) -> Sequence[OverriddenRange]:
        """The ranges of windows that are published with overridden rules."""
        return overridden_ranges(self.in_force, self.runs)

    def closures_in(self, within: TimeRange) -> list[Closure]:
        """The ranges of windows closed by `--close` that overlap a range."""
        return [closure for closure in self.closures if closure.windows.overlaps(within)]

    def not_closed_by_hand(self, instant_ms: int) -> int:
        """The first instant from one on that is in no range closed by `--close`."""
        for closure in sorted(self.closures, key=lambda closure: closure.windows.start_ms):
            if instant_ms in closure.windows:
                instant_ms = closure.windows.end_ms
        return instant_ms

    def published_into(self, within: TimeRange) -> list[Entry]:
        """The published steps in force whose range overlaps a range."""
        return [run for run in self.in_force if run.range and run.range.overlaps(within)]

    def largest_horizon(self, within: TimeRange = EVERYTHING) -> int | None:
        """The largest horizon of runs in force that published into a part of a range."""
        horizons = (run.horizon_ms for run in self.published_into(within))
        return max((ms for ms in horizons if ms is not None), default=None)

    def frontier_within(self, known_until_ms: int | None) -> int | None:
        """The frontier, at most up to where the source is known (None: no limit)."""
        return no_further_than(known_until_ms, self.frontier_ms)

    def frontier_after(self, run: Entry, completes_ms: int | None) -> int | None:
        """The frontier after the publication of a run.

        Args:
            run: the run; a revert restores the frontier from before the reverted run, unless later
                runs have moved it further.
            completes_ms: the midnight up to which the run publishes everything.
        """
        if run.kind == "revert":
            done = replace(run, step="published", position=self.position + 1)
            return self.after([done]).frontier_ms
        return moved_by(run, self.frontier_ms, completes_ms)

    def published_since(self, run: Entry) -> list[Entry]:
        """The published steps since a run's base that touch the same slots as the run.

        A run that recreates the tables touches all slots. Every erasure counts, too, since the run
        may have read erased rows.
        """
        return [
            entry
            for entry in self.steps
            if entry.position > run.base
            and entry.run_id != run.run_id
            and (entry.step == "erased" or _shares_slots(entry, run))
        ]

    def steps_of_others(self, base: int, own: Collection[str]) -> list[Entry]:
        """The steps of other runs since a position of the ledger."""
        return [e for e in self.steps if e.position > base and e.run_id not in own]

    def erased_since(self, base: int) -> Entry | None:
        """The last erasure since a position of the ledger; None if there is none."""
        since = (entry for entry in reversed(self.steps) if entry.step == "erased")
        return next((entry for entry in since if entry.position > base), None)

    def has_step(self, run_id: str, step: str) -> bool:
        """Whether a run has a step of a name."""
        return any(entry.step == step for entry in self.runs.get(run_id, ()))

    @property
    def clock_start_ms(self) -> int | None:
        """The start of the job's clock, in ms, which the first run fixes; None: none has run."""
        return next((e.clock_start_ms for e in self.steps if e.clock_start_ms is not None), None)

    @property
    def complete_ms(self) -> int | None:
        """The midnight before which every slot is closed after the last publication."""
        return self.published[-1].complete_ms if self.published else None

    @property
    def first_open_ms(self) -> int | None:
        """The start of the first slot that was not closed after the last publication."""
        return self.published[-1].first_open_ms if self.published else None

    @property
    def first_landing_id(self) -> str | None:
        """The id of the first landing table that a run has read; None if no run has recorded it."""
        return next((entry.landing_id for entry in self.steps if entry.landing_id), None)

    @property
    def missing_days(self) -> Sequence[date]:
        """The arrival days of which the landing table lacked rows at the last run."""
        return next((step.lost or () for step in with_missing_days(self.steps)), ())

    @property
    def timeline_rules(self) -> set[str]:
        """The timeline fingerprints of all publications."""
        return {entry.timeline_fingerprint for entry in self.published}

    def may_lack_quarantine(self, quarantine_days: int | None) -> bool:
        """Whether an erasure, or upkeep by `quarantine_days`, may have removed quarantined rows.

        Args:
            quarantine_days: the present setting; None: there is none. Earlier versions of the
                program did not write whether upkeep had removed rows.
        """
        maintained = [step for step in self.steps if step.kind == "maintain"]
        has_removed = any(step.diff for step in maintained)
        may_have = quarantine_days is not None and bool(maintained)
        return has_removed or may_have or any(step.kind == "erase" for step in self.steps)


def _not_settled_by(run: Entry, noted: Mapping[date, Entry]) -> dict[date, Entry]:
    """The days to recompute that remain after a published run."""
    settled = set(run.settled or ())

    def knew(note: Entry) -> bool:
        return note.position <= run.base or note.run_id == run.run_id

    return {day: note for day, note in noted.items() if day not in settled or not knew(note)}


def _shares_slots(published: Entry, run: Entry) -> bool:
    """Whether a published step touches the same slots as a run."""
    if published.step != "published":
        return False
    if run.recreated or published.recreated:
        return True
    one, other = published.touched, run.touched
    return one is not None and other is not None and one.overlaps(other)
