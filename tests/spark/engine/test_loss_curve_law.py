"""The loss curve on an engine is the one that records one by one have."""

from __future__ import annotations

from functools import partial

import pytest
from engine_under_test import Engine, each
from law_streams import ON_A_GRID, drawn_streams, rows
from strategies import Stream

from strandline.engine.losses.losses import losses_of
from strandline.engine.losses.reached import Offer, observe_without_bound, reached
from strandline.engine.position.grid import Grid
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.model.loss_curve import LossCurve
from strandline.reference.loss_curve import loss_curve
from strandline.reference.records import Record

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

ROWS = rows(
    "idleness",
    "combine",
    "sequence",
    window=ON_A_GRID,
    strategy=("bounded_out_of_orderness", "punctuated", "time_lag"),
    emit=("per_record", "7ms"),
    lateness_ms=(0, 5, 25),
    range=("everything", "a range"),
)


def offer_of(stream: Stream, of_range: str) -> Offer:
    """Totals up to some steps, for all windows or for those in the middle.

    The unit divides the step, and not always the size.
    """
    step_ms = Grid.of(stream.spec).step_ms
    unit_ms = next(ms for ms in range(max(step_ms // 3, 1), step_ms + 1) if step_ms % ms == 0)
    totals = {0, unit_ms, step_ms, 3 * step_ms, stream.spec.total_lateness_ms}
    within, ts_ms = EVERYTHING, sorted(record.ts_ms for record in stream.records)
    if of_range == "a range" and ts_ms:
        within = TimeRange(ts_ms[len(ts_ms) // 3], ts_ms[2 * len(ts_ms) // 3] + 1)
    return Offer(stream.spec, within, unit_ms, tuple(sorted(totals)))


def in_range(offer: Offer, record: Record) -> bool:
    return int(offer.grid.newest_starts(record.ts_ms)) in offer.within


def test_the_engine_loses_at_each_total_as_many_records_as_the_reference(session):
    streams = drawn_streams(ROWS)
    ranges = {id(stream): row["range"] for stream, row in zip(streams, ROWS, strict=True)}

    def by_engine(stream: Stream) -> LossCurve | None:
        if getattr(stream.spec.window, "every", 0) > getattr(stream.spec.window, "sliding", 0):
            return None  # its windows leave gaps
        offer, engine = offer_of(stream, ranges[id(stream)]), Engine.on(session, stream)
        horizon_ms = stream.horizon_ms
        history = observe_without_bound(engine.known, offer, engine.axis, horizon_ms)
        closes = reached(history, offer, horizon_ms)
        return losses_of(engine.records, history, offer, closes, horizon_ms).curve

    judged = 0
    for stream, found in each(streams, by_engine):
        if found is None:
            continue
        offer = offer_of(stream, ranges[id(stream)])
        known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
        expected = loss_curve(
            stream.spec,
            known,
            offer.totals_ms,
            start_ms=stream.start_ms,
            horizon_ms=stream.horizon_ms,
            is_counted=partial(in_range, offer),
        )
        assert found == expected, stream
        judged += 0 < expected.lost[0] < expected.records
    assert judged > len(streams) / 3
