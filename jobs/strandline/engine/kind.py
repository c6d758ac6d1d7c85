"""The kinds of windows: the steps of a run that differ between grids, sessions and joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.history import History
from strandline.engine.history.inputs import events_of_pairs
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.position.grid import Grid, gap_of
from strandline.engine.records.arithmetic import lies_in, slot_of
from strandline.engine.replay.grid import ReplayedOfAllTime, ReplayedWindows
from strandline.engine.scope import Rebuild
from strandline.engine.sessions.reach import first_not_final
from strandline.engine.sessions.rebuild import SessionRebuild
from strandline.engine.sessions.replayed import ReplayedSessions
from strandline.engine.windows.rebuild import GridRebuild
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import MIN_WATERMARK, cleanup_time, last_late_end
from strandline.spec.joined import JoinedSpec
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class WindowKind(ABC):
    """How the windows of a pipeline relate to the *slots* of its calendar.

    A slot is an interval of event time by which runs plan, count and publish, over all keys. Each
    window of a grid is a slot; sessions and pairs, which lie anywhere, belong to slots by their
    times.

    Attributes:
        spec: the pipeline.
        cross_slots: whether a window may extend from the slot that it starts in into later ones.
            Then accepted records are counted for each slot in addition to the windows.
    """

    spec: PipelineSpec
    cross_slots: ClassVar[bool]

    @property
    @abstractmethod
    def needs_probe_order(self) -> bool:
        """Whether a rebuild depends on the order in which channels are probed."""

    @property
    @abstractmethod
    def rebuilt_by(self) -> type[Rebuild]:
        """The class that rebuilds these windows."""

    @abstractmethod
    def whole_slots(self, within: TimeRange) -> TimeRange:
        """The range of window starts that is rebuilt for a requested one, in whole slots."""

    @abstractmethod
    def decided_by(self, within: TimeRange) -> TimeRange:
        """The range of all windows that may share a record with a window of a range."""

    @abstractmethod
    def counts_in(self, within: TimeRange) -> Column:
        """Whether a record that no window accepted belongs to a range."""

    @abstractmethod
    def first_not_final(
        self, records: Callable[[], DataFrame], history: History, until_ms: int, watermark_ms: int
    ) -> int:
        """The start of the first window that a watermark does not make final, in ms.

        Args:
            records: gives the landing as `read_records` reads it.
            history: everything observed below the horizon.
            until_ms: only records that arrived before it count.
            watermark_ms: the watermark when everything final had been published.
        """

    def first_connected(self, not_final_ms: int, watermark_ms: int) -> int:
        """A lower bound, in ms, of the event times of all records accepted after a watermark.

        Needed where rows have been moved or removed since. The slots that were open at the
        watermark are not enough: a session may also have accepted records into a slot that was
        closed before.

        Args:
            not_final_ms: the start of the first window that the watermark does not make final, by
                the records of now.
            watermark_ms: the watermark.
        """
        return not_final_ms

    @abstractmethod
    def watermark_before_close(self, slot_end_ms: int, closed_until_ms: int | None) -> int:
        """The largest watermark that has certainly not closed any window of a slot.

        Args:
            slot_end_ms: the end of the slot.
            closed_until_ms: the end of the last closed slot before it; None: there is none.
        """


class GridWindows(WindowKind):
    """Tumbling, sliding and cumulative windows, each of which is a slot."""

    cross_slots = False

    @property
    def needs_probe_order(self) -> bool:
        """Whether firings are published, or windows replayed: both need exact watermarks.

        Where several channels emit at one instant, the watermark in between depends on their order.
        """
        return self.spec.firings or self.spec.is_replayed

    @property
    def rebuilt_by(self) -> type[Rebuild]:
        """See `WindowKind`: a rebuild as sets, or by a replay."""
        return ReplayedWindows if self.spec.is_replayed else GridRebuild

    def whole_slots(self, within: TimeRange) -> TimeRange:
        """The range itself: windows that start in it."""
        return within

    def decided_by(self, within: TimeRange) -> TimeRange:
        """See `WindowKind`."""
        return Grid.of(self.spec).sharing(within)

    def counts_in(self, within: TimeRange) -> Column:
        """Whether the newest window of the record starts in the range."""
        return lies_in(slot_of(F.col(c.TS), Grid.of(self.spec)), within)

    def first_not_final(
        self, records: Callable[[], DataFrame], history: History, until_ms: int, watermark_ms: int
    ) -> int:
        """See `WindowKind`; the grid gives it, so no record is read."""
        return history.grid.first_not_final(watermark_ms)

    def watermark_before_close(self, slot_end_ms: int, closed_until_ms: int | None) -> int:
        """One less than the cleanup time of the window."""
        return cleanup_time(slot_end_ms - 1, allowed_lateness_ms=self.spec.allowed_lateness) - 1


class GlobalWindows(GridWindows):
    """Global and counting windows: one slot of all time, rebuilt from the whole history."""

    @property
    def rebuilt_by(self) -> type[Rebuild]:
        """See `WindowKind`: a rebuild as sets, or by a replay."""
        return ReplayedOfAllTime if self.spec.is_replayed else GridRebuild

    def whole_slots(self, within: TimeRange) -> TimeRange:
        """All time, whatever the requested range; its end can still be written as a date."""
        return TimeRange(EVERYTHING.start_ms, EVERYTHING.end_ms - 1)


class SessionWindows(WindowKind):
    """Sessions: they begin and end anywhere, independently of the calendar's slots."""

    cross_slots = True
    needs_probe_order = True

    @property
    def rebuilt_by(self) -> type[Rebuild]:
        """See `WindowKind`: a rebuild as sets, or by a replay."""
        return ReplayedSessions if self.spec.is_replayed else SessionRebuild

    def whole_slots(self, within: TimeRange) -> TimeRange:
        """All slots that share an instant with the range."""
        slot_ms = self.spec.quality.session_slot
        start_ms = within.start_ms - within.start_ms % slot_ms
        end_ms = within.end_ms + -within.end_ms % slot_ms
        return TimeRange(max(start_ms, EVERYTHING.start_ms), min(end_ms, EVERYTHING.end_ms))

    def decided_by(self, within: TimeRange) -> TimeRange:
        """All time, since a session of connected records may reach arbitrarily far."""
        return EVERYTHING

    def counts_in(self, within: TimeRange) -> Column:
        """Whether the event time of the record lies in the range."""
        return lies_in(F.col(c.TS), within)

    def first_not_final(
        self, records: Callable[[], DataFrame], history: History, until_ms: int, watermark_ms: int
    ) -> int:
        """The first slot with a session that the watermark does not make final."""
        return first_not_final(records(), history, until_ms=until_ms, watermark_ms=watermark_ms)

    def first_connected(self, not_final_ms: int, watermark_ms: int) -> int:
        """See `WindowKind`; one gap before the first session, or record, that was not final.

        A record that is late by itself is still accepted by an open session that it touches. If
        each record has its own gap, only the start of the present sessions is known.
        """
        gap_ms = gap_of(self.spec)
        if gap_ms is None:
            return not_final_ms
        late_ms = last_late_end(watermark_ms, allowed_lateness_ms=self.spec.allowed_lateness)
        return max(min(not_final_ms, late_ms + 1 - gap_ms) - gap_ms, LEAST_INSTANT_MS)

    def watermark_before_close(self, slot_end_ms: int, closed_until_ms: int | None) -> int:
        """The watermark that closed the slots before this one; for the first slot MIN_WATERMARK.

        A session may begin in the slot as soon as the slots before it are closed, and close at
        once: no larger watermark is certain.
        """
        if closed_until_ms is None:
            return MIN_WATERMARK
        return cleanup_time(closed_until_ms - 1, allowed_lateness_ms=self.spec.allowed_lateness)


class JoinedWithin(SessionWindows):
    """Pairs of an interval join: each belongs to the slot of its later event time."""

    spec: JoinedSpec
    needs_probe_order = False  # each input has an order of its own

    @property
    def rebuilt_by(self) -> type[Rebuild]:
        """See `WindowKind`: the results are pairs instead of windows."""
        return PairRebuild

    def decided_by(self, within: TimeRange) -> TimeRange:
        """From the least event time of a record of the range's pairs, to the end of the range."""
        return events_of_pairs(self.spec, within)

    def first_not_final(
        self, records: Callable[[], DataFrame], history: History, until_ms: int, watermark_ms: int
    ) -> int:
        """The slot of the watermark: a record that is not late forms pairs in it or later."""
        reached_ms = max(watermark_ms, LEAST_INSTANT_MS)
        return max(history.grid.newest_starts(reached_ms), LEAST_INSTANT_MS)

    def first_connected(self, not_final_ms: int, watermark_ms: int) -> int:
        """See `WindowKind`; a pair belongs to one slot."""
        return not_final_ms

    def watermark_before_close(self, slot_end_ms: int, closed_until_ms: int | None) -> int:
        """One less than the end of the slot: only then would the slot's last record be late."""
        return slot_end_ms - 1


def kind_of(spec: PipelineSpec) -> WindowKind:
    """The kind of a pipeline's windows."""
    if isinstance(spec, JoinedSpec):
        return JoinedWithin(spec)
    if spec.window.merging:
        return SessionWindows(spec)
    if spec.window.all_time:
        return GlobalWindows(spec)
    return GridWindows(spec)
