"""plan: which horizon a run stands at, what it rebuilds, and what it closes."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Plan:
    """What a run rebuilds, and what it will have completed when it is published.

    Attributes:
        scope: the windows and older late records.
        clock: the horizon, and which input has ended.
        frontier_ms: the frontier that publishing moves to; None: it stays.
        closes: whether the run says that the input of its range has ended.
    """

    scope: Scope
    clock: Clock
    frontier_ms: int | None
    closes: bool
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
    published = largest_horizon(entries, request.range or EVERYTHING)
    return max(by_arrivals, published or by_arrivals)


def plan_backfill(
    request: Request, history: History, horizon_ms: int, entries: list[Entry]
) -> Plan:
    """The plan of a run by hand over a range.

    Raises:
        InputError: part of the range was closed by an earlier run at another horizon.
    """
    within = request.range or EVERYTHING
    closed = _closed(entries, within)
    notes = []
    if request.close:
        closed = []
        closures = [Closure(within, horizon_ms)]
    else:
        closures = [closure for closure in closed if closure.at_ms == horizon_ms]
        other = [closure for closure in closed if closure.at_ms != horizon_ms]
        if other and not request.reopen:
            raise InputError(
                "--start/--end",
                f"windows from {text_of(other[0].windows.start_ms)} on were closed at "
                f"{text_of(other[0].at_ms)} with --close",
                "leave them out, rerun --as-of that instant, or give --reopen",
            )
        if other:
            notes.append("reopens windows that an earlier run had closed")
    starts = history.well_formed["slot_ms"]
    whole = not len(starts) or (int(starts.min()) in within and int(starts.max()) in within)
    return Plan(
        Scope(within),
        Clock(horizon_ms, tuple(closures)),
        midnight_before(horizon_ms) if whole and len(starts) else None,
        request.close or bool(closures),
        tuple(notes),
    )


def plan_advance(request: Request, history: History, entries: list[Entry]) -> Plan:
    """The plan of a scheduled run up to M, the last midnight not after an instant.

    Fixed by M and P alone: the windows that were not final at P, up to the last event date known
    at M; and of the records that arrived in [P, M), those of older windows.
    """
    until = midnight_before(request.to_ms or 0)
    reached = frontier(entries)
    since = EVERYTHING.start_ms if reached is None else min(until - DAY_MS, reached)
    cells = history.well_formed
    known = cells[[midnight_of(day) < until for day in cells["arrival_date"]]]
    start = EVERYTHING.start_ms
    if reached is not None:
        final = history.watermark_reached(since)
        start = max(start, history.grid.first_not_final(final))
    end = start
    if len(known):
        end = max(start, midnight_of(max(known["event_date"])) + DAY_MS)
        if reached is None:
            start = int(known["slot_ms"].min())
    within = TimeRange(start, end)
    horizon = max(until, largest_horizon(entries, within) or until)
    closed = [closure for closure in _closed(entries, within) if closure.at_ms <= horizon]
    notes = [
        f"windows from {text_of(closure.windows.start_ms)} to {text_of(closure.windows.end_ms)} "
        "stay as --close left them; what arrived later for them is late"
        for closure in closed
    ]
    return Plan(
        Scope(within, None if reached is None else since),
        Clock(horizon, tuple(closed)),
        until,
        closes=False,
        notes=tuple(notes),
    )


def _closed(entries: list[Entry], within: TimeRange) -> list[Closure]:
    """The closures that stand in a range: of each part the last publish decides."""
    standing: list[Closure] = []
    for entry in published_into(entries, within):
        if entry.range is None or entry.horizon_ms is None or entry.kind == "advance":
            continue
        standing = [c for c in standing if not _covers(entry.range, c.windows)]
        if entry.closed:
            standing.append(Closure(entry.range, entry.horizon_ms))
    return standing


def _covers(outer: TimeRange, inner: TimeRange) -> bool:
    return outer.start_ms <= inner.start_ms and inner.end_ms <= outer.end_ms
