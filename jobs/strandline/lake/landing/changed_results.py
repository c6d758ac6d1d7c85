"""The results of another pipeline that have changed since windows were made of them.

They are found by the dates that commits to the other pipeline's table have changed, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np

from strandline.engine.position.grid import Grid
from strandline.lake.landing.results_log import ResultsLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.commits import days_changed
from strandline.model.intervals import (
    DAY_MS,
    EVERYTHING,
    TimeRange,
    merged,
    midnight_of,
    parts_outside,
)
from strandline.spec.chained import ResultsSpec


def dates_to_use_again(log: ResultsLog, spec: ResultsSpec, state: PipelineState) -> list[date]:
    """The dates of results that have changed since a pipeline has used them for closed windows.

    Its next scheduled run rebuilds these windows. Results that scheduled runs of the other pipeline
    have added, or fired again for records that landed since, do not count: they are new to it.

    Args:
        log: the results.
        spec: the pipeline.
        state: the pipeline's state, by its own ledger.
    """
    kept = state.overridden if spec.why_overridden_is_redone is None else ()
    last, found = last_over_all(state), set[date]()
    if last is not None and last.landing_version is not None:
        found |= _used_by_the_file(last, log, spec, state, [one.windows for one in kept])
    for one in kept:
        found |= _dates_over([one.windows], one, log, spec)
    return sorted(found)


def _used_by_the_file(
    last: Entry,
    log: ResultsLog,
    spec: ResultsSpec,
    state: PipelineState,
    kept: Sequence[TimeRange],
) -> set[date]:
    """The dates of changed results that the last run over everything used for closed windows.

    Without windows that are kept by rules of their own.
    """
    if not spec.by_slots:
        return {day for day in _dates_of(last, log) if midnight_of(day) < open_from(last)}
    ranges = parts_outside(ranges_changed(log, spec, state), kept)
    return _dates_over(ranges, last, log, spec)


def _dates_over(
    windows: Sequence[TimeRange],
    used_by: Entry | OverriddenRange,
    log: ResultsLog,
    spec: ResultsSpec,
) -> set[date]:
    """The dates of results that have changed since they were used for windows of some ranges."""
    return {
        day
        for day in _dates_of(used_by, log)
        if any(over.overlaps(one) for over in ranges_over([day], spec) for one in windows)
    }


def _dates_of(used_by: Entry | OverriddenRange, log: ResultsLog) -> set[date]:
    """The dates of results that have changed since they were used, but by runs that go on.

    All dates if it is not known.
    """
    version, dates = used_by.landing_version, None
    if version is not None and not log.is_another(used_by.landing_id):
        dates = log.changed_otherwise_since(version)
    return log.dates if dates is None else dates


def has_changed(one: OverriddenRange, log: ResultsLog, spec: ResultsSpec) -> bool:
    """Whether results of a range have changed since they were evaluated for it."""
    dates = _dates_changed(log, one)
    return dates is None or any(one.windows.overlaps(it) for it in ranges_over(dates, spec))


def ranges_changed(log: ResultsLog, spec: ResultsSpec, state: PipelineState) -> list[TimeRange]:
    """The ranges of closed windows whose results have changed since everything was published.

    Found by the dates that commits to the other pipeline's table have changed. Windows that are not
    closed are rebuilt by a scheduled run anyway.

    Args:
        log: the results.
        spec: the pipeline.
        state: the pipeline's state, by its own ledger.
    """
    last = last_over_all(state)
    if last is None or last.landing_version is None or not spec.by_slots:
        return []
    closed = TimeRange(EVERYTHING.start_ms, open_from(last))
    found: list[TimeRange] = []
    rebuilt: list[TimeRange] = []
    for run in [*reversed(_rebuilt_since(last, state)), last]:
        within = closed if run is last else run.range
        changed = (one.shared_with(closed) for one in _ranges_changed_since(run, log, spec))
        of_run = (one.shared_with(within) for one in changed if one and within)
        found += parts_outside([one for one in of_run if one], rebuilt)
        rebuilt += [within] if within else []
    return merged(found)


def _rebuilt_since(last: Entry, state: PipelineState) -> list[Entry]:
    """The later runs in force by the pipeline's own rules that know no less than a run."""
    before_reverts = _before_reverts(state)
    return [
        run
        for run in state.in_force
        if run.position > last.position
        and run.position not in before_reverts
        and run.landing_version is not None
        and not run.overrides
        and (run.horizon_ms or 0) >= (last.horizon_ms or 0)
    ]


def _ranges_changed_since(run: Entry, log: ResultsLog, spec: ResultsSpec) -> list[TimeRange]:
    """The ranges of windows whose results have changed since a run; of all, if it is not known."""
    dates = _dates_changed(log, run)
    return [EVERYTHING] if dates is None else ranges_over(dates, spec)


def _dates_changed(log: ResultsLog, used_by: Entry | OverriddenRange) -> set[date] | None:
    """The dates of results that have changed since they were used; None: not known, so all may."""
    version = used_by.landing_version
    if version is None or log.is_another(used_by.landing_id):
        return None
    return days_changed(log.table, "window_date", version)


def ranges_over(dates: Iterable[date], spec: ResultsSpec) -> list[TimeRange]:
    """The separate ranges of starts of windows with results of some dates, in order."""
    grid, first = Grid.of(spec), Grid.of(spec.upstream)
    return merged(_starts_over(midnight_of(day), first, grid) for day in dates)


def last_over_all(state: PipelineState) -> Entry | None:
    """The last run in force after which everything was published; None: there is none.

    After a revert, everything is published only from the next run over everything on.
    """
    without = _before_reverts(state)
    over_all = (run for run in reversed(state.published) if run.completes_ms is not None)
    return next((run for run in over_all if run.position not in without), None)


def _before_reverts(state: PipelineState) -> set[int]:
    """The positions of the published steps from each reverted run until its revert."""
    between = [range(pair.run.position, pair.by.position) for pair in state.taken_back]
    return {run.position for run in state.published if any(run.position in one for one in between)}


def open_from(last: Entry) -> int:
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
