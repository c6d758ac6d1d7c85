"""What a pipeline says about the idleness of its channels."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import WIDEST_MS
from strandline.model.watermarks import Ticks
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import NoWatermarks


@dataclass(frozen=True)
class IdlenessRules:
    """The rules of a pipeline whose channels can go idle.

    Attributes:
        axis: of the instants.
        ticks: on which idleness is judged.
        timeout_ms: how long after the tick that has shown its last record a channel is idle;
            `WIDEST_MS`: never.
        splits: whether the channels are the splits of one source, and not the inputs of a valve.
        offers_on_ticks: whether a tick emits what the records before it offer.
        lag_ms: by how much the watermark is behind the clock; None: it goes by the records.
        offers_at_once: whether a record's offer is visible at once.
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
        """Those of a pipeline, or of one of two inputs; idle is who is silent for *more* than said.

        The first silent tick starts the timer, so that one tick and the idleness, in whole ticks
        and one more, pass after the tick that has shown the last record. Flink: `IdlenessTimer`.

        Of two inputs one may have channels none of which ever goes idle. Where its records emit at
        once it has no ticks: the first one is later than all instants.
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
        """The tick from which on the main output of a source of splits is idle.

        It never sees a record. Flink: `ProgressiveTimestampsAndWatermarks`.
        """
        return self.ticks.start_ms + self.timeout_ms
