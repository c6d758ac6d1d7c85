"""The arrival days of a run and their rows, by the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd

from strandline.lake.ledger.state import rows_without_day
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.request.request import Request, arrival_days
from strandline.quality.findings.malformed import RowsOfDay, dateless_rows, rows_of_days
from strandline.quality.findings.volume import first_compared


@dataclass(frozen=True)
class RunArrivals:
    """The arrivals of a run, computed on first use.

    Attributes:
        request: the requested run.
        planned: its observations and plan.
    """

    request: Request
    planned: PlannedRun

    @cached_property
    def days(self) -> Sequence[date]:
        """The run's arrival days: `arrival_days` if it is scheduled, else the days of its range."""
        planned, timeline = self.planned, self.planned.observation.history.timeline
        known = {*timeline.day_map["arrival_date"], *timeline.malformed["arrival_date"].dropna()}
        if self.request.kind == "advance":
            until_ms = self.request.until_ms
            changed = (day for day in planned.plan.to_recompute if midnight_of(day) < until_ms)
            return arrival_days(until_ms, planned.state.frontier_ms, known, changed)
        within = planned.plan.scope.windows
        of_its_dates = {
            day for day in known if within.start_ms - DAY_MS < midnight_of(day) < within.end_ms
        }
        return sorted({*planned.days_of_range, *of_its_dates})

    @cached_property
    def rows(self) -> Mapping[date, RowsOfDay]:
        """The observed rows of the days, and of the eight weeks before them."""
        if not self.days:
            return {}
        since = first_compared(self.days[0])
        timeline = self.planned.observation.history.timeline
        return rows_of_days(_since(timeline.day_map, since), _since(timeline.malformed, since))

    @property
    def malformed_by_reason(self) -> dict[str, int]:
        """The malformed rows of the days, and all rows without an arrival day, by reason."""
        malformed = self.planned.observation.history.timeline.malformed
        of_run = malformed["arrival_date"].isin(self.days) | malformed["arrival_date"].isna()
        found = malformed[of_run].groupby("reason")["records"].sum()
        return {str(reason): int(count) for reason, count in found.items()}

    @property
    def new_without_day(self) -> RowsOfDay:
        """The rows without an arrival day that are new since the last published run.

        Each run observes all such rows again; its books have their number.
        """
        malformed = self.planned.observation.history.timeline.malformed
        dateless = int(malformed.loc[malformed["arrival_date"].isna(), "records"].sum())
        new = dateless - rows_without_day(self.planned.state.published)
        return dateless_rows(malformed, max(new, 0))


def _since(rows: pd.DataFrame, first: date) -> pd.DataFrame:
    """The rows of arrival days from a date on; rows without a day are left out."""
    dated = rows.dropna(subset=["arrival_date"])
    return dated[dated["arrival_date"] >= first]
