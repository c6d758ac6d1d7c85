"""The rebuild of a scope, and the late records of windows that stay as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.slots import Calendar, OlderWindows
from strandline.engine.frames import long
from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.clock import Clock
from strandline.engine.records.arithmetic import cleanup_time, slot_of_session
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.replay.process_function import ProcessFunctionRebuild
from strandline.engine.replay.rebuild import ReplayedRebuild
from strandline.engine.replay.window_pairs import WindowPairsRebuild
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.watermark_values.of_days import emissions
from strandline.engine.windows.assign import newest_window_table
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec


def rebuild_of_scope(
    records: DataFrame,
    source_columns: SourceColumns,
    history: History,
    clock: Clock,
    scope: Scope,
    *,
    tie_breaker: Column | None = None,
) -> Rebuild:
    """The rebuild of a scope; its slots are computed at once, its DataFrames when they are read.

    Args:
        records: the landing as `read_records` reads it; only the days that are needed are read.
        source_columns: the landing table's own columns.
        history: everything observed below the clock's horizon.
        clock: the horizon and the inputs that have ended.
        scope: the windows to rebuild.
        tie_breaker: orders records of one position; None: their identity does (`records.identity`).
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
    if history.spec.has_pairs_of_windows:  # its counts are counts of pairs
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


def late_for_kept(
    records: DataFrame,
    arrived: DataFrame,
    days: Sequence[date],
    calendar: Calendar,
    slots: pd.DataFrame,
    rules: PipelineSpec,
    source_columns: SourceColumns,
) -> DataFrame:
    """The records that arrived late for windows which stay as published, as quarantine rows.

    Each row has the watermark at the record's arrival, computed by the settings that the windows
    were published with. It is at least the watermark that closes the window, as a record may have
    landed long after its arrival time.

    Args:
        records: the landing as `read_records` reads it.
        arrived: the well-formed records that arrived.
        days: their arrival days.
        calendar: the calendar that contains their newest windows.
        slots: these windows.
        rules: the pipeline with the settings of these windows.
        source_columns: the landing table's own columns.
    """
    history = calendar.history
    if history.spec.window.merging:
        history = history.in_probe_order(records)
        placed = arrived.withColumns(slot_of_session(history.grid, calendar.clock.closures))
    else:
        panes = calendar.panes(slots)
        newest = newest_window_table(records.sparkSession, panes, history.axis)
        placed = arrived.join(F.broadcast(newest), c.PANE)
    emitted = emissions(records, history, calendar.clock, days)
    at_arrival = emitted.at_arrival(placed, history.spec)
    lead_ms = (history.spec.watermark.bound_ms or 0) - (rules.watermark.bound_ms or 0)
    closing = cleanup_time(F.col(c.SLOT_END), allowed_lateness_ms=rules.allowed_lateness)
    by_rules = F.greatest(_ahead(lead_ms), closing)
    return quarantine_late(at_arrival.withColumn(c.WATERMARK, by_rules), rules, source_columns)


def _ahead(lead_ms: int) -> Column:
    """The WATERMARK of a bound that is smaller by `lead_ms`; MIN and MAX stay as they are."""
    watermark = F.col(c.WATERMARK)
    is_one = (watermark != long(MIN_WATERMARK)) & (watermark != long(MAX_WATERMARK))
    return F.when(is_one, watermark + long(lead_ms)).otherwise(watermark)
