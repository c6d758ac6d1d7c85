"""The cells of a stream counted record by record, as `observe` counts them by aggregation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from strandline.engine import columns as c
from strandline.engine.axis import Axis
from strandline.engine.history import History, cells_from
from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS, day_of, midnight_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strategies import Stream

    from strandline.reference import Record
    from strandline.spec import PipelineSpec

COUNTED = (
    *(c.ARRIVAL_DAY, c.REASON, c.CHANNEL, c.EVENT_DATE, c.SLOT, c.THRESHOLD, c.PENDING),
    *(c.RECORDS, c.LEAST_TS, c.LARGEST_TS, c.LARGEST_END),
    *(c.LARGEST_CANDIDATE, c.FIRST_INSTANT),
)


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
            min(instant_of(stream, record) for record in members),
        )
        for cell, members in cells.items()
    ]


def history_of(stream: Stream, *, horizon_ms: int | None = None, parts: int = 1) -> History:
    """What is known below a horizon, observed in one go or in parts that are put together."""
    known_ms = stream.horizon_ms if horizon_ms is None else horizon_ms
    known = [record for record in stream.records if record.arrival_ms < known_ms]
    rows = [row for part in range(parts) for row in counted(stream, known[part::parts])]
    return history_from(rows, stream.spec, axis_of(stream))


def history_from(rows: Sequence[tuple], spec: PipelineSpec, axis: Axis) -> History:
    """What rows with the columns that `observe` gives say."""
    return History(cells_from(pd.DataFrame(rows, columns=list(COUNTED)), axis), spec, axis)


def a_cell(
    least_ts_ms: int,
    largest_ts_ms: int,
    *,
    end: int | None = None,
    slot: int = 0,
    threshold: int | None = None,
    first_instant: int = 1_000,
) -> tuple:
    """A record of 1 January 1970 by an ascending watermark, as `observe` would count its cell."""
    day = day_of(0)
    is_of = (day, None, "", day, slot, threshold, False)
    return (*is_of, 1, least_ts_ms, largest_ts_ms, end, largest_ts_ms - 1, first_instant)


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
