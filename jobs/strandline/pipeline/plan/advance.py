"""Plans a scheduled run: the windows to rebuild, and the late records to evaluate again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date

from strandline.engine.calendar.gaps import silent_until
from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.engine.scope import Scope
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    days_named,
    midnight_before,
    midnight_of,
    text_of,
)
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.kept import Kept, Reached, reached_by
from strandline.pipeline.plan.plan import (
    Plan,
    closed_in_order,
    notes_of_closures,
    outside_by_other_rules,
)
from strandline.pipeline.request.request import Request


def plan_advance(
    request: Request,
    history: History,
    earlier: EarlierRuns,
    status: LandingStatus,
    first_not_final: Callable[[int], int],
) -> Plan:
    """The plan of a scheduled run up to M, the last midnight not after an instant.

    P is the midnight since which it evaluates all arrivals again (`EarlierRuns.base_ms`). It
    rebuilds the windows that were not final at P, or are not published as closed, up to the last
    event date known at M; and the late records of older windows that arrived in [P, M). Windows
    that need missing rows stay as they are published.

    Args:
        request: the requested run.
        history: everything observed below the horizon.
        earlier: the state that earlier runs have left.
        status: the landing status.
        first_not_final: gives the start of the first window that a watermark does not make final.
    """
    until_ms, base_ms = request.until_ms, earlier.base_ms(request.until_ms)
    not_final = _to_rebuild(history, earlier, until_ms, first_not_final)
    late = _slots_of_published_late(history.grid, earlier, not_final.start_ms, base_ms)
    touched = _with_older(not_final, base_ms, until_ms, history, late)
    overridden = reached_by(touched, base_ms, history, earlier)
    whole = _from_recomputed(not_final, overridden, base_ms, history)
    possible = _possible(whole, base_ms, history, status)
    kept = _kept(overridden, possible)
    scope = _scope(possible, whole, kept, late)
    # the older slots of late records are touched too, so nothing known of them may be taken back
    touched = _with_older(whole, possible.since_ms, until_ms, history, scope.older_too)
    clock = _clock(earlier, history, touched, until_ms)
    return Plan(
        scope,
        clock,
        # what is left out is still to come: the next run begins where this one did
        None if possible.missing else until_ms,
        to_recompute=earlier.to_recompute,
        settles=() if possible.missing else earlier.settled_by(until_ms),
        missing=possible.missing,
        notes=(
            *possible.notes,
            *notes_of_closures(clock.closures, touched),
            *(
                note
                for one in overridden
                for note in one.notes(history.spec.pipeline, possible.windows)
            ),
        ),
        kept=kept,
        by_other_rules=outside_by_other_rules(request, scope.windows, earlier.state),
    )


def _from_recomputed(
    not_final: TimeRange, overridden: Sequence[Reached], base_ms: int | None, history: History
) -> TimeRange:
    """A range, from an earlier start if an older window is recomputed though it was final.

    In whole slots.
    """
    recomputed = [one.recomputed_from(base_ms) for one in overridden]
    start_ms = min([not_final.start_ms, *(ms for ms in recomputed if ms is not None)])
    return kind_of(history.spec).whole_slots(TimeRange(start_ms, not_final.end_ms))


def _scope(
    possible: _Possible,
    whole: TimeRange,
    kept: Sequence[Kept],
    late: Collection[int],
) -> Scope:
    """The windows to rebuild, without those that stay, and the older ones of late records.

    `late`: the windows that published late records have missed.
    """
    stay = tuple(one.windows for one in kept)
    older = (ms for ms in late if ms < whole.start_ms and possible.since_ms is not None)
    return Scope(
        possible.windows,
        older_since_ms=possible.since_ms,
        older_before_ms=whole.start_ms,
        older_too=frozenset(ms for ms in older if not any(ms in one for one in stay)),
        kept=stay,
    )


def _with_older(
    whole: TimeRange,
    since_ms: int | None,
    until_ms: int,
    history: History,
    others: Collection[int] = (),
) -> TimeRange:
    """A range from the oldest slot of `others`, or of a record that arrived in [since, until)."""
    oldest_ms = history.days.oldest_slot_of_arrivals(since_ms, until_ms)
    return TimeRange(min(whole.start_ms, oldest_ms, *others), whole.end_ms)


def _kept(overridden: Sequence[Reached], possible: _Possible) -> tuple[Kept, ...]:
    """The kept windows, without new late records if missing rows decide what is late."""
    kept = tuple(one.kept for one in overridden if one.kept is not None)
    if possible.missing and possible.since_ms is None:
        return tuple(replace(one, since_ms=None) for one in kept)
    return kept


def _clock(earlier: EarlierRuns, history: History, touched: TimeRange, until_ms: int) -> Clock:
    """The clock of M, or of the largest published horizon, with the closures of earlier runs.

    Args:
        earlier: the state that earlier runs have left.
        history: everything observed below the horizon.
        touched: the range, and the older slots of late records.
        until_ms: M.
    """
    horizon_ms = earlier.horizon_over(touched, until_ms)
    closures = closed_in_order(earlier.state, history, touched, horizon_ms)
    return Clock(horizon_ms, tuple(closures))


def _slots_of_published_late(
    grid: Grid, earlier: EarlierRuns, before_ms: int, since_ms: int | None
) -> frozenset[int]:
    """The starts of windows before an instant for which published records were too late.

    Only records that arrived since `since_ms` count: they are evaluated again. None: no record.
    """
    if since_ms is None:
        return frozenset()
    sharing = grid.sharing(TimeRange(EVERYTHING.start_ms, before_ms))
    newest = earlier.late_slots(sharing.end_ms, since_ms)
    missed = {start_ms for start in newest for start_ms in grid.starts_with(start)}
    return frozenset(start_ms for start_ms in missed if start_ms < before_ms)


def _to_rebuild(
    history: History,
    earlier: EarlierRuns,
    until_ms: int,
    first_not_final: Callable[[int], int],
) -> TimeRange:
    """The range from the first window not final at P, or open, to the last event date at M."""
    last_date = history.days.last_event_date(until_ms)
    start_ms = _first_to_rebuild(history, earlier, until_ms, first_not_final)
    last_days = [] if last_date is None else [midnight_of(last_date)]
    if earlier.last_slot_ms is not None:
        last_days.append(midnight_before(earlier.last_slot_ms))
    silent_ms = silent_until(history, until_ms)
    if silent_ms is not None and history.spec.quality.gaps != "allow":
        last_days.append(silent_ms - DAY_MS)
    end_ms = start_ms
    if last_days:
        end_ms = max(start_ms, min(max(last_days) + DAY_MS, EVERYTHING.end_ms - 1))
    return kind_of(history.spec).whole_slots(TimeRange(start_ms, end_ms))


def _first_to_rebuild(
    history: History,
    earlier: EarlierRuns,
    until_ms: int,
    first_not_final: Callable[[int], int],
) -> int:
    """The start of the first window that is not final at P, or open, or that may lack its rows."""
    since_ms = earlier.base_ms(until_ms)
    if since_ms is not None:
        watermark_ms = _watermark_before_open(since_ms, history, earlier)
        start_ms = first_not_final(watermark_ms)
        if not earlier.rows_may_have_moved:
            return start_ms
        closed_ms = earlier.first_closed_since(since_ms)
        start_ms = kind_of(history.spec).first_connected(start_ms, watermark_ms)
        # a session that has not fired is no published window, and may have begun far earlier
        published = (closed_ms, earlier.state.first_open_ms)
        return min([start_ms, *(ms for ms in published if ms is not None)])
    is_known = history.days.last_event_date(until_ms) is not None
    if is_known and earlier.state.last_by_file is None:
        oldest_ms = history.days.oldest_slot_of_arrivals(None, until_ms)
        # the records of windows that are not kept may have moved
        return min([oldest_ms, *(one.windows.start_ms for one in earlier.state.overridden)])
    # windows that a run by hand has published by the file's rules may have to be removed
    return EVERYTHING.start_ms


def _watermark_before_open(since_ms: int, history: History, earlier: EarlierRuns) -> int:
    """The watermark at P; or, if lower, the largest one that certainly closed no open slot."""
    watermark_ms, opened = history.crossings.watermark_reached(since_ms), earlier.first_open
    if opened is None:
        return watermark_ms
    kind = kind_of(history.spec)
    return min(watermark_ms, kind.watermark_before_close(opened.end_ms, opened.closed_until_ms))


@dataclass(frozen=True)
class _Possible:
    """The part of a scheduled run's work that is possible with the rows that remain.

    Attributes:
        windows: the windows to rebuild.
        since_ms: the late records of older windows that arrived since then are evaluated again;
            None: none are.
        missing: the days with missing rows that the rest would need.
        notes: notes for a person.
    """

    windows: TimeRange
    since_ms: int | None
    missing: tuple[date, ...] = ()
    notes: tuple[str, ...] = ()


def _possible(
    whole: TimeRange, since_ms: int | None, history: History, status: LandingStatus
) -> _Possible:
    """The part of a range after the last window that needs missing rows.

    The late records of older slots cannot be determined again if rows that arrived since P are
    missing; nor, for sessions, if any missing row may be connected with these records.
    """
    kind = kind_of(history.spec)
    missing = set() if since_ms is None else {*status.missing_since(since_ms, whole.start_ms)}
    events = history.days.events_of(whole)
    within, last_ms = status.missing_within(events), status.last_missing_within(events)
    if missing or (within and kind.cross_slots):
        since_ms = None
    if last_ms is None:
        return _Possible(whole, since_ms, tuple(sorted(missing)))
    rest, which = TimeRange(whole.end_ms, whole.end_ms), "all windows"
    first_ms = history.days.first_start_after(last_ms)
    if first_ms < whole.end_ms:  # else windows of all time would widen the empty range to all
        rest = kind.whole_slots(TimeRange(first_ms, whole.end_ms))
        which = f"windows before {text_of(rest.start_ms)}"
    note = (
        f"rows of {days_named(within)} are missing from {history.spec.input_in_words}: "
        f"{which} stay as they are published; land the rows again, or use what remains with "
        "--accept-loss REASON"
    )
    return _Possible(rest, since_ms, tuple(sorted({*within, *missing})), (note,))
