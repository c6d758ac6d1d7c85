"""Plans a run by hand: what it rebuilds of a range, and what it closes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.calendar.slots import Calendar
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.scope import Scope
from strandline.errors import InputError
from strandline.lake.ledger.in_force import without
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    midnight_before,
    start_text_of,
    text_of,
)
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.plan import (
    Plan,
    asked_of,
    closed_in_order,
    closures_around,
    notes_of_closures,
    outside_by_other_rules,
)
from strandline.pipeline.request.request import Request


def plan_backfill(
    request: Request,
    history: History,
    horizon_ms: int,
    earlier: EarlierRuns,
    status: LandingStatus,
) -> Plan:
    """The plan of a run by hand over a range.

    Raises:
        InputError: part of the range was closed by an earlier run at another horizon, or windows
            that share records would close out of order.
    """
    within = asked = asked_of(request, history.spec)
    if request.close:
        within = _with_windows_before(asked, history)
    if request.started_by:
        in_force = closed_in_order(earlier.state, history, within, horizon_ms)
    else:
        in_force = closures_around(earlier.state, history, within)
    closures = [closure for closure in in_force if closure.windows.overlaps(within)]
    if not (request.reopen or request.started_by):
        _require_closed_at(horizon_ms, closures)
    if request.reopen or request.close:
        in_force = [rest for closure in in_force for rest in without(closure, within)]
    if request.close:
        in_force.append(Closure(within, horizon_ms))
    clock = history.crossings.without_dropped_end(Clock(horizon_ms, tuple(in_force)))
    _require_order(within, history, clock)
    # by rules that are of this run alone nothing is done that later runs need not do
    of_file = not (request.overrides or request.started_by)
    whole = of_file and _holds_all(within, history) and not earlier.has_slots_outside(within)
    completes_ms = midnight_before(min(horizon_ms, status.ready_ms)) if whole else None
    return Plan(
        Scope(within),
        clock,
        completes_ms,
        to_recompute=earlier.to_recompute,
        settles=earlier.settled_by(completes_ms),
        missing=tuple(_missing(within, history, earlier, status)),
        notes=tuple(_notes(request, asked, within, closures, clock)),
        by_other_rules=outside_by_other_rules(request, within, earlier.state),
    )


def _require_closed_at(horizon_ms: int, closures: Sequence[Closure]) -> None:
    other = [closure for closure in closures if closure.at_ms != horizon_ms]
    if other:
        raise InputError(
            "--start/--end",
            f"windows from {start_text_of(other[0].windows)} on were closed at "
            f"{text_of(other[0].at_ms)} with --close",
            "leave them out, rerun --as-of that instant, or give --reopen",
        )


def _notes(
    request: Request,
    asked: TimeRange,
    within: TimeRange,
    closures: Sequence[Closure],
    clock: Clock,
) -> Iterator[str]:
    """Notes about windows that runs have closed, or that this run should close."""
    if request.reopen and closures:
        yield "reopens windows that an earlier run had closed"
    if request.started_by:
        yield from notes_of_closures(closures, within)
    if within != asked:
        yield (
            f"no window before {text_of(asked.start_ms)} has a record: they are closed, "
            "too, since later records of them would be shared with windows that are closed"
        )
    if request.close and not clock.closes_now:
        yield "the source is idle, and Flink drops the end of such an input: none is closed"


def _missing(
    within: TimeRange, history: History, earlier: EarlierRuns, status: LandingStatus
) -> Sequence[date]:
    """The days with missing rows that windows of a range depend on.

    Published sessions may extend further than the records of the range show.
    """
    if not status.missing:
        return ()
    events = history.days.events_of(within)
    end_ms = max(events.end_ms, earlier.last_end(within) or events.end_ms)
    return status.missing_within(TimeRange(events.start_ms, end_ms))


def _holds_all(within: TimeRange, history: History) -> bool:
    """Whether all windows of all records, if there is one, start in a range."""
    events = history.days.events
    if events is None:
        return False
    last_ms = history.grid.newest_starts(events.end_ms - 1)
    return last_ms < within.end_ms and _oldest_window(history) >= within.start_ms


def _with_windows_before(within: TimeRange, history: History) -> TimeRange:
    """A range to close, with all windows before it if none of these has a record.

    Else they would stay open while windows that share their later records are closed.
    """
    if history.grid.sharing(within) == within or _oldest_window(history) < within.start_ms:
        return within
    return TimeRange(LEAST_INSTANT_MS, within.end_ms)


def _oldest_window(history: History) -> int:
    """The start of the oldest window that has a record; `END_OF_INSTANTS_MS` if none has."""
    return history.days.oldest_slot_of_arrivals(None, END_OF_INSTANTS_MS)


def _closing(around: TimeRange, history: History, clock: Clock) -> list[tuple[int, int]]:
    """The windows of a range, each with the instant from which it is closed, in ascending order.

    They are the windows with a record, and the first one of each closure with the one before it,
    which may have records later.
    """
    grid = history.grid
    inside = grid.ids_within(around)
    calendar = Calendar.of(history, clock, [around])
    first = [grid.ids_within(closure.windows).start for closure in clock.closures]
    at_edges = (window for edge in first for window in (edge - grid.step_ms, edge))
    chosen = {*calendar.windows["window_id"].tolist(), *at_edges}
    ids = sorted(window for window in chosen if inside.start <= window < inside.stop)
    return list(zip(ids, slot_times(ids, history, clock)["close_from"].tolist(), strict=True))


def _first_open(history: History, clock: Clock) -> int:
    """The start of the first window that the watermark has not closed; none before any record."""
    reached_ms = history.crossings.watermark_reached(clock.horizon_ms)
    return max(history.grid.first_open(reached_ms), _oldest_window(history))


def _require_order(within: TimeRange, history: History, clock: Clock) -> None:
    """Refuse a closure that closes windows with shared records out of order."""
    grid = history.grid
    around = grid.sharing(within)
    if around == within or not clock.closures:
        return
    placed = _closing(around, history, clock)
    for (older, closed), (newer, next_closed) in pairwise(placed):
        if newer - older < grid.size_ms and closed > next_closed:
            longer = [window for window, at in placed if window < newer and at > next_closed]
            first_ms = min(longer[0], _first_open(history, clock))
            raise InputError(
                "--start/--end",
                f"the window from {text_of(older)} would be open longer than the one from "
                f"{text_of(newer)}, and they share records",
                f"let --close begin at {text_of(first_ms)} or before, and --reopen reach to the "
                "end of what was closed",
            )
