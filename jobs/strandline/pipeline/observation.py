"""What is known below a horizon, and what of it is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from strandline.engine.past.history import History
from strandline.engine.past.observed import ObservedDay
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Fresh
from strandline.pipeline.observe_input import ObservedInput
from strandline.pipeline.world import World


@dataclass(frozen=True)
class Observation:
    """What is known below a horizon.

    Attributes:
        history: the cells of all arrival days below the horizon.
        new_days: the whole days that the timeline does not have yet, or has as they no longer are.
        partial_days: the day that the horizon lies in, those before it that are not ready, and None
            for rows that have no day; they do not enter the timeline yet.
        fresh: what was observed now, of both.
        inputs: of each source what was observed now, by its name (`Landing.inputs`).
        followed: where channels can go idle: the steps of both.
        world: what has become of the days observed before, and of their landing.
        violations: where records of both broke the order that the watermark assumes (see
            `engine.violations`); None: that is not counted.
        violations_before: how many did on the days that the timeline has.
    """

    history: History
    new_days: list[date]
    partial_days: list[date | None]
    fresh: Fresh
    inputs: Mapping[str, ObservedInput]
    followed: list[ObservedDay]
    world: World
    violations: pd.DataFrame | None = None
    violations_before: int = 0

    @property
    def all_violations(self) -> int | None:
        """The violations known below the horizon; None: they are not counted."""
        if self.violations is None:
            return None
        return self.violations_before + int(self.violations["violations"].sum())

    @property
    def axes(self) -> dict[str, Axis]:
        """The axis of the steps of each source, by its name; empty: of all of them together."""
        return {name: history.axis for name, history in self.history.of_sides.items()}

    @property
    def days_to_recompute(self) -> list[date]:
        """The days below the horizon that it finds changed, or behind the frontier."""
        return self.world.to_recompute_among(self.new_days)

    @property
    def well_formed_of_days(self) -> dict[date, int]:
        """The well-formed rows of each day that was observed now."""
        return sums_by_day(self.fresh.day_map)

    @property
    def rows_of_days(self) -> dict[date | None, int]:
        """The rows of each day that was observed now; None: of those that have no day."""
        counted = Counter[date | None](self.well_formed_of_days)
        counted.update(sums_by_day(self.fresh.malformed))
        return dict(counted)


def sums_by_day(counted: pd.DataFrame) -> dict[Any, int]:
    """The records of each arrival day; None: of those that have none."""
    days = counted["arrival_date"].astype(object).where(counted["arrival_date"].notna(), None)
    sums = Counter[Any]()
    for day, records in zip(days, counted["records"], strict=True):
        sums[day] += int(records)
    return dict(sums)
