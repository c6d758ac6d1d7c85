"""Publications that are unfinished or reverted, and the frontier without the reverted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from strandline.lake.ledger.entry import Entry
from strandline.model.intervals import LEAST_INSTANT_MS, midnight_before


@dataclass(frozen=True)
class UnfinishedPublish:
    """A publication that has begun, and has neither ended nor been dropped, also if it failed.

    The next process that takes the lock ends it, since it may have written only some tables.

    Attributes:
        begun: its step `publishing`.
        drop: its step `dropping`, after which it is taken back; None: it is to be finished.
    """

    begun: Entry
    drop: Entry | None = None

    @property
    def run_id(self) -> str:
        """The id of the publishing run."""
        return self.begun.run_id

    @property
    def notice(self) -> str:
        """A notice for readers of the tables."""
        return (
            f"run {self.run_id} has begun to publish and has not ended: the tables are shown as "
            f"they were before; if that run has died, {self.end_in_words}"
        )

    @property
    def end_in_words(self) -> str:
        """The way in which the next process ends the publication, as words of a message."""
        does = "finishes the publish" if self.drop is None else "takes the publish back"
        return f"the next one {does}"

    def after(self, step: Entry) -> UnfinishedPublish | None:
        """The publication after a further step; None if the step has ended it."""
        if step.run_id != self.run_id:
            return self
        if step.step == "dropping":
            return replace(self, drop=step)
        return None if step.step in {"published", "dropped"} else self


class TakenBack(NamedTuple):
    """A reverted published step, and the published step of its revert."""

    run: Entry
    by: Entry


def pairs_taken_back(published: Sequence[Entry]) -> list[TakenBack]:
    """The reverted published steps, in the order of their reverts.

    A revert names its run; a revert of the first release candidate names none, and reverts the last
    run with exactly its range. A revert can itself be reverted, after which its run is in force
    again.
    """
    with_range = [entry for entry in published if entry.range is not None]
    pairs, undone = [], set()
    for number in reversed(range(len(with_range))):
        by = with_range[number]
        if by.kind != "revert" or number in undone:
            continue
        before = (n for n in reversed(range(number)) if _is_taken_back_by(by, with_range[n]))
        run = next(before, None)
        if run is not None and run not in undone:  # else a later revert has taken it back
            undone.add(run)
            pairs.append(TakenBack(with_range[run], by))
    return pairs[::-1]


def _is_taken_back_by(by: Entry, run: Entry) -> bool:
    return run.run_id == by.reverts if by.reverts is not None else run.range == by.range


def frontier_of(published: Sequence[Entry], pairs: Sequence[TakenBack]) -> int | None:
    """The midnight up to which everything that Flink would emit is published, and in force.

    Args:
        published: the published steps in order.
        pairs: the reverted steps among them.
    """
    if not pairs:
        return published[-1].frontier_ms if published else None
    first = min(pair.run.position for pair in pairs)
    reached = next((e.frontier_ms for e in reversed(published) if e.position < first), None)
    undone = {entry.position for pair in pairs for entry in pair if pair.run.kind == "revert"}
    taken_back_by = {pair.by.position: pair.run for pair in pairs}
    before: dict[int, int | None] = {}
    for entry in published:
        if entry.position < first or entry.position in undone:
            continue
        before[entry.position] = reached
        if entry.kind != "revert":
            reached = earlier_of(moved_by(entry, reached, entry.completes_ms), entry.frontier_ms)
        elif entry.position in taken_back_by:
            reached = earlier_of(reached, before[taken_back_by[entry.position].position])
        else:
            reached = earlier_of(reached, entry.frontier_ms)
    return reached


def moved_by(run: Entry, reached: int | None, completes_ms: int | None) -> int | None:
    """The frontier after a run, from the frontier before it; None if nothing is published.

    A run by hand with an earlier horizon that has changed rows moves the frontier back to its
    horizon, so that the next scheduled run recomputes them.

    Args:
        run: the run, with its diff.
        reached: the frontier before it.
        completes_ms: the midnight up to which it publishes everything; None: it does not.
    """
    if reached is None or completes_ms is None:
        after = completes_ms if reached is None else reached
    else:
        after = max(reached, completes_ms)
    if after is None or run.horizon_ms is None or run.kind == "advance" or not run.changed:
        return after
    return min(after, midnight_before(run.horizon_ms))


def earlier_of(one: int | None, other: int | None) -> int | None:
    """The earlier of two frontiers; None, for nothing published, is the earliest."""
    return None if one is None or other is None else min(one, other)


def no_further_than(known_until_ms: int | None, reached: int | None) -> int | None:
    """A frontier, limited to the midnight up to which the source is known (None: no limit).

    A pipeline over results is processed at most up to the frontier of the other pipeline.
    """
    if known_until_ms is None:
        return reached
    return earlier_of(reached, None if known_until_ms <= LEAST_INSTANT_MS else known_until_ms)
