"""Windows over the results of other windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.model.lateness import MAX_WATERMARK
from strandline.reference.answer import Emission, Firing, Replay
from strandline.reference.records import Record
from strandline.reference.replay import WindowStage, refuse_endless_firing
from strandline.spec.chained import ChainedSpec


def replay_chained(
    spec: ChainedSpec, upstream: Replay, record_of: Callable[[Firing, Record], Record]
) -> Replay:
    """The results of a Flink job that windows the results of other windows, in the same job.

    A result is emitted before the watermark that fired it, so it is on time. The result of a firing
    by a late record comes after the watermark has passed its event time, so the allowed lateness of
    the second windows decides whether it is accepted.

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
    for event in _in_order(upstream, results):
        if isinstance(event, Emission):
            stage.advance(event.watermark_ms, event.origin)
        else:
            result = Record(
                arrival_ms=event.origin.at_ms,
                ts_ms=event.window.max_timestamp_ms,
                record_id=str(event.seq),
                sequence=event.seq,
            )
            stage.process(record_of(event, result), event.origin)
    return stage.answer(upstream.valve_status)


def _in_order(upstream: Replay, results: tuple[Firing, ...]) -> Iterator[Firing | Emission]:
    """Results and watermarks in the order in which the first windows emit them."""
    advances = list(upstream.watermarks)
    place = 0
    for firing in results:
        while place < len(advances) and _comes_before(advances[place], firing):
            yield advances[place]
            place += 1
        yield firing
    yield from advances[place:]


def _comes_before(advance: Emission, firing: Firing) -> bool:
    """Whether the first windows forward a watermark before they emit the result of a firing.

    A timer's result is emitted just before the watermark that fired it, a late record's result
    after the watermark at its arrival.
    """
    if firing.timer_ms is None:  # a record fired it
        return advance.watermark_ms <= firing.watermark_ms
    return advance.watermark_ms < firing.watermark_ms
