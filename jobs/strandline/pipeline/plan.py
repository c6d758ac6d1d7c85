"""plan: which horizon a run stands at, what it rebuilds, and what it closes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np

from strandline.engine.calendar.slots import Calendar
from strandline.engine.past.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import Scope
from strandline.errors import InputError
from strandline.lake.landing import Landing
from strandline.lake.ledger import Entry, clock_start, largest_horizon
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    midnight_before,
    midnight_of,
    text_of,
)
from strandline.pipeline.closures import closures_in, without
from strandline.pipeline.memory import Remembered
from strandline.pipeline.request import Request
from strandline.pipeline.world import World
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Session


@dataclass(frozen=True)
class Plan:
    """What a run rebuilds, and what it will have completed when it is published.

    Attributes:
        scope: the windows and older late records.
        clock: the horizon, and which input has ended.
        completes_ms: the midnight up to which everything is published after it; None: of none.
        owed: the arrival days that are owed before it.
        settles: those of them that are settled once it is published.
        lost: the days whose rows have gone that windows of the range are made of.
        notes: what a person should know about it.
    """

    scope: Scope
    clock: Clock
    completes_ms: int | None
    owed: tuple[date, ...] = ()
    settles: tuple[date, ...] = ()
    lost: tuple[date, ...] = ()
    notes: tuple[str, ...] = ()


def axis_of(landing: Landing, entries: list[Entry]) -> Axis:
    """The axis of a pipeline: its clock started where the spec says, or at its first midnight.

    Once a run has fixed the default in the ledger it stays, whatever lands before it later.
    """
    start = landing.spec.source.start
    if start is None:
        start = clock_start(entries)
    if start is None:
        first = min((day for day in landing.days if day is not None), default=None)
        start = 0 if first is None else midnight_of(first)
    return Axis.of(landing.spec, start)


def horizon_of(request: Request, landing: Landing, axis: Axis, entries: list[Entry]) -> int:
    """The instant up to which a run knows records; none lies after the time of the clock.

    Raises:
        InputError: the horizon that is asked for does.
    """
    if request.as_of_ms is not None:
        _require_past("--as-of", request.as_of_ms, request.now_ms)
        return request.as_of_ms
    if request.kind == "advance":
        # a later horizon published into the range is taken up once the range is known
        until_ms = midnight_before(request.to_ms or 0)
        _require_past("--to", until_ms, request.now_ms)
        return until_ms
    last = landing.last_arrival(axis)
    by_arrivals = EVERYTHING.start_ms if last is None else axis.horizon_after(last)
    if request.now_ms is not None:
        by_arrivals = min(by_arrivals, request.now_ms)
    published = largest_horizon(entries, asked_of(request, landing.spec))
    return max(by_arrivals, published or by_arrivals)


def _require_past(option: str, horizon_ms: int, now_ms: int | None) -> None:
    if now_ms is not None and horizon_ms > now_ms:
        raise InputError(
            option,
            f"{text_of(horizon_ms)} has not come yet: it is {text_of(now_ms)}",
            "what will have landed by then is not known; name an instant that has passed",
        )


def asked_of(request: Request, spec: PipelineSpec) -> TimeRange:
    """The range that is asked for; of sessions, whose calendar is apart from them, whole slots."""
    return _whole_slots(request.range or EVERYTHING, spec)


def _whole_slots(within: TimeRange, spec: PipelineSpec) -> TimeRange:
    if not isinstance(spec.window, Session):
        return within
    slot_ms = spec.quality.session_slot
    start_ms = max(within.start_ms - within.start_ms % slot_ms, EVERYTHING.start_ms)
    return TimeRange(start_ms, min(within.end_ms + -within.end_ms % slot_ms, EVERYTHING.end_ms))


def plan_backfill(
    request: Request, history: History, horizon_ms: int, remembered: Remembered, world: World
) -> Plan:
    """The plan of a run by hand over a range.

    Raises:
        InputError: part of the range was closed by an earlier run at another horizon, or windows
            that share records would close out of order.
    """
    within = asked_of(request, history.spec)
    standing = closures_in(remembered.entries, history.grid.sharing(within))
    closures = [closure for closure in standing if closure.windows.overlaps(within)]
    other = [closure for closure in closures if closure.at_ms != horizon_ms]
    if other and not request.reopen:
        raise InputError(
            "--start/--end",
            f"windows from {text_of(other[0].windows.start_ms)} on were closed at "
            f"{text_of(other[0].at_ms)} with --close",
            "leave them out, rerun --as-of that instant, or give --reopen",
        )
    notes = ["reopens windows that an earlier run had closed"] * bool(request.reopen and closures)
    if request.reopen or request.close:
        standing = [rest for closure in standing for rest in without(closure, within)]
    if request.close:
        standing.append(Closure(within, horizon_ms))
    clock = history.crossings.without_dropped_end(Clock(horizon_ms, tuple(standing)))
    _require_order(within, history, clock)
    if request.close and not clock.closes_now:
        notes.append("the source is idle, and Flink drops the end of such an input: none is closed")
    whole = _holds_all(within, history)
    completes_ms = midnight_before(horizon_ms) if whole else None
    return Plan(
        Scope(within),
        clock,
        completes_ms,
        owed=remembered.owed,
        settles=remembered.settled_by(completes_ms),
        lost=tuple(world.lost_within(history.days.events_of(within))),
        notes=tuple(notes),
    )


def _holds_all(within: TimeRange, history: History) -> bool:
    """Whether every record is at home in a window of a range; false where there is none."""
    events = history.days.events
    if events is None:
        return False
    ends = np.array([events.start_ms, events.end_ms - 1])
    return all(start_ms in within for start_ms in history.grid.newest_starts(ends).tolist())


def require_rows(request: Request, plan: Plan) -> None:
    """All rows that the windows of a range by hand need are still in the landing table.

    Raises:
        InputError: some have gone.
    """
    if plan.lost and request.kind == "backfill":
        raise InputError(
            "--start/--end",
            f"rows of {named(plan.lost)} that windows of the range are made of have gone from the "
            "landing table",
            "land them again, leave these windows as they are published, or go by what is left "
            "with --accept-loss REASON",
        )


def named(days: Sequence[date]) -> str:
    """Some days as a text: the first three, and how many more."""
    first = ", ".join(str(day) for day in days[:3])
    return first if len(days) <= 3 else f"{first} and {len(days) - 3:,} more days"


def _require_order(within: TimeRange, history: History, clock: Clock) -> None:
    """Windows that share records close in the order of their ends, those of a closure too."""
    grid = history.grid
    around = grid.sharing(within)
    if around == within or not clock.closures:
        return
    inside = grid.ids_within(around)
    calendar = Calendar.of(history, clock, [around])
    filled = calendar.windows.loc[calendar.windows["has_record"].astype(bool), "window_id"]
    ids = [window for window in filled.tolist() if inside.start <= window < inside.stop]
    closes = calendar.placed(ids)["close_from"].tolist()
    placed = list(zip(ids, closes, strict=True))
    for (older, closed), (newer, next_closed) in pairwise(placed):
        if newer - older < grid.size_ms and closed > next_closed:
            longer = [window for window, at in placed if window < newer and at > next_closed]
            raise InputError(
                "--start/--end",
                f"the window from {text_of(older)} would be open longer than the one from "
                f"{text_of(newer)}, and they share records",
                f"let --close begin at {text_of(longer[0])} or before, and --reopen reach to the "
                "end of what was closed",
            )


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
    until_ms = midnight_before(request.to_ms or 0)
    since_ms = remembered.base_ms(until_ms)
    start_ms, end_ms = _to_rebuild(history, remembered, until_ms, first_not_final)
    whole = _whole_slots(TimeRange(start_ms, end_ms), history.spec)
    within, lost, notes = _without_lost(whole, history, world)
    gone = () if since_ms is None else world.lost_since(since_ms, whole.start_ms)
    if gone:  # which records of older slots are late cannot be told again: they stay as they are
        since_ms, lost = None, tuple(sorted({*lost, *gone}))
    # the older slots of late records are mended too, so nothing known of them may be taken back
    oldest_ms = history.days.oldest_slot_of_arrivals(since_ms, until_ms)
    others = _slots_of_published_late(history.grid, remembered, whole.start_ms, since_ms)
    mended = TimeRange(min(whole.start_ms, oldest_ms, *others), whole.end_ms)
    published = largest_horizon(remembered.entries, mended)
    horizon = until_ms if published is None else max(until_ms, published)
    standing = closures_in(remembered.entries, history.grid.sharing(mended))
    notes += [
        f"windows from {text_of(closure.windows.start_ms)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; what arrived later for them is late"
        for closure in standing
        if closure.windows.overlaps(mended)
    ]
    return Plan(
        Scope(within, since_ms, whole.start_ms, others),
        Clock(horizon, tuple(standing)),
        # what is left out is still to come: the next run begins where this one did
        None if lost else until_ms,
        owed=remembered.owed,
        settles=() if lost else remembered.settled_by(until_ms),
        lost=tuple(lost),
        notes=tuple(notes),
    )


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
        if remembered.first_open is not None:
            not_closed_ms = remembered.first_open.watermark_before(history.spec)
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
    rest = _whole_slots(TimeRange(first_ms, within.end_ms), history.spec)
    note = (
        f"rows of {named(gone)} have gone from the landing table: windows before "
        f"{text_of(rest.start_ms)} stay as they are published; land the rows again, or go by what "
        "is left with --accept-loss REASON"
    )
    return rest, tuple(gone), [note]
