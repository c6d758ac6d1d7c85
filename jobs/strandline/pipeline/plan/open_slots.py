"""The published slots that are not closed, and the last closed ones before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.reads import dataset_of, files_started_in, started_in
from strandline.lake.store.store import Store
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    instant_of,
    midnight_before,
    text_of,
)
from strandline.pipeline.plan.published_rows import slots_in


@dataclass(frozen=True)
class FirstOpen:
    """The first slot that was not closed at the horizon of the run that published it.

    Attributes:
        start_ms: its start.
        end_ms: its end.
        closed_until_ms: the end of the last closed slot before it; None: there is none. Sessions
            may extend over slots: sessions that ended by then were closed with that slot.
    """

    start_ms: int
    end_ms: int
    closed_until_ms: int | None


class EdgeSlots(NamedTuple):
    """The edges of a range's published slots: of closed slots, and of slots that are not closed.

    Attributes:
        last_closed_ms: the start of the last closed slot; None: there is none.
        first_open_ms: the start of the first slot that is not closed; None: there is none.
    """

    last_closed_ms: int | None = None
    first_open_ms: int | None = None


def first_open(store: Store, *, closed_before: bool) -> FirstOpen | None:
    """The first published slot that was not closed when it was published; None: all were.

    Args:
        store: the pipeline's tables.
        closed_before: whether to find the end of the last closed slot before it.
    """
    table = store.table("completeness")
    if table is None:
        return None
    not_closed = dataset_of(table, "state <> 'closed'").to_table(
        columns=["slot_start", "slot_end"], filter=ds.field("state") != "closed"
    )
    if not not_closed.num_rows:
        return None
    first = min(not_closed.to_pylist(), key=lambda slot: (slot["slot_start"], slot["slot_end"]))
    start_ms = instant_of(first["slot_start"])
    closed_until_ms = _closed_until(table, start_ms) if closed_before else None
    return FirstOpen(start_ms, instant_of(first["slot_end"]), closed_until_ms)


def _closed_until(table: DeltaTable, before_ms: int) -> int | None:
    """The latest end of the closed slots that start before an instant; None: there is none."""
    day_before = TimeRange(before_ms - DAY_MS, before_ms)
    latest_ms = _last_end(table, day_before, files_started_in("slot_start", day_before))
    # an earlier one can end later, where windows of another size have left such slots
    ending_later = None if latest_ms is None else f"slot_end > '{text_of(latest_ms)}'"
    earlier = TimeRange(EVERYTHING.start_ms, day_before.start_ms)
    of_earlier_ms = _last_end(table, earlier, ending_later)
    return max((ms for ms in (latest_ms, of_earlier_ms) if ms is not None), default=None)


def _last_end(table: DeltaTable, within: TimeRange, files: str | None) -> int | None:
    """The latest end of a range's closed slots, in some of the files; None: there is none."""
    closed = (ds.field("state") == "closed") & started_in("slot_start", within)
    ends = dataset_of(table, files).to_table(columns=["slot_end"], filter=closed)["slot_end"]
    last = pc.max(ends).as_py()
    return None if last is None else instant_of(last)


def states_in(store: Store, within: TimeRange) -> EdgeSlots:
    """The last closed and the first open published slot of a range."""
    rows = slots_in(store, within, ["slot_start", "state"])
    is_closed = pc.equal(rows["state"], "closed")
    closed = pc.max(rows.filter(is_closed)["slot_start"]).as_py()
    not_closed = pc.min(rows.filter(pc.invert(is_closed))["slot_start"]).as_py()
    return EdgeSlots(*(None if at is None else instant_of(at) for at in (closed, not_closed)))


def complete_until(
    store: Store, state: PipelineState, run: Entry, first_open_ms: int | None
) -> int | None:
    """The midnight before which all slots are closed and none will be added; None: there is none.

    The watermark that has closed a slot has passed all earlier slots, with or without records. Only
    up to the frontier are these published. `--close` means that no more records come into its
    range.

    Args:
        store: the pipeline's tables, once the run has published.
        state: the pipeline's state before that.
        run: the run, with the frontier after it.
        first_open_ms: the start of the first slot that is not closed; None: all are.
    """
    before_ms = None if run.recreated else state.complete_ms
    open_ms = EVERYTHING.end_ms if first_open_ms is None else first_open_ms
    if before_ms is not None and open_ms <= before_ms:
        return midnight_before(open_ms)
    if (reached_ms := run.frontier_ms) is None:
        return before_ms
    start_ms = EVERYTHING.start_ms if before_ms is None else before_ms
    last_closed_ms = states_in(store, TimeRange(start_ms, open_ms)).last_closed_ms
    if last_closed_ms is None:
        return before_ms
    found = [start_ms, min(midnight_before(last_closed_ms), reached_ms)]
    of_run = run.range if run.closed else None
    if of_run is not None and last_closed_ms in of_run and of_run.start_ms <= max(found):
        found.append(midnight_before(min(of_run.end_ms, open_ms)))
    return max(found)


def closed_part(windows: TimeRange, states: EdgeSlots, span_ms: int) -> TimeRange | None:
    """The part of a range up to its last closed slot, before any open one; None: none is closed.

    Args:
        windows: the range of window starts.
        states: its closed and open published slots.
        span_ms: the distance of neighbouring starts.
    """
    last_closed_ms, first_open_ms = states
    if last_closed_ms is None:
        return None
    return part_before(last_closed_ms + span_ms, first_open_ms, windows)


def part_before(end_ms: int, first_open_ms: int | None, windows: TimeRange) -> TimeRange | None:
    """The part of a range before an instant and before its first open slot; None: it is empty."""
    limits = [windows.end_ms] if first_open_ms is None else [first_open_ms, windows.end_ms]
    part = TimeRange(windows.start_ms, min(end_ms, *limits))
    return part if part.start_ms < part.end_ms else None
