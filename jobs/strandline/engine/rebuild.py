"""The rebuild of a scope, in the form that fits the pipeline's kind of windows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame

from strandline.engine.calendar.slots import Calendar, OlderWindows
from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Clock
from strandline.engine.records.identity import SourceColumns
from strandline.engine.replay.process_function import ProcessFunctionRebuild
from strandline.engine.replay.rebuild import ReplayedRebuild
from strandline.engine.replay.window_pairs import WindowPairsRebuild
from strandline.engine.scope import Rebuild, Scope

__all__ = ["Rebuild", "Scope", "rebuild_of_scope"]


def rebuild_of_scope(
    records: DataFrame,
    source_columns: SourceColumns,
    history: History,
    clock: Clock,
    scope: Scope,
    *,
    tie_breaker: Column | None = None,
) -> Rebuild:
    """The rebuild of a scope: its slots are computed here, its DataFrames are evaluated later.

    Args:
        records: the landing as `read_records` reads it; only the days that are needed are read.
        source_columns: the landing table's own columns.
        history: everything observed below the clock's horizon.
        clock: the horizon and the inputs that have ended.
        scope: the windows to rebuild.
        tie_breaker: orders records of one position; None: their identity does.
    """
    clock = history.crossings.without_dropped_end(clock)
    fresh = OlderWindows()
    if scope.older_since_ms is not None:
        fresh = OlderWindows.of(
            history,
            scope.older_end_ms,
            scope.older_since_ms,
            too=scope.older_too,
            kept=scope.kept,
        )
    kind = kind_of(history.spec)
    if kind.needs_probe_order:
        history = history.in_probe_order(records)
    ranges = [scope.windows, *fresh.starts(history.grid)]
    calendar = Calendar.of(history, clock, ranges)
    slots = calendar.starting_in(scope.windows)
    older = calendar.slots(calendar.windows["window_id"].isin(fresh.ids))
    asked = history
    if history.spec.has_pairs_of_windows:  # what is counted there is counted of pairs
        asked = replace(history, spec=history.spec.model_copy(update={"aggregates": {}}))
    rebuilt = kind.rebuilt_by(
        records,
        source_columns,
        asked,
        clock,
        scope,
        calendar,
        slots,
        older,
        fresh.records,
        tie_breaker,
    )
    if not isinstance(rebuilt, ReplayedRebuild):
        return rebuilt
    if history.spec.has_pairs_of_windows:
        return WindowPairsRebuild.over(rebuilt, history=history, replay=rebuilt)
    if history.spec.process is not None:
        return ProcessFunctionRebuild.over(rebuilt, replay=rebuilt)
    return rebuilt
