"""The rebuilds that a pipeline over results needs after the other pipeline has changed some.

Changed results change only the windows that they belong to. A changed watermark changes the slots
that fire or close at other times, and all later ones.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.engine.calendar.placed import placed
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.ledger.ledger import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.commits import days_changed
from strandline.lake.store.reads import dataset_of
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    EVERYTHING,
    TimeRange,
    datetime_of,
    instant_of,
    midnight_of,
)
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request


def of_changed_results(landing: Landing, request: Request, state: PipelineState) -> list[Request]:
    """The runs that a scheduled run does first.

    Rebuilds of closed windows whose results have changed.

    One run for each range. If the scheduled run dies before publishing, they are done again.
    """
    scheduled = request.kind == "advance" and not request.recreate
    if not (scheduled and isinstance(landing, ResultsLanding)):
        return []
    return [
        replace(
            request,
            kind="backfill",
            range=within,
            to_ms=None,
            as_of_ms=request.until_ms,
            keeps_closed=True,
            run_key=f"{request.run_key}/{within.start_ms}" if request.run_key else None,
            reason=f"results of {landing.spec.upstream.pipeline} have changed",
        )
        for within in ranges_changed(landing, state)
    ]


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
    grid, first = Grid.of(landing.spec), Grid.of(landing.spec.upstream)
    open_ms = last.first_open_ms
    if open_ms is None:
        open_ms = last.range.end_ms if last.range else EVERYTHING.start_ms
    log, dates = landing.results, None
    if not log.is_another(last.landing_id):
        dates = days_changed(log.table, "window_date", last.landing_version)
    if dates is None:
        return [TimeRange(EVERYTHING.start_ms, open_ms)]
    ranges: list[TimeRange] = []
    for day in sorted(dates):
        starts = _starts_over(midnight_of(day), first, grid)
        touches = ranges and starts.start_ms <= ranges[-1].end_ms
        start_ms = ranges.pop().start_ms if touches else starts.start_ms
        ranges.append(TimeRange(start_ms, starts.end_ms))
    closed = (TimeRange(one.start_ms, min(one.end_ms, open_ms)) for one in ranges)
    return [one for one in closed if one.start_ms < one.end_ms]


def _last_over_all(state: PipelineState) -> Entry | None:
    """The last run in force after which everything was published; None: there is none.

    After a revert, everything is published only from the next run over everything on.
    """
    without = [range(pair.run.position, pair.by.position) for pair in state.taken_back]
    over_all = (run for run in reversed(state.published) if run.completes_ms is not None)
    return next((run for run in over_all if not any(run.position in r for r in without)), None)


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


def first_moved(
    ctx: Context, state: PipelineState, observation: Observation, horizon_ms: int
) -> int:
    """The start of the first closed slot that now fires or closes at another time.

    The end of all instants if there is none, or if no observed day has changed.
    """
    days = observation.status.changes.changed | observation.status.changes.behind
    slots = _closed_since(ctx.store.table("completeness"), min(days)) if days else []
    if not slots:
        return END_OF_INSTANTS_MS
    starts, ends, fired, closed = np.array(slots, dtype=np.int64).T
    history = observation.history
    ids = ends if history.grid.cumulative else starts
    clock = Clock(horizon_ms, tuple(state.closures))
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
