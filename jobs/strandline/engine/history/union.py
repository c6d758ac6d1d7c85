"""The observation of two inputs together, for windows over both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.history import History
from strandline.engine.history.observed import ObservedDay, cells_of, in_batches
from strandline.engine.idleness.activity import SILENCE
from strandline.engine.idleness.observe import observe_activity
from strandline.engine.idleness.union import InputSource, Union, of_both
from strandline.engine.position.axis import Axis
from strandline.engine.position.of_two import InputAxis
from strandline.engine.records.arithmetic import instant_of
from strandline.engine.records.days import on_days
from strandline.engine.timeline import Observed, Timeline, concatenated
from strandline.engine.watermark.by_steps import KnownSteps, StepCrossings, StepDays
from strandline.engine.watermark.probe_order import probe_order
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.spec.join import SIDES, WindowJoinSpec
from strandline.spec.joined import CogroupSpec, TwoSourcesSpec


@dataclass(frozen=True)
class UnionOfTwo:
    """The records of two inputs as one source, and their history.

    Attributes:
        records: the records of both, channels prefixed by side; instants on the axis of both.
        history: everything observed below a horizon.
    """

    records: DataFrame
    history: History


def union_of_two(
    left: DataFrame,
    right: DataFrame,
    spec: WindowJoinSpec,
    axes: tuple[Axis, Axis],
    horizon_ms: int,
) -> UnionOfTwo:
    """Observe both inputs of windows, where nothing was observed before.

    Args:
        left: the landing of the left input, as `read_records` reads it by `side_of` and its axis.
        right: the landing of the right input, likewise.
        spec: the windows.
        axes: the axis of each.
        horizon_ms: the horizon.
    """
    whole, both = CogroupSpec.of(spec), Axis.of_both(*axes)
    records = reduce(
        DataFrame.unionByName,
        (
            rows.withColumns(
                {
                    c.INSTANT: instant_of(both, F.col(c.ARRIVAL), F.col(c.SEQUENCE)),
                    c.CHANNEL: F.concat(F.lit(f"{name}/"), c.CHANNEL),
                }
            )
            for name, rows in zip(SIDES, (left, right), strict=True)
        ),
    )
    cells = Observed(cells_of(records.where(F.col(c.ARRIVAL) < horizon_ms), whole, both))
    sources = sources_of(whole, axes)
    inputs = {
        name: rows.where(F.col(c.ARRIVAL) < horizon_ms)
        for name, rows in zip(SIDES, (left, right), strict=True)
    }
    nothing = none_of_two(sources)
    days = list(observe_days_of_two(inputs, sources, cells, nothing, horizon_ms))
    return UnionOfTwo(
        records,
        assemble_history_of_two(cells, whole, sources, nothing, days, horizon_ms=horizon_ms),
    )


def sources_of(spec: TwoSourcesSpec, axes: tuple[Axis, Axis]) -> tuple[InputSource, InputSource]:
    """The channels of both inputs, with their axes."""
    left, right = InputAxis.of_two(*axes)
    return InputSource(spec.left, left), InputSource(spec.right, right)


def none_of_two(sources: Sequence[InputSource]) -> KnownSteps:
    """The initial state of two inputs: no steps are known."""
    return KnownSteps(StepDays.none(), Union(*sources).at_the_start())


def observe_days_of_two(
    records: Mapping[str, DataFrame],
    sources: Sequence[InputSource],
    fresh: Timeline,
    known: KnownSteps,
    horizon_ms: int,
) -> Iterator[ObservedDay]:
    """The effect of some arrival days on the combined watermark, in the order of the days.

    Args:
        records: the records of these days before the horizon, by input, including malformed ones.
        sources: the channels of both.
        fresh: the observations of the records.
        known: the steps of the days before.
        horizon_ms: the horizon.
    """
    union, carried = Union(*sources), of_both(known.carried)
    counts = fresh.day_map.groupby("arrival_date")["records"].sum()
    for days in in_batches(counts):
        activities = [
            observe_activity(
                on_days(rows.where(F.col(c.REASON).isNull()), days),
                source.spec,
                source.axis.own,
                source.rules,
            )
            for rows, source in zip(records.values(), sources, strict=True)
        ]
        for day in days:
            until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
            steps, carried = union.advance(carried, [one.of(day) for one in activities], until_ms)
            yield ObservedDay(day, steps.assign(arrival_date=day), carried)


def assemble_history_of_two(
    timeline: Timeline,
    spec: TwoSourcesSpec,
    sources: Sequence[InputSource],
    known: KnownSteps,
    days: Sequence[ObservedDay],
    *,
    horizon_ms: int,
) -> History:
    """The history of a timeline of two inputs, from the steps of known and of new days."""
    union, both = Union(*sources), sources[0].axis.both
    carried = of_both(days[-1].carried if days else known.carried)
    # the ticks since the last day that has an arrival
    silent, now = union.advance(carried, [SILENCE, SILENCE], horizon_ms)
    later = concatenated(*(day.steps for day in days), silent)
    order, at_end = probe_order(timeline, spec, both), union.at_end(now)
    crossings = StepCrossings(known.steps, later, both, horizon_ms, at_end, order=order)
    return History(spec, both, timeline, crossings)
