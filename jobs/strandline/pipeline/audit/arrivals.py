"""The arrival days of a run, and the `quality` rules about them, by the timeline without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd

from strandline.lake.ledger.entry import rows_without_day
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.pipeline.audit.channel_checks import (
    check_of_ahead,
    check_of_channels,
    check_of_epoch,
)
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.rebuild import Staged
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request, arrival_days
from strandline.quality.findings.check import Check
from strandline.quality.findings.freshness import check_of_freshness, fresh_within_ms
from strandline.quality.findings.malformed import (
    RowsOfDay,
    checks_of_malformed,
    dateless_rows,
    looks_like_event_date,
    rows_of_days,
)
from strandline.quality.findings.volume import check_of_volume, first_compared
from strandline.spec.pipeline import PipelineSpec, channel_of
from strandline.spec.quality import DEFAULT


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


def checks_of(ctx: Context, arrivals: RunArrivals, staged: Staged) -> list[Check]:
    """The results of the `quality` rules about a run's arrivals."""
    quality, planned = ctx.spec.quality, arrivals.planned
    over = [day for day in arrivals.days if midnight_of(day) + DAY_MS <= planned.horizon_ms]
    records = {day: of_day.well_formed for day, of_day in arrivals.rows.items()}
    found = [
        *checks_of_malformed(quality, arrivals.rows, arrivals.days, arrivals.new_without_day),
        *_freshness(ctx.spec, planned),
        check_of_volume(quality.volume, records, over),
        check_of_channels(ctx.spec, planned),
        check_of_ahead(ctx, planned, staged),
        check_of_epoch(ctx.spec, planned),
    ]
    return [check for check in found if check is not None]


def note_of_dates(arrivals: RunArrivals) -> Iterator[str]:
    """A note if the column of arrival dates looks like one of event dates."""
    note = looks_like_event_date(arrivals.rows, arrivals.days)
    if note is not None:
        yield note


def _freshness(spec: PipelineSpec, planned: PlannedRun) -> Iterator[Check]:
    """The check of the last arrival of each source; none for an input that has ended."""
    asked = spec.quality.fresh_within
    within_ms = fresh_within_ms(asked, spec.cron)
    if within_ms is None or (spec.reads_results_of is not None and asked == DEFAULT):
        return
    if planned.plan.closes_now:
        return
    for name, side in spec.sides.items():
        last_ms = _last_arrival(planned, name)
        key = f"sources.{name}.where" if name else "source.where"
        where = None if side.source.where is None else key
        yield check_of_freshness(last_ms, planned.horizon_ms, within_ms, name, where)


def _last_arrival(planned: PlannedRun, name: str) -> int | None:
    """The last arrival of a source, including malformed rows of a single source; None: none yet.

    In a timeline of an older version, the end of its last day.
    """
    timeline = planned.observation.history.timeline
    rows = timeline.channel_days
    if name:
        rows = rows[rows["channel"].astype("string").str.startswith(channel_of(name, ""))]
    last_ms = [] if rows.empty else [_last_of(rows)]
    if not name:  # a row without an arrival has none, however late its day
        last_ms += map(int, timeline.malformed["last_arrival_ms"].dropna())
    return max(last_ms, default=None)


def _last_of(channel_days: pd.DataFrame) -> int:
    """The last arrival of the last of some days."""
    day = channel_days["arrival_date"].max()
    arrivals = channel_days.loc[channel_days["arrival_date"] == day, "last_arrival_ms"]
    is_older = arrivals.isna().any()
    return midnight_of(day) + DAY_MS - 1 if is_older else int(arrivals.max())
