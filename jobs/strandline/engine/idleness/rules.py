"""The idleness settings of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import WIDEST_MS
from strandline.model.watermarks import Ticks
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import NoWatermarks


@dataclass(frozen=True)
class IdlenessRules:
    """The idleness settings of a pipeline whose channels can go idle.

    Attributes:
        axis: the axis of instants.
        ticks: the ticks on which idleness is checked.
        timeout_ms: how long after the tick of its last record a channel becomes idle; `WIDEST_MS`:
            never.
        splits: whether the channels are splits of one source, instead of inputs of a valve.
        offers_on_ticks: whether a tick emits the largest watermark that earlier records offered.
        lag_ms: the distance of the watermark from the clock; None: it follows the records.
        offers_at_once: whether the watermark of a record is emitted at once, without a tick.
    """

    axis: Axis
    ticks: Ticks
    timeout_ms: int
    splits: bool
    offers_on_ticks: bool
    lag_ms: int | None
    offers_at_once: bool = False

    @classmethod
    def of(cls, spec: PipelineSpec, axis: Axis) -> IdlenessRules:
        """The settings of a pipeline, or of one of two inputs.

        A channel is idle if it is silent for *longer* than the idleness set in the pipeline's file.
        The first silent tick starts the timer. So the time from the tick of the last record is one
        tick, plus the idleness in whole ticks, plus one more. Flink: `IdlenessTimer`.

        One of two inputs may have channels that never go idle. If its records emit at once it has
        no ticks: its first tick is later than all instants.
        """
        watermark, timeout_ms = spec.watermark, WIDEST_MS
        ticks = axis.ticks or Ticks(axis.start_ms, WIDEST_MS)
        if watermark.idleness_in_effect and watermark.idleness is not None:
            silent_ticks = 1 + watermark.idleness // ticks.interval_ms + 1
            timeout_ms = min(silent_ticks * ticks.interval_ms, WIDEST_MS)
        by_clock = watermark.goes_by_the_clock
        by_records = not by_clock and not isinstance(watermark, NoWatermarks)
        return cls(
            axis=axis,
            ticks=ticks,
            timeout_ms=timeout_ms,
            splits=watermark.combine == "splits",
            offers_on_ticks=bool(axis.interval_ms) and by_records,
            lag_ms=(watermark.lag_ms or 0) if by_clock else None,
            offers_at_once=axis.interval_ms is None,
        )

    @property
    def first_tick_ms(self) -> int:
        """The first tick of all."""
        return self.ticks.start_ms + self.ticks.interval_ms

    @property
    def main_output_idle_from_ms(self) -> int:
        """The tick from which the main output of a source of splits is idle.

        The main output never receives a record. Flink: `ProgressiveTimestampsAndWatermarks`.
        """
        return self.ticks.start_ms + self.timeout_ms
