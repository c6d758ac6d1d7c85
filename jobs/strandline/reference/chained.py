"""Windows over the results of other windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.model.lateness import MAX_WATERMARK
from strandline.reference.answer import Emission, Firing, Origin, Replay
from strandline.reference.records import Record
from strandline.reference.replay import WindowStage, refuse_endless_firing
from strandline.spec.chained import ChainedSpec


def replay_chained(
    spec: ChainedSpec, upstream: Replay, record_of: Callable[[Firing, Record], Record]
) -> Replay:
    """The results of a Flink job that windows the results of other windows, in the same job.

    A result comes before the watermark that fired it, so it is on time. The result of a firing by a
    late record comes behind the watermark, so the allowed lateness here decides.

    Args:
        spec: the second windows.
        upstream: the answer of the first windows.
        record_of: completes a result's record: given its firing, and a record with its arrival,
            event time, id and sequence, returns the record with key and payload.

    Raises:
        InputError: the input has ended where Flink would fire for ever.
    """
    ended = any(advance.watermark_ms == MAX_WATERMARK for advance in upstream.watermarks)
    refuse_endless_firing(spec, end_of_input=ended)
    results = upstream.firings if spec.source.table == "firings" else upstream.in_force
    stage = WindowStage(spec)
    for firing, watermark_ms, origin in _in_order(upstream, results):
        if firing is None:
            stage.advance(watermark_ms, origin)
        else:
            result = Record(
                arrival_ms=origin.at_ms,
                ts_ms=firing.window.max_timestamp_ms,
                record_id=str(firing.seq),
                sequence=firing.seq,
            )
            stage.process(record_of(firing, result), origin)
    return stage.answer(upstream.valve_status)


_Event = tuple[Firing | None, int, Origin]
"""A result, or None for a forwarded watermark; the watermark in ms at this event; its origin."""


def _in_order(upstream: Replay, results: tuple[Firing, ...]) -> Iterator[_Event]:
    """Results and watermarks in the order in which the first windows emit them."""
    advances = list(upstream.watermarks)
    place = 0
    for firing in results:
        while place < len(advances) and _comes_before(advances[place], firing):
            yield None, advances[place].watermark_ms, advances[place].origin
            place += 1
        yield firing, firing.watermark_ms, firing.origin
    for advance in advances[place:]:
        yield None, advance.watermark_ms, advance.origin


def _comes_before(advance: Emission, firing: Firing) -> bool:
    """Whether the first windows forward a watermark before they emit the result of a firing.

    A timer's result is emitted just before the watermark that fired it, a late record's result
    after the watermark at its arrival.
    """
    if firing.timer_ms is None:  # a record fired it
        return advance.watermark_ms <= firing.watermark_ms
    return advance.watermark_ms < firing.watermark_ms
