"""The cells of a stream counted record by record, as `observe` counts them by aggregation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from strandline.engine.calendar.slots import Calendar, OlderWindows
from strandline.engine.history import history as engine_history
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import CELL_COLUMNS, Observed
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    EVERYTHING,
    HOUR_MS,
    LEAST_INSTANT_MS,
    day_of,
    midnight_of,
)
from strandline.model.windows import TimeWindow
from strandline.spec.watermark import CandidateExpression, Punctuated
from strandline.spec.window import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from strategies import Stream

    from strandline.engine.history.history import History
    from strandline.engine.position.clock import Clock
    from strandline.model.intervals import TimeRange
    from strandline.reference.records import Record
    from strandline.spec import PipelineSpec


def axis_of(stream: Stream) -> Axis:
    return Axis.of(stream.spec, stream.start_ms)


def instant_of(stream: Stream, record: Record) -> int:
    return axis_of(stream).instant(record.arrival_ms, record.sequence or 0)


def counted(stream: Stream, records: Sequence[Record]) -> list[tuple]:
    """A row for each cell of some records, with the columns that `observe` gives."""
    cells: dict[tuple, list[Record]] = {}
    for record in records:
        cells.setdefault(_cell(stream, record), []).append(record)
    return [
        (
            *cell,
            len(members),
            min(record.ts_ms for record in members),
            max(record.ts_ms for record in members),
            None,
            stream.spec.watermark.candidate.of(max(record.ts_ms for record in members)),
            *_first(axis_of(stream), min(instant_of(stream, record) for record in members)),
            *_arrived(record.arrival_ms for record in members),
        )
        for cell, members in cells.items()
    ]


def history_of(stream: Stream, *, horizon_ms: int | None = None, parts: int = 1) -> History:
    """What is known below a horizon, observed in one go or in parts that are put together."""
    known_ms = stream.horizon_ms if horizon_ms is None else horizon_ms
    known = [record for record in stream.records if record.arrival_ms < known_ms]
    rows = [row for part in range(parts) for row in counted(stream, known[part::parts])]
    return history_from(rows, stream.spec, axis_of(stream))


def history_by_record(stream: Stream) -> History:
    """The same of any windows but sessions: each record is a cell of its own."""
    axis, known = axis_of(stream), [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
    return history_from([cell_of(stream.spec, axis, r) for r in known], stream.spec, axis)


def history_from(rows: Sequence[tuple], spec: PipelineSpec, axis: Axis) -> History:
    """What rows with the columns that `observe` gives say."""
    return engine_history.history_of(observed(*rows), spec, axis)


def a_cell(
    least_ts_ms: int,
    largest_ts_ms: int,
    *,
    end: int | None = None,
    slot: int = 0,
    threshold: int | None = None,
    first_instant: int = 1_000,
    event_day: int = 0,
) -> tuple:
    """A record of 1 January 1970 by an ascending watermark, as `observe` would count its cell."""
    is_of = (day_of(0), None, "", day_of(event_day * DAY_MS), slot, threshold, False)
    counted = (1, least_ts_ms, largest_ts_ms, end, largest_ts_ms - 1, first_instant, None)
    return (*is_of, *counted, *_arrived([first_instant]))


def cell_of(spec: PipelineSpec, axis: Axis, record: Record) -> tuple:
    """A record as a cell of its own, as `observe` would count it."""
    grid, watermark = Grid.of(spec), spec.watermark
    day, ts_ms = day_of(record.arrival_ms), record.ts_ms
    candidate = record.candidate_ms
    if watermark.candidate is not None:
        candidate = watermark.candidate.of(ts_ms)
    elif watermark.lag_ms is not None and watermark.interval_ms is None:
        candidate = record.arrival_ms - watermark.lag_ms
    elif isinstance(watermark, Punctuated):
        candidate = ts_ms if record.marker else None
    elif not isinstance(watermark, CandidateExpression):
        candidate = None
    threshold = None
    if candidate is not None:
        step = grid.threshold_step_ms
        reached = [candidate - (candidate - least) % step for least in grid.residues]
        threshold = max(reached) if max(reached) >= LEAST_INSTANT_MS else None
    own_gaps = isinstance(spec.window, Session) and spec.window.gap_ms is None
    pending = axis.interval_ms == 0  # no tick ever shows it
    if axis.interval_ms:
        pending = axis.ticks.after(record.arrival_ms) >= midnight_of(day) + DAY_MS
    return (
        *(day, None, record.channel, day_of(ts_ms)),
        *(ts_ms - (ts_ms - grid.offset_ms) % grid.span_ms, threshold, pending),
        *(1, ts_ms, ts_ms, min(ts_ms + record.gap_ms, END_OF_INSTANTS_MS) if own_gaps else None),
        *(candidate, *_first(axis, axis.instant(record.arrival_ms, record.sequence or 0))),
        *_arrived([record.arrival_ms]),
    )


def _first(axis: Axis, instant: int) -> tuple[int, int | None]:
    """The arrival and the sequence of a cell's first record."""
    return axis.arrival_of(instant), axis.sequence_of(instant)


def _arrived(arrivals_ms: Iterable[int]) -> tuple[int, int]:
    """The last of some arrivals, and the hours of the day that they lie in, a bit each."""
    every = [*arrivals_ms]
    return max(every), sum({1 << (ms % DAY_MS // HOUR_MS) for ms in every})


def slots_in(history: History, within: TimeRange, clock: Clock) -> pd.DataFrame:
    """The slots of a range, its cells alone read."""
    return Calendar.of(history, clock, [within]).starting_in(within)


def window_of(grid: Grid, window: int) -> TimeWindow:
    """A window by its id in the grid."""
    return TimeWindow(grid.starts_of(window), grid.ends_of(window))


def late_days(history: History, clock: Clock) -> list[date]:
    """The days on which any record can be late."""
    calendar = Calendar.of(history, clock, [EVERYTHING])
    return calendar.late_days(calendar.starting_in(EVERYTHING))


def older_slots(
    history: History, before_ms: int, since_ms: int, clock: Clock
) -> tuple[OlderWindows, pd.DataFrame]:
    """The slots before an instant that got a record from a midnight on, their cells alone read."""
    fresh = OlderWindows.of(history, before_ms, since_ms)
    calendar = Calendar.of(history, clock, fresh.starts(history.grid))
    return fresh, calendar.slots(calendar.windows["window_id"].isin(fresh.ids))


def held(stream: Stream) -> Stream:
    """The same stream, its input not ended."""
    return replace(stream, end_of_input=False)


def _cell(stream: Stream, record: Record) -> tuple:
    day = day_of(record.arrival_ms)
    slot = stream.spec.window.assigner.newest_start(record.ts_ms)
    candidate = stream.spec.watermark.candidate.of(record.ts_ms)
    return (
        day,
        None,
        record.channel,
        day_of(record.ts_ms),
        slot,
        _largest_threshold(stream, candidate),
        _is_pending(stream, record, midnight_of(day) + DAY_MS),
    )


def _largest_threshold(stream: Stream, candidate: int) -> int | None:
    size, offset = stream.spec.window.tumbling, stream.spec.window.offset
    last_ms = offset + size - 1  # of some window; every other one is a number of sizes away
    thresholds = (last_ms, last_ms + stream.spec.allowed_lateness)
    largest = max(candidate - (candidate - threshold) % size for threshold in thresholds)
    return None if largest < LEAST_INSTANT_MS else largest


def _is_pending(stream: Stream, record: Record, midnight_ms: int) -> bool:
    ticks, interval_ms = axis_of(stream).ticks, stream.spec.watermark.interval_ms
    if interval_ms is None:
        return False
    return ticks is None or ticks.after(record.arrival_ms) >= midnight_ms


def cell_of_day(day: date, channel: str, records: int) -> dict[str, object]:
    """A cell of records that arrive at a day's midnight, as they happen."""
    at = midnight_of(day)
    cell = dict.fromkeys(CELL_COLUMNS) | {"arrival_date": day, "channel": channel}
    times = ("least_ts_ms", "largest_ts_ms", "largest_candidate_ms", "first_arrival_ms")
    cell |= dict.fromkeys(times, at) | {"event_date": day, "slot_ms": at, "threshold_ms": at - 1}
    return cell | {"pending": False, "records": records}


def observed(*cells: dict[str, object] | tuple) -> Observed:
    """What was observed, by its cells."""
    frame = pd.DataFrame(cells, columns=[*CELL_COLUMNS])
    whole = {name: "Int64" for name in CELL_COLUMNS if name.endswith("_ms")}
    whole |= dict.fromkeys(("first_sequence", "arrival_hours"), "Int64")
    return Observed(frame.astype(whole | {"pending": "boolean", "records": "int64"}))
