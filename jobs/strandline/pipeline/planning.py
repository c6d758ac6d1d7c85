"""plan: which horizon a run stands at, what it rebuilds, and what it closes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from strandline.engine.axis import Axis
from strandline.engine.history import Clock, Closure, History
from strandline.engine.rebuild import Scope
from strandline.errors import InputError
from strandline.lake.landing import Landing
from strandline.lake.ledger import Entry, clock_start, frontier, largest_horizon, published_into
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    midnight_before,
    midnight_of,
    text_of,
)
from strandline.pipeline.request import Request
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Session


@dataclass(frozen=True)
class Plan:
    """What a run rebuilds, and what it will have completed when it is published.

    Attributes:
        scope: the windows and older late records.
        clock: the horizon, and which input has ended.
        completes_ms: the midnight up to which everything is published after it; None: of none.
        notes: what a person should know about it.
    """

    scope: Scope
    clock: Clock
    completes_ms: int | None
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
    """The instant up to which a run knows records."""
    if request.as_of_ms is not None:
        return request.as_of_ms
    if request.kind == "advance":
        # a later horizon published into the range is taken up once the range is known
        return midnight_before(request.to_ms or 0)
    last = landing.last_arrival(axis)
    by_arrivals = EVERYTHING.start_ms if last is None else axis.horizon_after(last)
    published = largest_horizon(entries, asked_of(request, landing.spec))
    return max(by_arrivals, published or by_arrivals)


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
    request: Request, history: History, horizon_ms: int, entries: list[Entry]
) -> Plan:
    """The plan of a run by hand over a range.

    Raises:
        InputError: part of the range was closed by an earlier run at another horizon, or windows
            that share records would close out of order.
    """
    within = asked_of(request, history.spec)
    standing = closures_in(entries, history.grid.sharing(within))
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
        standing = [rest for closure in standing for rest in _without(closure, within)]
    if request.close:
        standing.append(Closure(within, horizon_ms))
    clock = history.heard_by(Clock(horizon_ms, tuple(standing)))
    _require_order(within, history, clock)
    if request.close and not clock.closes_now:
        notes.append("the source is idle, and Flink drops the end of such an input: none is closed")
    starts = history.well_formed["slot_ms"]
    whole = not len(starts) or (int(starts.min()) in within and int(starts.max()) in within)
    return Plan(
        Scope(within),
        clock,
        midnight_before(horizon_ms) if whole and len(starts) else None,
        tuple(notes),
    )


def _require_order(within: TimeRange, history: History, clock: Clock) -> None:
    """Windows that share records close in the order of their ends, those of a closure too."""
    grid = history.grid
    around = grid.sharing(within)
    if around == within or not clock.closures:
        return
    inside = grid.ids_within(around)
    ids = [int(i) for i in history.windows_with_records if inside.start <= i < inside.stop]
    closes = history.placed(ids, clock)["close_from"].tolist()
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
    entries: list[Entry],
    first_not_final: Callable[[int], int],
) -> Plan:
    """The plan of a scheduled run up to M, the last midnight not after an instant.

    Fixed by M and P alone: the windows that were not final at P, up to the last event date known
    at M; and of the records that arrived in [P, M), those of older windows.

    Args:
        request: what is asked.
        history: everything observed below the horizon.
        entries: the ledger.
        first_not_final: where the windows begin that a watermark does not leave as they are.
    """
    until = midnight_before(request.to_ms or 0)
    reached = frontier(entries)
    since = EVERYTHING.start_ms if reached is None else min(until - DAY_MS, reached)
    cells = history.well_formed
    arrived = cells["arrival_date"].map(midnight_of)
    known, fresh = cells[arrived < until], cells[(arrived >= since) & (arrived < until)]
    start = EVERYTHING.start_ms
    if reached is not None:
        start = first_not_final(history.watermark_reached(since))
    end = start
    if len(known):
        last = min(midnight_of(max(known["event_date"])) + DAY_MS, EVERYTHING.end_ms - 1)
        end = max(start, last)
        if reached is None:
            start = int(history.grid.starts_of(known["oldest_id"].to_numpy()).min())
    within = _whole_slots(TimeRange(start, end), history.spec)
    start, end = within.start_ms, within.end_ms
    # the older slots of late records are mended too, so nothing known of them may be taken back
    mended = TimeRange(min(start, min(fresh["slot_ms"], default=start)), end)
    published = largest_horizon(entries, mended)
    horizon = until if published is None else max(until, published)
    standing = closures_in(entries, history.grid.sharing(mended))
    notes = [
        f"windows from {text_of(closure.windows.start_ms)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; what arrived later for them is late"
        for closure in standing
        if closure.windows.overlaps(mended)
    ]
    return Plan(
        Scope(within, None if reached is None else since),
        Clock(horizon, tuple(standing)),
        until,
        tuple(notes),
    )


def closures_in(entries: list[Entry], within: TimeRange) -> list[Closure]:
    """The closures that stand in a range: the last run that closed or reopened a part decides."""
    standing: list[Closure] = []
    for entry in published_into(entries, EVERYTHING):
        if entry.range is None or entry.horizon_ms is None:
            continue
        if entry.closed or entry.reopened:
            standing = [rest for closure in standing for rest in _without(closure, entry.range)]
        if entry.closed:
            standing.append(Closure(entry.range, entry.horizon_ms))
    return [closure for closure in standing if closure.windows.overlaps(within)]


def _without(closure: Closure, gone: TimeRange) -> list[Closure]:
    """What a closure leaves closed outside a range."""
    windows = closure.windows
    before = TimeRange(windows.start_ms, min(windows.end_ms, gone.start_ms))
    after = TimeRange(max(windows.start_ms, gone.end_ms), windows.end_ms)
    return [Closure(part, closure.at_ms) for part in (before, after) if part.start_ms < part.end_ms]
