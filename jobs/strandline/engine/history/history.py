"""Everything observed below a horizon, in the form that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from strandline.engine.history.days_to_read import DaysToRead
from strandline.engine.idleness.kept_steps import KeptSteps
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import Timeline
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark.crossings import Crossings
from strandline.engine.watermark.probe_order import ProbeOrder, probe_order
from strandline.engine.watermark.retired import with_ends
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class History:
    """Everything observed of a pipeline below a horizon.

    Attributes:
        spec: the pipeline.
        axis: the axis of instants.
        timeline: the observations of the arrival days below the horizon.
        crossings: when the combined watermark reached thresholds.
        upstream: the pipeline whose watermark is used, if the records are results of its windows.
    """

    spec: PipelineSpec
    axis: Axis
    timeline: Timeline
    crossings: Crossings
    upstream: Upstream | None = None

    @property
    def of_sides(self) -> Mapping[str, History]:
        """The history of each source by the name of its side; of a single source by the name ""."""
        return {"": self}

    @cached_property
    def grid(self) -> Grid:
        """The grid of the pipeline's windows."""
        return Grid.of(self.spec)

    @cached_property
    def days(self) -> DaysToRead:
        """Which arrival days a question needs."""
        return DaysToRead(self.timeline, self.spec)

    def probed_in(self, order: ProbeOrder) -> History:
        """The same history with the channels in another probe order."""
        return replace(self, crossings=self.crossings.in_order(order))


@dataclass(frozen=True)
class Upstream:
    """The pipeline whose results are the records of another one.

    Attributes:
        records: its landing as `read_records` reads it, at least of the days of its history.
        history: its history below the horizon, with its channels in probe order.
    """

    records: DataFrame
    history: History


def history_of(
    timeline: Timeline,
    spec: PipelineSpec,
    axis: Axis,
    *,
    channels: tuple[str, ...] | None = None,
    steps: KeptSteps | None = None,
) -> History:
    """The history of a timeline.

    Args:
        timeline: the observations below a horizon.
        spec: the pipeline.
        axis: the axis of instants.
        channels: the discovered channels in probe order; None: not known yet.
        steps: the steps of the combined watermark; None: channels cannot go idle.
    """
    order = probe_order(timeline, spec, axis, channels)
    crossings: Crossings
    if steps is not None:
        crossings = StepCrossings(steps, order=order)
    elif spec.watermark.goes_by_the_clock:
        crossings = StepCrossings.by_clock(spec, axis, order)
    else:
        crossings = RecordCrossings(with_ends(timeline, spec, axis), spec, axis, order=order)
    return History(spec, axis, timeline, crossings)
