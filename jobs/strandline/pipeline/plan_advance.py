"""plan: what a scheduled run rebuilds, and which late records it judges again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from strandline.engine.kind import kind_of
from strandline.engine.past.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import Scope
from strandline.lake.ledger import largest_horizon
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    midnight_before,
    midnight_of,
    text_of,
)
from strandline.pipeline.closures import closures_in
from strandline.pipeline.memory import Remembered
from strandline.pipeline.plan import Plan, named
from strandline.pipeline.request import Request
from strandline.pipeline.world import World


def plan_advance(
    request: Request,
    history: History,
    remembered: Remembered,
    world: World,
    first_not_final: Callable[[int], int],
) -> Plan:
    """The plan of a scheduled run up to M, the last midnight not after an instant.

    The windows that were not final at P, or that no run has left closed, up to the last event date
    known at M; and of the records that arrived in [P, M), those of older windows. Windows that need
    rows which have gone are left as they are published.

    Args:
        request: what is asked.
        history: everything observed below the horizon.
        remembered: what the runs before have left.
        world: what has landed.
        first_not_final: where the windows begin that a watermark does not leave as they are.
    """
    until_ms = request.until_ms
    since_ms = remembered.base_ms(until_ms)
    start_ms, end_ms = _to_rebuild(history, remembered, until_ms, first_not_final)
    whole = kind_of(history.spec).whole_slots(TimeRange(start_ms, end_ms))
    within, lost, notes = _without_lost(whole, history, world)
    gone = () if since_ms is None else world.lost_since(since_ms, whole.start_ms)
    if gone:  # which records of older slots are late cannot be known again: they stay as they are
        since_ms, lost = None, tuple(sorted({*lost, *gone}))
    # the older slots of late records are mended too, so nothing known of them may be taken back
    oldest_ms = history.days.oldest_slot_of_arrivals(since_ms, until_ms)
    others = _slots_of_published_late(history.grid, remembered, whole.start_ms, since_ms)
    mended = TimeRange(min(whole.start_ms, oldest_ms, *others), whole.end_ms)
    clock = _clock(remembered, history.grid, mended, until_ms)
    return Plan(
        Scope(within, since_ms, whole.start_ms, others),
        clock,
        # what is left out is still to come: the next run begins where this one did
        None if lost else until_ms,
        owed=remembered.owed,
        settles=() if lost else remembered.settled_by(until_ms),
        lost=tuple(lost),
        notes=(*notes, *_notes_of_closures(clock, mended)),
    )


def _clock(remembered: Remembered, grid: Grid, mended: TimeRange, until_ms: int) -> Clock:
    """As of M, or of the largest horizon of what is published there; with --close of runs before.

    Args:
        remembered: what the runs before have left.
        grid: of the windows.
        mended: the range, and the older slots of late records.
        until_ms: M.
    """
    published_ms = largest_horizon(remembered.entries, mended)
    horizon_ms = until_ms if published_ms is None else max(until_ms, published_ms)
    return Clock(horizon_ms, tuple(closures_in(remembered.entries, grid.sharing(mended))))


def _notes_of_closures(clock: Clock, mended: TimeRange) -> list[str]:
    return [
        f"windows from {text_of(closure.windows.start_ms)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; what arrived later for them is late"
        for closure in clock.closures
        if closure.windows.overlaps(mended)
    ]


def _slots_of_published_late(
    grid: Grid, remembered: Remembered, before_ms: int, since_ms: int | None
) -> frozenset[int]:
    """The starts of the windows before an instant that published late records have missed.

    Of the records that arrived from `since_ms` on (None: of none): they are judged again.
    """
    if since_ms is None:
        return frozenset()
    sharing = grid.sharing(TimeRange(EVERYTHING.start_ms, before_ms))
    homes = remembered.late_slots(sharing.end_ms, since_ms)
    missed = {start_ms for home in homes for start_ms in grid.starts_with(home)}
    return frozenset(start_ms for start_ms in missed if start_ms < before_ms)


def _to_rebuild(
    history: History,
    remembered: Remembered,
    until_ms: int,
    first_not_final: Callable[[int], int],
) -> tuple[int, int]:
    """From the first window that was not final at P, or is open, to the last event date at M."""
    since_ms, last_date = remembered.base_ms(until_ms), history.days.last_event_date(until_ms)
    start_ms = EVERYTHING.start_ms
    if since_ms is not None:
        watermark_ms = history.crossings.watermark_reached(since_ms)
        opened = remembered.first_open
        if opened is not None:
            not_closed_ms = kind_of(history.spec).watermark_before_close(
                opened.end_ms, opened.closed_until_ms
            )
            watermark_ms = min(watermark_ms, not_closed_ms)
        start_ms = first_not_final(watermark_ms)
    last_days = [] if last_date is None else [midnight_of(last_date)]
    if remembered.last_slot_ms is not None:
        last_days.append(midnight_before(remembered.last_slot_ms))
    if not last_days:
        return start_ms, start_ms
    end_ms = max(start_ms, min(max(last_days) + DAY_MS, EVERYTHING.end_ms - 1))
    if since_ms is None and last_date is not None:
        start_ms = history.days.oldest_slot_of_arrivals(None, until_ms)
    return start_ms, end_ms


def _without_lost(
    within: TimeRange, history: History, world: World
) -> tuple[TimeRange, tuple[date, ...], list[str]]:
    """What is left of a range behind the last window that needs rows which have gone, and whose."""
    events = history.days.events_of(within)
    gone, last_ms = world.lost_within(events), world.last_lost_within(events)
    if last_ms is None:
        return within, (), []
    first_ms = min(history.days.first_start_after(last_ms), within.end_ms)
    rest = kind_of(history.spec).whole_slots(TimeRange(first_ms, within.end_ms))
    note = (
        f"rows of {named(gone)} have gone from the landing table: windows before "
        f"{text_of(rest.start_ms)} stay as they are published; land the rows again, or go by what "
        "is left with --accept-loss REASON"
    )
    return rest, tuple(gone), [note]
