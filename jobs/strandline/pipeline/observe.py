"""observe: what the arrivals below a horizon say, once for each whole day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import NoReturn

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.past.first_records import in_probe_order
from strandline.engine.past.history import Upstream
from strandline.engine.past.observed import (
    KnownSteps,
    ObservedDay,
    cells_of,
    observe_days,
    put_together,
)
from strandline.engine.past.violations import violations
from strandline.engine.position.axis import Axis
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.timeline import Fresh, Observed, Together, empty_cells
from strandline.engine.values.forwarded import history_behind
from strandline.engine.watermark.cells import observe
from strandline.errors import InputError
from strandline.lake.landing import Landing
from strandline.lake.ledger import Ledger
from strandline.lake.results_landing import ResultsLanding
from strandline.lake.staged_cells import StagedCells
from strandline.lake.staging import Staging
from strandline.lake.timeline import StoredTimeline, read_steps, read_violations
from strandline.lake.timeline_rows import TimelineTable
from strandline.model.intervals import DAY_MS, midnight_of, text_of
from strandline.pipeline.observation import Observation
from strandline.pipeline.world import World, world_of
from strandline.spec import PipelineSpec

_AT_ONCE = 1_000_000
"""The cells of so many rows, at most, are held by the driver at once."""


@dataclass(frozen=True)
class _Days:
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
    def of(cls, landing: Landing, world: World, horizon_ms: int) -> _Days:
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


def observe_landing(
    landing: Landing, staging: Staging, axis: Axis, horizon_ms: int, world: World
) -> Observation:
    """Observe the days below a horizon that the timeline lacks, or has as they no longer are.

    Where a day follows from the one before (`days_follow_each_other`), all days from the first one
    of these on are observed.

    Raises:
        InputError: records break an order that the watermark assumes, with `on_violation: fail`; or
            a day has to be observed again whose rows have gone.
    """
    spec = landing.spec
    days = _Days.of(landing, world, horizon_ms)
    records = _records_of(landing, axis, days)
    fresh = _cells_of(records, landing, axis, staging, days, world)
    table = world.timeline
    steps, followed = _steps_of(records, table, spec, axis, fresh, days)
    timeline = Together(_known(table, spec, days), fresh)
    if isinstance(landing, ResultsLanding):
        upstream = _upstream_of(landing, staging, axis, horizon_ms)
        history = history_behind(landing.spark, landing.of, timeline, upstream)
    else:
        history = put_together(timeline, spec, axis, steps, followed, horizon_ms=horizon_ms)
    observation = Observation(history, days.whole, days.partial, fresh, records, followed, world)
    return _with_violations(observation, landing, table, days)


def _upstream_of(
    landing: ResultsLanding, staging: Staging, axis: Axis, horizon_ms: int
) -> Upstream:
    """The pipeline whose results a landing holds, as it was when it published them.

    Of what it has observed since nothing is kept, and nothing has to be accepted: it does that.
    """
    source, store = landing.upstream, landing.upstream_store
    world = world_of(source, store, Ledger(store).entries())
    seen = observe_landing(source, staging.beside(), axis, horizon_ms, world.accepting(world.lost))
    records = source.records(axis, seen.history.days.rebuilt)
    return Upstream(records, in_probe_order(records, seen.history))


def _records_of(landing: Landing, axis: Axis, days: _Days) -> DataFrame:
    """The rows of the days that are known at the horizon.

    Of the day that it lies in these are the arrivals before it. A row that lies in the wrong
    partition, or has no arrival, is known with its partition.
    """
    known: Column = (F.col(c.ARRIVAL) < days.horizon_ms) | ~lies_in_its_day()
    landed = landing.records(axis)
    return with_duplicates(landed, landing.spec, days.every, landing.every_day).where(known)


def _cells_of(
    records: DataFrame, landing: Landing, axis: Axis, staging: Staging, days: _Days, world: World
) -> Fresh:
    """The cells of the days: on the driver where they are few, else in staging."""
    if not days.every:
        return Observed(empty_cells())
    if _is_much(world, days):
        return StagedCells.written(observe(records, landing.spec, axis), axis, staging)
    return Observed(cells_of(records, landing.spec, axis))


def _is_much(world: World, days: _Days) -> bool:
    """Whether the rows of the days are more than the driver should count cells of at once."""
    landed = [
        world.landed[day].rows for day in days.every if day is not None and day in world.landed
    ]
    return sum(rows for rows in landed if rows is not None) > _AT_ONCE


def _known(table: TimelineTable, spec: PipelineSpec, days: _Days) -> StoredTimeline:
    """What the timeline has of the other days; of days that follow each other, of those before."""
    until_ms = days.first_ms if spec.days_follow_each_other else days.horizon_ms
    return StoredTimeline(table, spec.timeline_fingerprint, until_ms, frozenset(days.whole))


def _steps_of(
    records: DataFrame,
    table: TimelineTable,
    spec: PipelineSpec,
    axis: Axis,
    fresh: Fresh,
    days: _Days,
) -> tuple[KnownSteps | None, list[ObservedDay]]:
    """Where channels can go idle: the steps that are kept, and those of the days."""
    if not spec.watermark.idleness_in_effect:
        return None, []
    kept = read_steps(table, spec, axis, before_ms=days.first_ms)
    return kept, list(observe_days(records, spec, axis, fresh, kept, days.horizon_ms))


def _with_violations(
    observation: Observation, landing: Landing, table: TimelineTable, days: _Days
) -> Observation:
    """With the records that broke the order which the watermark assumes, where that counts."""
    spec = landing.spec
    if spec.watermark.violation_handler is None:
        return observation
    broken = (
        violations(landing.spark, observation.records, observation.history).toArrow().to_pandas()
    )
    if spec.watermark.violation_handler == "fail" and len(broken):
        _fail(broken, spec)
    before = read_violations(table, spec.timeline_fingerprint, before_ms=days.first_ms)
    return replace(observation, violations=broken, violations_before=before)


def _fail(broken: pd.DataFrame, spec: PipelineSpec) -> NoReturn:
    """Fail where Flink's job does: at the first record that breaks the order."""
    first = broken.sort_values(["first_arrival_ms", "channel"]).iloc[0]
    of_channel = f" of channel {first['channel']!r}" if spec.source.channel else ""
    raise InputError(
        f"{spec.pipeline}: watermark.on_violation",
        f"{int(broken['violations'].sum()):,} records came behind an earlier one of their channel, "
        f"by up to {int(broken['behind_ms'].max())} ms; the first{of_channel} at "
        f"{text_of(int(first['first_arrival_ms']))}",
        "choose on_violation: warn, or bounded_out_of_orderness with a bound for the disorder",
    )
