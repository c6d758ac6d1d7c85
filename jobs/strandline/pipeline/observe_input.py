"""What is observed now of one source: its rows, their cells and, where it idles, its steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.idleness.kept_steps import KnownSteps
from strandline.engine.past.observed import ObservedDay, cells_of, observe_days
from strandline.engine.position.axis import Axis
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.timeline import Fresh, Observed, empty_cells
from strandline.engine.watermark.cells import observe
from strandline.lake.landing import Landing
from strandline.lake.staged_cells import StagedCells
from strandline.lake.staging import Staging
from strandline.lake.timeline import read_steps
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.pipeline.world import World

_AT_ONCE = 1_000_000
"""So many cells, at most, are held by the driver at once; so many rows have no more of them."""


@dataclass(frozen=True)
class DaysToObserve:
    """The arrival days that are to be observed now.

    Attributes:
        whole: those over at the horizon, in their order.
        partial: the day that the horizon lies in, those before it that are not ready, and None for
            rows that have no day.
        horizon_ms: the horizon.
    """

    whole: list[date]
    partial: list[date | None]
    horizon_ms: int

    @classmethod
    def of(cls, landing: Landing, world: World, horizon_ms: int) -> DaysToObserve:
        """Those that the timeline lacks, or has as they no longer are."""
        dated = [day for day in landing.days if day is not None]
        end_ms = min(horizon_ms, world.ready_ms)  # a day that is not ready is not over
        partial: list[date | None] = [
            day
            for day in dated
            if midnight_of(day) < horizon_ms
            and end_ms < midnight_of(day) + DAY_MS
            and (day not in world.observed or horizon_ms < midnight_of(day) + DAY_MS)
        ]
        if None in landing.days:
            partial.append(None)
        return cls(world.days_to_observe(landing.spec, horizon_ms), partial, horizon_ms)

    @property
    def every(self) -> list[date | None]:
        """All of them."""
        return [*self.whole, *self.partial]

    @property
    def first_ms(self) -> int:
        """The midnight of the first whole one; the horizon, where there is none."""
        return midnight_of(self.whole[0]) if self.whole else self.horizon_ms


@dataclass(frozen=True)
class ObservedInput:
    """What was observed now of one source.

    Attributes:
        records: its rows of the days, as far as they are known.
        fresh: their cells.
        steps: where its channels can go idle: the steps that are kept; None: they cannot.
        followed: and those of the days.
    """

    records: DataFrame
    fresh: Fresh
    steps: KnownSteps | None = None
    followed: list[ObservedDay] = field(default_factory=list)


def observe_input(
    landing: Landing,
    staging: Staging,
    axis: Axis,
    days: DaysToObserve,
    world: World,
    *,
    fingerprint: str,
    name: str = "",
    followed_alone: bool = True,
) -> ObservedInput:
    """Observe some days of one source.

    Args:
        landing: its table.
        staging: where cells are staged that are too many for the driver.
        axis: of its instants.
        days: the days.
        world: what has landed.
        fingerprint: that the days are observed under.
        name: of the source among two; empty: it is the only one.
        followed_alone: whether its watermark is one of its own, and not that of a valve over two.
    """
    spec = landing.spec
    records = _records_of(landing, axis, days)
    fresh = _cells_of(records, landing, axis, staging, days, world)
    if not (spec.watermark.idleness_in_effect and followed_alone):
        return ObservedInput(records, fresh)
    kept = read_steps(
        world.timeline,
        axis,
        before_ms=days.first_ms,
        under=fingerprint,
        name=name,
        nothing=KnownSteps.none(spec, axis),
    )
    followed = observe_days(records, spec, axis, fresh, kept, days.horizon_ms, name=name)
    return ObservedInput(records, fresh, kept, list(followed))


def _records_of(landing: Landing, axis: Axis, days: DaysToObserve) -> DataFrame:
    """The rows of the days that are known at the horizon.

    Of the day that it lies in these are the arrivals before it. A row that lies in the wrong
    partition, or has no arrival, is known with its partition.
    """
    known: Column = (F.col(c.ARRIVAL) < days.horizon_ms) | ~lies_in_its_day()
    landed = landing.records(axis)
    return with_duplicates(landed, landing.spec, days.every, landing.every_day).where(known)


def _cells_of(
    records: DataFrame,
    landing: Landing,
    axis: Axis,
    staging: Staging,
    days: DaysToObserve,
    world: World,
) -> Fresh:
    """The cells of the days: of many rows in staging, unless they turn out to be few."""
    if not days.every:
        return Observed(empty_cells())
    if _is_much(world, days):
        cells = observe(records, landing.spec, axis)
        return StagedCells.written(cells, axis, staging, at_hand=_AT_ONCE)
    return Observed(cells_of(records, landing.spec, axis))


def _is_much(world: World, days: DaysToObserve) -> bool:
    """Whether the rows of the days are more than the driver should count cells of at once."""
    landed = [
        world.landed[day].rows for day in days.every if day is not None and day in world.landed
    ]
    return sum(rows for rows in landed if rows is not None) > _AT_ONCE
