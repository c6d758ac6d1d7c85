"""Two inputs observed together, for windows over both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.idleness.activity import SILENCE
from strandline.engine.idleness.kept_steps import KeptSteps, StepDays
from strandline.engine.idleness.observe import observe_activity
from strandline.engine.idleness.steps import STEP_COLUMNS
from strandline.engine.idleness.union import InputSource, Union
from strandline.engine.past.history import History, history_of
from strandline.engine.past.observed import cells_of
from strandline.engine.position.axis import Axis
from strandline.engine.position.of_two import InputAxis
from strandline.engine.records.arithmetic import instant_of
from strandline.engine.timeline import Observed
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.spec.join import SIDES, WindowJoinSpec, side_of, union_of


@dataclass(frozen=True)
class UnionOfTwo:
    """The records of two inputs as those of one, and what is known of them.

    Attributes:
        records: of both, their channels named by their side; instants are those of both.
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
    """Observe both inputs of windows, where nothing is known before.

    Args:
        left: the landing of the left input, as `read_records` reads it by `side_of` and its axis.
        right: that of the right one.
        spec: the windows.
        axes: of both.
        horizon_ms: records and ticks before it are known.
    """
    axis_of = InputAxis.of_two(*axes)
    sources = [
        InputSource(side_of(spec, name), axis) for name, axis in zip(SIDES, axis_of, strict=True)
    ]
    both, whole = axis_of[0].both, union_of(spec)
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
    known = records.where(F.col(c.ARRIVAL) < horizon_ms)
    steps = _steps((left, right), sources, both, horizon_ms)
    cells = Observed(cells_of(known, whole, both))
    return UnionOfTwo(records, history_of(cells, whole, both, steps=steps))


def _steps(
    inputs: tuple[DataFrame, DataFrame],
    sources: list[InputSource],
    both: Axis,
    horizon_ms: int,
) -> KeptSteps:
    """The rises of the watermark of both below the horizon, day by day."""
    activities = [
        observe_activity(
            rows.where(F.col(c.REASON).isNull() & (F.col(c.ARRIVAL) < horizon_ms)),
            source.spec,
            source.axis.own,
            source.rules,
        )
        for rows, source in zip(inputs, sources, strict=True)
    ]
    union = Union(*sources)
    carried, parts = union.at_the_start(), []
    days = {day for one in activities for day in one.on_ticks["arrival_date"]}
    for day in sorted(days):
        until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
        steps, carried = union.advance(carried, [one.of(day) for one in activities], until_ms)
        parts.append(steps.assign(arrival_date=day))
    silent, carried = union.advance(carried, [SILENCE, SILENCE], horizon_ms)
    there = [part for part in (*parts, silent) if len(part)]
    later = pd.concat(there, ignore_index=True) if there else pd.DataFrame(columns=[*STEP_COLUMNS])
    return KeptSteps(StepDays.none(), later, both, horizon_ms, union.at_end(carried))
