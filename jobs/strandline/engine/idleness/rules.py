"""What a pipeline says about the idleness of its channels."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.position.axis import Axis
from strandline.model.watermarks import Ticks
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import NoWatermarks, Punctuated

LONGEST_MS = 400_000_000_000_000
"""More than the years 0001 to 9999: who may be silent for so long never goes idle."""


@dataclass(frozen=True)
class IdlenessRules:
    """The rules of a pipeline whose channels can go idle.

    Attributes:
        axis: of the instants.
        ticks: on which idleness is judged.
        timeout_ms: how long after the tick that has shown its last record a channel is idle.
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
        """Those of a pipeline; idle is who is silent for *more* than its `idleness`.

        The first silent tick starts the timer, so that one tick and the idleness, in whole ticks
        and one more, pass after the tick that has shown the last record. Flink: `IdlenessTimer`.

        Raises:
            TypeError: the idleness of the pipeline is not in effect.
        """
        watermark, ticks = spec.watermark, axis.ticks
        if ticks is None or watermark.idleness is None:
            msg = f"{spec.pipeline}: no channel goes idle"
            raise TypeError(msg)
        silent_ticks = 1 + watermark.idleness // ticks.interval_ms + 1
        return cls(
            axis=axis,
            ticks=ticks,
            timeout_ms=min(silent_ticks * ticks.interval_ms, LONGEST_MS),
            splits=watermark.combine == "splits",
            offers_on_ticks=not isinstance(watermark, Punctuated | NoWatermarks),
            lag_ms=(watermark.lag_ms or 0) if watermark.goes_by_the_clock else None,
            offers_at_once=isinstance(watermark, Punctuated),
        )

    @classmethod
    def beside_another(cls, spec: PipelineSpec, axis: Axis) -> IdlenessRules:
        """Those of one of two inputs, whose own channels may be such that none ever goes idle.

        Where its records emit at once it has no ticks: the first one is later than all instants.
        """
        if spec.watermark.idleness_in_effect:
            return cls.of(spec, axis)
        ticks = axis.ticks
        return cls(
            axis=axis,
            ticks=Ticks(axis.start_ms, LONGEST_MS) if ticks is None else ticks,
            timeout_ms=LONGEST_MS,
            splits=spec.watermark.combine == "splits",
            offers_on_ticks=bool(axis.interval_ms) and not spec.watermark.goes_by_the_clock,
            lag_ms=(spec.watermark.lag_ms or 0) if spec.watermark.goes_by_the_clock else None,
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
