"""The loss curve, record by record: how late each record is for its newest window with bound 0."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from strandline.model.lateness import MIN_WATERMARK
from strandline.model.loss_curve import LossCurve, curve_of
from strandline.reference.answer import Origin
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
    is_counted: Callable[[Record], bool] = lambda record: True,
) -> LossCurve:
    """The number of records lost at each sum of bound and allowed lateness.

    A record is lost at a sum if the watermark just before the record, computed with bound 0, is at
    least the last millisecond of the record's newest window plus the sum.

    Args:
        spec: the pipeline, with windows on a grid without gaps; its own bound is ignored.
        records: its well-formed records.
        totals_ms: bound plus allowed lateness, ascending.
        start_ms: when the job's clock started.
        horizon_ms: only records and ticks before it count; None: all.
        is_counted: whether a record is counted; others still move the watermark.

    Raises:
        TypeError: the windows are sessions, global or counting windows.
    """
    job = _LatenessJob(spec.without_bound, start_ms, is_counted)
    job.run(records, horizon_ms=horizon_ms)
    kept_from = [0] * (len(totals_ms) + 1)
    for late_by_ms in job.lateness_ms:
        kept_from[bisect_right(totals_ms, late_by_ms)] += 1
    return curve_of(totals_ms, kept_from)


class _LatenessJob(Job):
    """Collects for each record the watermark minus its newest window's max timestamp, in ms."""

    def __init__(
        self, spec: PipelineSpec, start_ms: int, is_counted: Callable[[Record], bool]
    ) -> None:
        super().__init__(spec.pipeline, {"": input_of(spec.source, spec.watermark, start_ms)})
        if not isinstance(spec.window, GridWindow):
            msg = f"{spec.pipeline}: a loss curve needs tumbling, sliding or cumulative windows"
            raise TypeError(msg)
        self._is_counted = is_counted
        self._assigner = spec.window.assigner
        self._watermark_ms = MIN_WATERMARK
        self.lateness_ms: list[int] = []

    def process(self, record: Record, origin: Origin) -> None:
        """Collect the lateness of a record in ms; below 0: no bound and no lateness is needed."""
        if not self._is_counted(record):
            return
        newest = self._assigner.windows_of(record.ts_ms)[0]
        self.lateness_ms.append(self._watermark_ms - newest.max_timestamp_ms)

    def advance(self, name: str, watermark_ms: int, origin: Origin) -> None:
        """Process a higher watermark."""
        self._watermark_ms = watermark_ms
