"""The loss curve record by record: how far the watermark is past the end of a record's window."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from strandline.model.lateness import MIN_WATERMARK
from strandline.model.loss_curve import LossCurve, curve_of
from strandline.reference.answer import Moment
from strandline.reference.job import Job
from strandline.reference.records import Record
from strandline.reference.replay import input_of
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import GridWindow


def loss_curve(
    spec: PipelineSpec,
    records: Iterable[Record],
    totals_ms: Sequence[int],
    *,
    start_ms: int,
    horizon_ms: int | None = None,
    counts: Callable[[Record], bool] = lambda record: True,
) -> LossCurve:
    """How many records each sum of bound and allowed lateness loses.

    A record is lost where the watermark without a bound, as it was just before the record, is at or
    past the last millisecond of its newest window and the sum.

    Args:
        spec: the pipeline, with windows on a grid without gaps; its own bound counts for nothing.
        records: its well-formed records.
        totals_ms: bound plus allowed lateness, ascending.
        start_ms: when the job's clock started.
        horizon_ms: records and ticks before it are known; None: all.
        counts: whether a record is counted; one that is not still moves the watermark.

    Raises:
        TypeError: its windows lie on no grid.
    """
    job = _PastTheEnd(spec.without_bound, start_ms, counts)
    job.run(
        records,
        sequenced=spec.source.sequence is not None,
        start_ms=start_ms,
        horizon_ms=horizon_ms,
        end_of_input=False,
    )
    kept_from = [0] * (len(totals_ms) + 1)
    for past_end_ms in job.past_end_ms:
        kept_from[bisect_right(totals_ms, past_end_ms)] += 1
    return curve_of(totals_ms, kept_from)


class _PastTheEnd(Job):
    """Notes of each record how far the watermark was past the end of its newest window."""

    def __init__(self, spec: PipelineSpec, start_ms: int, counts: Callable[[Record], bool]) -> None:
        super().__init__(spec.pipeline, {"": input_of(spec, start_ms)})
        if not isinstance(spec.window, GridWindow):
            msg = f"the windows of {spec.pipeline} lie on no grid"
            raise TypeError(msg)
        self._counts = counts
        self._assigner = spec.window.assigner
        self._watermark_ms = MIN_WATERMARK
        self.past_end_ms: list[int] = []

    def process(self, record: Record, moment: Moment) -> None:
        """Note it; before there is a watermark it lies before every end."""
        if not self._counts(record):
            return
        newest = self._assigner.windows_of(record.ts_ms)[0]
        self.past_end_ms.append(self._watermark_ms - newest.max_timestamp_ms)

    def advance(self, name: str, watermark_ms: int, moment: Moment) -> None:
        """Take in a higher watermark."""
        self._watermark_ms = watermark_ms
