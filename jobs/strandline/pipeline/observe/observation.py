"""The observations below a horizon, and which of them are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from strandline.engine.history.history import History
from strandline.engine.history.observed import ObservedDay
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Fresh
from strandline.pipeline.observe.landing_status import LandingStatus
from strandline.pipeline.observe.observe_input import ObservedInput


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
