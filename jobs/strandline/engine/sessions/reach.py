"""The range of event times whose records decide about the sessions that start in a range.

Records of a key are *connected* if their windows overlap or touch, directly or through others, even
if the watermark kept them in several sessions. All records of a session are connected, so others
cannot change it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import up_to_here
from strandline.engine.history.history import History
from strandline.engine.position.grid import gap_of
from strandline.engine.records.arithmetic import lies_in, slot_of
from strandline.engine.sessions.condense import begins
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, TimeRange
from strandline.model.lateness import last_late_end
from strandline.spec.pipeline import PipelineSpec

_WIDER = 4
_CHAIN = "_strandline_chain"


def read_far_enough(
    digested: Callable[[TimeRange], DataFrame],
    within: TimeRange,
    history: History,
    *,
    whole: bool = False,
) -> tuple[TimeRange, DataFrame]:
    """The event times that decide about the sessions that start in a range, and their rows.

    Before the range, only records whose own window reaches it are needed: they show whether a
    session extends over its start. After the range, all records connected with it are needed. How
    far these extend is not known before they are read, so the range is widened step by step.

    Args:
        digested: gives the rows of some event times.
        within: the range.
        history: everything observed below the horizon.
        whole: whether all connected records before the range are read, too. Needed if a firing of a
            session depends on the firings before it, as with counts.
    """
    reach = _Reach(within, history, whole)
    asked = reach.first_asked()
    while True:
        region = _to_the_end_if_last(asked, history.days.events)
        rows = digested(region)
        needed = reach.needed_beyond(asked, rows)
        if needed is None:
            return region, rows
        asked = reach.widened(asked, needed)


@dataclass(frozen=True)
class _Reach:
    """The search for the event times that decide about a range: see `read_far_enough`."""

    within: TimeRange
    history: History
    whole: bool

    def first_asked(self) -> TimeRange:
        """The event times to read at first: up to a few gaps after the range."""
        gap_ms = gap_of(self.history.spec)
        ahead_ms = 2 * (self.history.grid.step_ms if gap_ms is None else gap_ms)
        first_ms = self.history.days.first_reaching(self.within.start_ms)
        return TimeRange(first_ms, self.within.end_ms + ahead_ms)

    def needed_beyond(self, asked: TimeRange, rows: DataFrame) -> TimeRange | None:
        """The event times that are needed, by the rows of the event times that were read.

        None: no event time outside of the read range is needed.
        """
        events = self.history.days.events
        if events is None or not self._exceeds(asked, events):
            return None
        reached = _reached(rows, self.within, self.history.spec)
        first_ms = self.history.days.first_reaching(reached.start_ms)
        needed = TimeRange(first_ms, reached.end_ms + 1).shared_with(events)
        return needed if needed is not None and self._exceeds(asked, needed) else None

    def _exceeds(self, asked: TimeRange, needed: TimeRange) -> bool:
        """Whether needed event times lie outside of the read range, on a side to be widened."""
        is_earlier = self.whole and needed.start_ms < asked.start_ms
        return is_earlier or needed.end_ms > asked.end_ms

    def widened(self, asked: TimeRange, needed: TimeRange) -> TimeRange:
        """A wider range that includes the needed event times; only the edges that must move do.

        Its part outside of the rebuilt range is multiplied, so that few steps reach far.
        """
        start_ms, end_ms = asked.start_ms, asked.end_ms
        if self.whole and needed.start_ms < start_ms:
            wider_ms = self.within.start_ms - _WIDER * (self.within.start_ms - start_ms)
            start_ms = max(min(needed.start_ms, wider_ms), LEAST_INSTANT_MS)
        if needed.end_ms > end_ms:
            wider_ms = self.within.end_ms + _WIDER * (end_ms - self.within.end_ms)
            end_ms = max(needed.end_ms, wider_ms)
        return TimeRange(start_ms, end_ms)


def _to_the_end_if_last(asked: TimeRange, events: TimeRange | None) -> TimeRange:
    """A range of event times; to the end of all times, if no event time lies after it."""
    if events is not None and asked.end_ms < events.end_ms:
        return asked
    return TimeRange(asked.start_ms, END_OF_INSTANTS_MS)


def _reached(rows: DataFrame, within: TimeRange, spec: PipelineSpec) -> TimeRange:
    """A range of event times, extended by all connected records that touch it."""
    touches = (F.col(c.START) < within.end_ms) & (F.col(c.END) >= within.start_ms)
    chains = _chains(rows, spec).where(touches)
    first, last = chains.agg(F.min(c.START), F.max(c.END)).collect()[0]
    return TimeRange(
        within.start_ms if first is None else min(int(first), within.start_ms),
        within.start_ms if last is None else int(last),
    )


def first_not_final(
    records: DataFrame, history: History, *, until_ms: int, watermark_ms: int
) -> int:
    """The first slot with a session, over all keys, that a watermark does not make final.

    Args:
        records: the landing as `read_records` reads it.
        history: everything observed below the horizon.
        until_ms: only records that arrived before it count.
        watermark_ms: the watermark when everything final had been published.
    """
    grid = history.grid
    slot_ms = grid.first_not_final(watermark_ms)
    late_ms = last_late_end(watermark_ms, allowed_lateness_ms=history.spec.allowed_lateness)
    final_ms = max(late_ms, LEAST_INSTANT_MS)
    start_ms = _first_start_ending_after(final_ms, records, history, until_ms)
    if start_ms is None:
        return slot_ms
    return min(slot_ms, grid.newest_starts(start_ms))


def whole_within(
    records: DataFrame, history: History, within: TimeRange, *, until_ms: int, watermark_ms: int
) -> TimeRange | None:
    """The longest part of a range, in whole slots, whose sessions are all dropped from state.

    No connected records of any key lie on both sides of its edges.

    Args:
        records: the landing as `read_records` reads it.
        history: everything observed below the horizon.
        within: the range, in whole slots.
        until_ms: only records that arrived before it count.
        watermark_ms: the watermark, for the allowed lateness of the history's pipeline.

    Returns:
        The range from the first such edge to the last; None: there are not two such edges.
    """
    step_ms = history.grid.step_ms
    chains = _slots_of_chains(records, history, within, until_ms)
    late_ms = last_late_end(watermark_ms, allowed_lateness_ms=history.spec.allowed_lateness)
    not_dropped = (chain.first_ms for chain in chains if chain.end_ms > late_ms)
    end_ms = min([within.end_ms, *not_dropped])
    crossed = {
        edge_ms
        for chain in chains
        for edge_ms in range(chain.first_ms + step_ms, chain.last_ms + 1, step_ms)
    }
    edges = [ms for ms in range(within.start_ms, end_ms + 1, step_ms) if ms not in crossed]
    return TimeRange(edges[0], edges[-1]) if len(edges) > 1 else None


class _SlotsOfChains(NamedTuple):
    """The first and the last slot of some chains of connected records, and their latest end."""

    first_ms: int
    last_ms: int
    end_ms: int


def _slots_of_chains(
    records: DataFrame, history: History, within: TimeRange, until_ms: int
) -> list[_SlotsOfChains]:
    """The slots of the chains that may reach into a range, once for each first and last slot."""
    grid, ts = history.grid, F.col(c.TS)
    region = TimeRange(
        history.days.first_reaching(within.start_ms), history.days.last_end(within.end_ms) + 1
    )
    days = history.days.of_events(region, until_ms)
    known = history.known(records, until_ms, days).where(lies_in(ts, region))
    rows = known.select(*keys_of(history.spec), ts.alias(c.START), c.END)
    chains = _chains(rows, history.spec).select(
        slot_of(F.col(c.START), grid).alias(c.SLOT),
        slot_of(F.col(c.LARGEST_TS), grid).alias(c.LARGEST_TS),
        c.END,
    )
    found = chains.groupBy(c.SLOT, c.LARGEST_TS).agg(F.max(c.END)).collect()
    return [_SlotsOfChains(*map(int, row)) for row in found]


def _first_start_ending_after(
    final_ms: int, records: DataFrame, history: History, until_ms: int
) -> int | None:
    """The least start of connected records that end after an instant; None: there are none.

    If they extend beyond the range that was read, a wider range is read.
    """
    events = history.days.events
    if events is None:
        return None
    least_ms = max(history.days.first_reaching(final_ms), events.start_ms)
    while True:
        rows = _rows_from(least_ms, records, history, until_ms)
        ends_after = _chains(rows, history.spec).where(F.col(c.END) > final_ms)
        found = ends_after.agg(F.min(c.START)).first()
        if found is None or found[0] is None:
            return None
        start_ms = int(found[0])
        reached_ms = history.days.first_reaching(start_ms)
        if max(reached_ms, events.start_ms) >= least_ms:
            return start_ms
        wider_ms = min(reached_ms, final_ms - _WIDER * (final_ms - least_ms))
        least_ms = max(wider_ms, events.start_ms)


def _rows_from(least_ms: int, records: DataFrame, history: History, until_ms: int) -> DataFrame:
    """Records from an event time on, with close records of a key combined: START, END.

    If all have one gap, the records of a key in an interval of that length overlap, and are one
    row; else only records of one event time are.
    """
    spec, gap_ms, ts = history.spec, gap_of(history.spec), F.col(c.TS)
    days = history.days.of_events(TimeRange(least_ms, END_OF_INSTANTS_MS), until_ms)
    known = history.known(records, until_ms, days).where(ts >= least_ms)
    place = ts if gap_ms is None else ts - F.pmod(ts, F.lit(gap_ms))
    return known.groupBy(*keys_of(spec), place.alias(c.PLACE)).agg(
        F.min(c.TS).alias(c.START), F.max(c.END).alias(c.END)
    )


def _chains(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Connected records, over all arrivals: START, END and LARGEST_TS."""
    keys = keys_of(spec)
    by_start = Window.partitionBy(*keys).orderBy(c.START)
    number = F.sum(_CHAIN).over(up_to_here(by_start))
    chained = rows.withColumn(_CHAIN, begins(by_start).cast("int")).withColumn(_CHAIN, number)
    return chained.groupBy(*keys, _CHAIN).agg(
        F.min(c.START).alias(c.START),
        F.max(c.END).alias(c.END),
        F.max(c.START).alias(c.LARGEST_TS),
    )
