"""What a law compares: an answer to a stream as plain values, and the reference's own.

The engine's (see `engine_under_test`) has the same shape, so that a law is an equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.windows import GLOBAL_WINDOW, TimeWindow
from strandline.reference.answer import Firing
from strandline.reference.tables import Tables
from strandline.spec.chained import ResultsSpec
from strandline.spec.window import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from strategies import Stream

    from strandline.reference.records import Record
    from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class Answer:
    """What becomes of a stream; the rows of each part in an order of their own.

    Attributes:
        windows: what Flink has emitted: content, counts, state, moments.
        open: what the watermark has not reached: key, start and ids.
        late: the late records, each with the watermark that it met and the lateness it lacked.
        firings: all of them, in Flink's order.
        final_watermark: MIN_WATERMARK: none yet.
        violations: of an ascending order that the watermark assumes.
    """

    windows: list[dict[str, Any]]
    open: list[dict[str, Any]]
    late: list[dict[str, Any]]
    firings: list[dict[str, Any]]
    final_watermark: int
    violations: int


def agree(stream: Stream, found: Answer, expected: Answer) -> None:
    """Part by part, so that what differs is named."""
    for part in Answer.__dataclass_fields__:
        assert getattr(found, part) == getattr(expected, part), f"{part} of {stream}"


def starting_in(rows: list[dict[str, Any]], within: TimeRange) -> list[dict[str, Any]]:
    """The rows of windows that start in a range, or that belong to such a window."""
    return [row for row in rows if row["start"] in within]


def late_in(stream: Stream, rows: list[dict[str, Any]], within: TimeRange) -> list[dict[str, Any]]:
    """The late records of a range: by their newest window, for sessions by their event time."""
    if not isinstance(stream.spec.window, Session):
        return starting_in(rows, within)
    by_arrival = stream.spec.arrival_is_event_time
    times = {r.payload["id"]: r.arrival_ms if by_arrival else r.ts_ms for r in stream.records}
    return [row for row in rows if times[row["id"]] in within]


def reference_within(stream: Stream, within: TimeRange) -> Answer:
    """The part of the reference's answer that a rebuild of a range gives."""
    whole = reference(stream)
    if within == EVERYTHING:
        return whole
    return Answer(
        windows=starting_in(whole.windows, within),
        open=starting_in(whole.open, within),
        late=late_in(stream, whole.late, within),
        firings=starting_in(whole.firings, within),
        final_watermark=whole.final_watermark,
        violations=whole.violations,
    )


def reference(stream: Stream) -> Answer:
    """The record-by-record reference's answer."""
    replay = stream.replay()
    tables, numbers = Tables(stream.spec, replay), numbers_of(replay.firings)
    return Answer(
        windows=by_window(
            {
                "key": row.key[0],
                **edges(row.window),
                **_content(row.members),
                "late_accepted": row.late_accepted,
                "firings": row.firings,
                "state": row.state,
                "fired_at": row.fired_at_ms,
                "closed_at": row.closed_at_ms,
            }
            for row in tables.windows()
        ),
        open=by_window(
            {
                "key": row.key[0],
                **edges(row.window),
                **_content(row.members),
            }
            for row in replay.open_at_end
            if not row.end_passed
        ),
        late=by_id(
            {
                "id": row.record.payload["id"],
                "reason": row.reason,
                "watermark": None if row.watermark_ms == MIN_WATERMARK else row.watermark_ms,
                "late_by": row.late_by_ms,
                "start": row.slot_start_ms,
                "missed": row.missed_windows,
            }
            for row in tables.quarantine()
        ),
        firings=in_order(
            (
                _place(firing, stream.spec),
                {
                    "key": firing.key[0],
                    **edges(firing.window),
                    **_content(firing.members),
                    **numbers[firing.seq],
                    "timing": firing.timing.value,
                    "fired_at": firing.origin.at_ms,
                    "watermark": firing.watermark_ms,
                },
            )
            for firing in replay.firings
        ),
        final_watermark=replay.final_watermark_ms,
        violations=replay.violations,
    )


def numbers_of(firings: Iterable[Firing]) -> dict[int, dict[str, int]]:
    """By `seq`: the number of a firing in its window, and the one before if it is superseded.

    `supersedes` is 0 if it is not: some of its records are not in the firing, or there is none.
    """
    last: dict[Any, Firing] = {}
    found: dict[int, dict[str, int]] = {}
    for firing in firings:
        before = last.get((firing.key, firing.window))
        number = found[before.seq]["firing"] if before else 0
        replaces = before is not None and before.seq in firing.supersedes
        found[firing.seq] = {"firing": number + 1, "supersedes": number if replaces else 0}
        last[firing.key, firing.window] = firing
    return found


def _place(firing: Firing, spec: PipelineSpec) -> tuple[Any, ...]:
    """Where a firing stands in Flink's order; those that stand at one place have no order."""
    if firing.timer_ms is not None:
        return (firing.origin, firing.timer_ms)
    if isinstance(spec, ResultsSpec):
        return (firing.timing, firing.seq)  # the results before have an order
    cause = firing.origin.after_record
    sequence = cause.sequence if spec.source.sequence is not None else 0
    # a record fires its newest window first; of sessions it fires one, after those of shorter gaps
    last = cause.gap_ms if isinstance(spec.window, Session) else -firing.window.end_ms
    if isinstance(spec.window, Session) and spec.window.gap_ms is not None:
        last = 0
    return (firing.timing, cause.arrival_ms, sequence, cause.ts_ms, last)


def edges(window: TimeWindow) -> dict[str, int]:
    """Where a window starts and ends; all of time is the years that tables can hold."""
    if window == GLOBAL_WINDOW:
        return {"start": EVERYTHING.start_ms, "end": EVERYTHING.end_ms - 1}
    return {"start": window.start_ms, "end": window.end_ms}


def _content(members: Sequence[Record]) -> dict[str, Any]:
    return {
        "count": len(members),
        "sum": sum(record.payload["value"] for record in members),
        "ids": sorted(record.payload["id"] for record in members),
    }


def by_window(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of windows, in an order."""
    return sorted(rows, key=lambda row: (row["start"], row["end"], row["key"]))


def by_id(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of records, in an order."""
    return sorted(rows, key=lambda row: row["id"])


def in_order(ordered: Iterable[tuple[Any, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows as ordered; neighbours whose places are equal have no order: they go by content.

    Nor have firings of several records at one position, with one event time: they go by windows,
    which the last part of a place gives.
    """
    rows = []
    for _, at_once in groupby(ordered, key=lambda pair: pair[0][:-1]):
        by_window = sorted(at_once, key=lambda pair: pair[0][-1])
        for _, tied in groupby(by_window, key=lambda pair: pair[0]):
            rows += sorted((row for _, row in tied), key=lambda row: (row["key"], row.get("ids")))
    return rows
