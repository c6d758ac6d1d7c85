"""The rebuilds that a pipeline over results needs after the other pipeline has changed some.

Changed results change only the windows that they belong to. A changed watermark changes the slots
that fire or close at other times, and all later ones. Kept windows that a run with overridden rules
has published are rebuilt by these rules, over the results as they are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.engine.calendar.placed import placed
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.ledger import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.commits import days_changed
from strandline.lake.store.reads import dataset_of
from strandline.lake.store.store import Store
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    EVERYTHING,
    TimeRange,
    datetime_of,
    instant_of,
    merged,
    midnight_of,
    parts_outside,
)
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.kept import closed_part
from strandline.pipeline.plan.published_rows import states_in
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request


def of_changed_results(
    landing: Landing, request: Request, state: PipelineState, store: Store
) -> list[Request]:
    """The runs that a scheduled run does first: rebuilds of windows whose results have changed.

    Closed windows by the pipeline's file, and kept windows by the rules that have published them.
    One run for each range. If the scheduled run dies before publishing, they are done again.

    Args:
        landing: the results; any other landing needs no such run.
        request: the requested run.
        state: the pipeline's state, by its own ledger.
        store: the pipeline's tables.
    """
    scheduled = request.kind == "advance" and not request.recreate
    if not (scheduled and isinstance(landing, ResultsLanding)):
        return []
    kept = list(_kept(landing, state, store))
    ranges = parts_outside(ranges_changed(landing, state), [one.windows for one in kept])
    first = replace(
        request,
        kind="backfill",
        to_ms=None,
        as_of_ms=request.until_ms,
        keeps_closed=True,
        reason=f"results of {landing.spec.upstream.pipeline} have changed",
    )
    return [
        *(_over(within, first) for within in ranges),
        *(
            replace(
                _over(one.windows, first),
                as_of_ms=_horizon_of(one, landing, request.until_ms),
                overrides=one.overrides,
            )
            for one in kept
            if _has_changed(one, landing)
        ),
    ]


def _over(within: TimeRange, first: Request) -> Request:
    """The request over a range, with a key of its own."""
    run_key = f"{first.run_key}/{within.start_ms}" if first.run_key else None
    return replace(first, range=within, run_key=run_key)


def _kept(landing: ResultsLanding, state: PipelineState, store: Store) -> Iterator[OverriddenRange]:
    """The closed parts of overridden ranges, which scheduled runs keep."""
    if landing.spec.why_overridden_is_redone is not None:
        return
    for one in state.overridden:
        states = states_in(store, one.windows)
        windows = closed_part(one.windows, states, Grid.of(landing.spec).span_ms)
        if windows is not None:
            yield replace(one, windows=windows)


def _horizon_of(one: OverriddenRange, landing: ResultsLanding, until_ms: int) -> int:
    """The horizon of a range's rebuild: no earlier than its own, if the results are known so far.

    `until_ms`: the midnight of the scheduled run.
    """
    return max(until_ms, min(one.horizon_ms or until_ms, landing.results.horizon_ms))


def _has_changed(one: OverriddenRange, landing: ResultsLanding) -> bool:
    """Whether results of a range have changed since they were evaluated for it."""
    dates = _dates_changed(landing, one.landing_version, one.landing_id)
    return dates is None or any(one.windows.overlaps(it) for it in _ranges_over(dates, landing))


def ranges_changed(landing: ResultsLanding, state: PipelineState) -> list[TimeRange]:
    """The ranges of closed windows whose results have changed since everything was published.

    Found by the dates that commits to the other pipeline's table have changed. Windows that are not
    closed are rebuilt by a scheduled run anyway.

    Args:
        landing: the results.
        state: the pipeline's state, by its own ledger.
    """
    last = _last_over_all(state)
    if last is None or last.landing_version is None or not landing.spec.by_slots:
        return []
    open_ms = _open_from(last)
    dates = _dates_changed(landing, last.landing_version, last.landing_id)
    if dates is None:
        return [TimeRange(EVERYTHING.start_ms, open_ms)]
    ranges = _ranges_over(dates, landing)
    closed = (TimeRange(one.start_ms, min(one.end_ms, open_ms)) for one in ranges)
    return [one for one in closed if one.start_ms < one.end_ms]


def _dates_changed(
    landing: ResultsLanding, version: int | None, table_id: str | None
) -> set[date] | None:
    """The dates of results that have changed since a version; None: not known, so all may have."""
    log = landing.results
    if version is None or log.is_another(table_id):
        return None
    return days_changed(log.table, "window_date", version)


def _ranges_over(dates: Iterable[date], landing: ResultsLanding) -> list[TimeRange]:
    """The separate ranges of starts of windows with results of some dates, in order."""
    grid, first = Grid.of(landing.spec), Grid.of(landing.spec.upstream)
    return merged(_starts_over(midnight_of(day), first, grid) for day in dates)


def _last_over_all(state: PipelineState) -> Entry | None:
    """The last run in force after which everything was published; None: there is none.

    After a revert, everything is published only from the next run over everything on.
    """
    without = [range(pair.run.position, pair.by.position) for pair in state.taken_back]
    over_all = (run for run in reversed(state.published) if run.completes_ms is not None)
    return next((run for run in over_all if not any(run.position in r for r in without)), None)


def _open_from(last: Entry) -> int:
    """The start of the first window that was not closed, or that had no record, after a run."""
    if last.first_open_ms is not None:
        return last.first_open_ms
    return last.range.end_ms if last.range else EVERYTHING.start_ms


def _starts_over(midnight_ms: int, first: Grid, grid: Grid) -> TimeRange:
    """The range of starts of windows with results of first windows that start on a day."""
    ids = first.ids_within(TimeRange(midnight_ms, midnight_ms + DAY_MS))
    events = first.ends_of(np.array([ids[0], ids[-1]])) - 1 if len(ids) else np.zeros(0)
    if not len(events):
        return TimeRange(midnight_ms, midnight_ms)
    oldest, _ = grid.windows_of_panes(grid.panes_of(events))
    newest = grid.newest_starts(events)
    start_ms = min(int(grid.starts_of(oldest)[0]), int(newest[0]))
    return TimeRange(start_ms, int(newest[1]) + grid.span_ms)


def first_to_rebuild(
    ctx: Context, state: PipelineState, observation: Observation, horizon_ms: int
) -> int:
    """The start of the first window to rebuild, whatever the watermark makes final now.

    It is the first that the rebuilds of changed results leave to the scheduled run, or the first
    closed slot that now fires or closes at another time. The end of all instants if there is none.
    """
    last = _last_over_all(state)
    if last is None:
        return END_OF_INSTANTS_MS
    status = observation.status
    observed = _observed_since(last, status, ctx.store)
    days = status.changes.changed | status.changes.behind | observed
    slots = _closed_since(ctx.store.table("completeness"), min(days)) if days else []
    moved_ms = _first_moved(slots, observation.history, Clock(horizon_ms, tuple(state.closures)))
    return min(_open_from(last), moved_ms)


def _observed_since(run: Entry, status: LandingStatus, store: Store) -> set[date]:
    """The arrival days that a run has not known as they are observed now: new ones, changed ones.

    They were observed after the run had published, or meanwhile in newer results. The first of all
    days, if it is not known which.
    """
    timeline, version = store.table("timeline"), (run.versions or {}).get("timeline")
    if timeline is None or version is None:
        return {date.min}
    days, read = days_changed(timeline, "arrival_date", version), run.landing_version or 0
    newer = {day for day, facts in status.known.items() if facts.landing_version > read}
    return {date.min} if days is None else days | newer


def _first_moved(slots: Sequence[Sequence[int]], history: History, clock: Clock) -> int:
    """The start of the first of some closed slots that now fires or closes at another time.

    The end of all instants if there is none.

    Args:
        slots: of each its start, its end, and when it fired and closed.
        history: everything observed below the horizon.
        clock: the horizon, and the closures in force.
    """
    if not slots:
        return END_OF_INSTANTS_MS
    starts, ends, fired, closed = np.array(slots, dtype=np.int64).T
    ids = ends if history.grid.cumulative else starts
    now = placed(ids.tolist(), history.grid, history.axis, history.crossings, clock)
    same = (now["fire_at_ms"].fillna(-1) == fired) & (now["close_at_ms"].fillna(-1) == closed)
    return int(min(starts[~same.to_numpy(dtype=bool)], default=END_OF_INSTANTS_MS))


def _closed_since(completeness: DeltaTable | None, day: date) -> list[list[int]]:
    """The slots that have closed since a day: start, end, and when each fired and closed."""
    if completeness is None:
        return []
    since = ds.field("closed_at") >= datetime_of(midnight_of(day))
    names = ["slot_start", "slot_end", "fired_at", "closed_at"]
    closed = (ds.field("state") == "closed") & since
    rows = dataset_of(completeness).to_table(columns=names, filter=closed).to_pylist()
    return [[instant_of(row[name]) for name in names] for row in rows]
