"""The observations below a horizon: which of them are new, and those of each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected
from strandline.engine.history.history import History
from strandline.engine.history.observed import ObservedDay, observe_days
from strandline.engine.idleness.source import Source
from strandline.engine.position.axis import Axis
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.timeline import Fresh, Observed, empty_cells
from strandline.engine.watermark.by_steps import KnownSteps
from strandline.engine.watermark.cells import observe
from strandline.lake.landing.landing import Landing
from strandline.lake.publish.staging import Staging
from strandline.lake.timeline.staged_cells import StagedCells
from strandline.lake.timeline.timeline import read_steps
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.spec.pipeline import channel_of

_AT_ONCE = 1_000_000
"""The largest number of cells on the driver; so many rows cannot have more cells."""


@dataclass(frozen=True)
class Observation:
    """The observations below a horizon.

    Attributes:
        history: the history of all arrival days below the horizon.
        new_days: the whole days that the timeline lacks, or has with other rows.
        partial_days: the day of the horizon, days before it that are not ready, and None for rows
            without a day; they do not enter the timeline yet.
        fresh: the new observations of these days.
        inputs: the new observations of each source, by its name (`Landing.inputs`).
        observed_steps: where channels can go idle: the watermark's steps on these days.
        status: the landing status: what has landed, compared with what was observed.
        violations: records of these days that broke the order which the watermark assumes (see
            `engine.violations`); None: they are not counted.
        violations_before: the number of such records on the days in the timeline.
    """

    history: History
    new_days: list[date]
    partial_days: list[date | None]
    fresh: Fresh
    inputs: Mapping[str, ObservedInput]
    observed_steps: list[ObservedDay]
    status: LandingStatus
    violations: pd.DataFrame | None = None
    violations_before: int = 0

    @property
    def all_violations(self) -> int | None:
        """The number of violations below the horizon; None: they are not counted."""
        if self.violations is None:
            return None
        return self.violations_before + int(self.violations["violations"].sum())

    @property
    def axes(self) -> dict[str, Axis]:
        """The axis of instants of each source, by its name; a single source has the name ""."""
        return {name: history.axis for name, history in self.history.of_sides.items()}

    @property
    def days_to_recompute(self) -> list[date]:
        """The days below the horizon that have changed, or were missed before the frontier."""
        return self.status.to_recompute_among(self.new_days)

    @property
    def rows_of_days(self) -> dict[date | None, int]:
        """The number of rows of each newly observed day; None: rows without a day."""
        counted = Counter[date | None](sums_by_day(self.fresh.day_map))
        counted.update(sums_by_day(self.fresh.malformed))
        return dict(counted)


def sums_by_day(counted: pd.DataFrame) -> dict[Any, int]:
    """The number of records of each arrival day; None: records without one."""
    days = counted["arrival_date"].astype(object).where(counted["arrival_date"].notna(), None)
    sums = Counter[Any]()
    for day, records in zip(days, counted["records"], strict=True):
        sums[day] += int(records)
    return dict(sums)


@dataclass(frozen=True)
class DaysToObserve:
    """The arrival days to observe now.

    Attributes:
        whole: days that have ended by the horizon, ascending.
        partial: the day of the horizon, days before it that are not ready, and None for rows
            without a day.
        horizon_ms: the horizon.
    """

    whole: list[date]
    partial: list[date | None]
    horizon_ms: int

    @classmethod
    def of(cls, landing: Landing, status: LandingStatus, horizon_ms: int) -> DaysToObserve:
        """The days that the timeline lacks, or has with other rows."""
        dated = [day for day in landing.days if day is not None]
        end_ms = min(horizon_ms, status.ready_ms)  # a day that is not ready is not over
        partial: list[date | None] = [
            day
            for day in dated
            if midnight_of(day) < horizon_ms
            and end_ms < midnight_of(day) + DAY_MS
            and (day not in status.observed or horizon_ms < midnight_of(day) + DAY_MS)
        ]
        if None in landing.days:
            partial.append(None)
        return cls(status.days_to_observe(landing.spec, horizon_ms), partial, horizon_ms)

    @property
    def every(self) -> list[date | None]:
        """All days, whole and partial."""
        return [*self.whole, *self.partial]

    @property
    def first_ms(self) -> int:
        """The midnight of the first whole day; the horizon, if there is none."""
        return midnight_of(self.whole[0]) if self.whole else self.horizon_ms


@dataclass(frozen=True)
class ObservedInput:
    """The new observations of one source.

    Attributes:
        records: its rows of the days, as far as they are known.
        fresh: the cells of these rows, channels prefixed with the name of the source.
        steps: the stored steps of its channels; None: its channels cannot go idle.
        observed_steps: the steps on the days observed now.
    """

    records: DataFrame
    fresh: Fresh
    steps: KnownSteps | None = None
    observed_steps: list[ObservedDay] = field(default_factory=list)


def observe_input(
    landing: Landing,
    staging: Staging,
    axis: Axis,
    days: DaysToObserve,
    status: LandingStatus,
    *,
    fingerprint: str,
    name: str = "",
    own_watermark: bool = True,
) -> ObservedInput:
    """Observe some days of one source.

    Args:
        landing: its landing.
        staging: the staging for cells that are too many for the driver.
        axis: its axis of instants.
        days: the days.
        status: the landing status.
        fingerprint: the fingerprint to store the days under.
        name: the name of the source; empty: it is the only one.
        own_watermark: whether it has its own watermark, instead of one valve for both inputs.
    """
    spec = landing.spec
    records = known_rows(landing, days.every, days.horizon_ms)
    fresh = _cells_of(records, landing, axis, staging, days, status, name)
    if not (spec.watermark.idleness_in_effect and own_watermark):
        return ObservedInput(records, fresh)
    source = Source(spec, axis)
    kept = read_steps(
        status.timeline, source, before_ms=days.first_ms, under=fingerprint, name=name
    )
    observed_steps = observe_days(source, {name: records}, fresh, kept, days.horizon_ms, name=name)
    return ObservedInput(records, fresh, kept, list(observed_steps))


def known_rows(landing: Landing, days: Sequence[date | None], horizon_ms: int) -> DataFrame:
    """The rows of some days that are known at the horizon, duplicates marked.

    On the day of the horizon these are the arrivals before it. A row in the wrong partition, or
    without an arrival, is known with its partition.
    """
    known: Column = (F.col(c.ARRIVAL) < horizon_ms) | ~lies_in_its_day()
    landed = landing.records()
    return with_duplicates(landed, landing.spec, days, landing.every_day).where(known)


def _cells_of(
    records: DataFrame,
    landing: Landing,
    axis: Axis,
    staging: Staging,
    days: DaysToObserve,
    status: LandingStatus,
    name: str,
) -> Fresh:
    """The cells of the days; if there are many rows, staged unless the cells are few."""
    if not days.every:
        return Observed(empty_cells())
    cells = observe(records, landing.spec, axis)
    if name:
        cells = cells.withColumn("channel", F.concat(F.lit(channel_of(name, "")), "channel"))
    if _is_much(status, days):
        return StagedCells.written(cells, staging, at_hand=_AT_ONCE)
    return Observed(collected(cells))


def _is_much(status: LandingStatus, days: DaysToObserve) -> bool:
    """Whether the days have too many rows for the driver to receive all their cells."""
    landed = [
        status.landed[day].rows for day in days.every if day is not None and day in status.landed
    ]
    return sum(rows for rows in landed if rows is not None) > _AT_ONCE
