"""The rules of `quality` about a run's arrivals: from what the timeline knows, without a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import pandas as pd

from strandline.engine.past.by_input import channel_of
from strandline.lake.steps import frontier, rows_without_day
from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.pipeline.channel_checks import check_of_ahead, check_of_channels
from strandline.pipeline.context import Context
from strandline.pipeline.observation import sums_by_day
from strandline.pipeline.outlook import Outlook
from strandline.pipeline.rebuild import Staged
from strandline.pipeline.request import Request
from strandline.quality.findings.check import Check
from strandline.quality.findings.freshness import check_of_freshness, fresh_within_ms
from strandline.quality.findings.malformed import (
    RowsOfDay,
    checks_of_malformed,
    looks_like_event_date,
)
from strandline.quality.findings.volume import check_of_volume
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.quality import DEFAULT

_BEFORE = timedelta(weeks=8)
_OF_REASON = ("arrival_date", "reason", "records")


def checks_of(ctx: Context, request: Request, outlook: Outlook, staged: Staged) -> list[Check]:
    """The rules of `quality` about the arrivals that a run knows, applied."""
    quality, judged = ctx.spec.quality, judged_days(request, outlook)
    days = rows_of_days(outlook, judged)
    over = [day for day in judged if midnight_of(day) + DAY_MS <= outlook.horizon_ms]
    records = {day: of_day.well_formed for day, of_day in days.items()}
    found = [
        *checks_of_malformed(quality, days, judged, _dateless(outlook)),
        *_freshness(ctx.spec, outlook),
        check_of_volume(quality.volume, records, over),
        check_of_channels(ctx.spec, outlook),
        check_of_ahead(ctx, outlook, staged),
    ]
    return [check for check in found if check is not None]


def note_of_dates(request: Request, outlook: Outlook) -> Iterator[str]:
    """Whether the column of arrival dates looks like one of event dates."""
    judged = judged_days(request, outlook)
    note = looks_like_event_date(rows_of_days(outlook, judged), judged)
    if note is not None:
        yield note


def rows_of_days(outlook: Outlook, judged: Sequence[date]) -> dict[date, RowsOfDay]:
    """The rows of some arrival days, and of those of eight weeks before, as they were observed."""
    if not judged:
        return {}
    since = judged[0] - _BEFORE if judged[0] - date.min > _BEFORE else date.min
    timeline = outlook.seen.history.timeline
    counted, bad = (_since(rows, since) for rows in (timeline.day_map, timeline.malformed))
    crossing = set(counted.loc[counted["arrival_date"] != counted["event_date"], "arrival_date"])
    well_formed = sums_by_day(counted)
    malformed: dict[date, dict[str, int]] = {}
    for day, reason, records in zip(*(bad[name].tolist() for name in _OF_REASON), strict=True):
        malformed.setdefault(day, {})[reason] = records
    return {
        day: RowsOfDay(well_formed.get(day, 0), malformed.get(day, {}), day not in crossing)
        for day in [*well_formed, *(day for day in malformed if day not in well_formed)]
    }


def malformed_of_run(request: Request, outlook: Outlook) -> dict[str, int]:
    """The malformed rows of a run's arrival days, and of rows without one, by reason."""
    malformed = outlook.seen.history.timeline.malformed
    of_run = malformed["arrival_date"].isin(judged_days(request, outlook))
    of_run |= malformed["arrival_date"].isna()
    found = malformed[of_run].groupby("reason")["records"].sum()
    return {str(reason): int(count) for reason, count in found.items()}


def _since(rows: pd.DataFrame, first: date) -> pd.DataFrame:
    """The rows of the arrival days from one on; without those that have none."""
    dated = rows.dropna(subset=["arrival_date"])
    return dated[dated["arrival_date"] >= first]


def judged_days(request: Request, outlook: Outlook) -> list[date]:
    """The arrival days of a run: scheduled, [P, M) and those that changed; by hand, of its range.

    P is the earlier of the frontier and the day before M; without a frontier, the first day.
    """
    timeline = outlook.seen.history.timeline
    known = {*timeline.day_map["arrival_date"], *timeline.malformed["arrival_date"].dropna()}
    if request.kind == "advance":
        until_ms, reached_ms = request.until_ms, frontier(outlook.entries)
        first = min(known, default=day_of(until_ms))
        if reached_ms is not None:
            first = day_of(min(until_ms - DAY_MS, reached_ms))
        owed = {day for day in outlook.plan.owed if midnight_of(day) < until_ms}
        return sorted({*_days_between(first, day_of(until_ms)), *owed})
    within = outlook.plan.scope.windows
    of_its_dates = {
        day for day in known if within.start_ms - DAY_MS < midnight_of(day) < within.end_ms
    }
    return sorted({*outlook.days_of_range, *of_its_dates})


def _days_between(first: date, end: date) -> list[date]:
    return [first + timedelta(number) for number in range((end - first).days)]


def _dateless(outlook: Outlook) -> RowsOfDay:
    """The rows without an arrival day that have come since the last published run.

    Each run observes all of them again; how many they were, its books say.
    """
    malformed = outlook.seen.history.timeline.malformed
    rows = malformed[malformed["arrival_date"].isna()]
    before = rows_without_day(outlook.entries, "published")
    counts: dict[str, int] = dict(
        zip(rows["reason"].tolist(), rows["records"].tolist(), strict=True)
    )
    new = max(sum(counts.values()) - before, 0)
    for reason in sorted(counts):  # which of the reasons is new is not known: the first give way
        kept = min(counts[reason], new)
        counts[reason], new = kept, new - kept
    return RowsOfDay(malformed={reason: count for reason, count in counts.items() if count})


def _freshness(spec: PipelineSpec, outlook: Outlook) -> Iterator[Check]:
    """When the last record of each source arrived; nothing is asked of an input that has ended."""
    asked = spec.quality.fresh_within
    within_ms = fresh_within_ms(asked, spec.schedule)
    if within_ms is None or (isinstance(spec, ResultsSpec) and asked == DEFAULT):
        return
    if outlook.plan.clock.closes_now:
        return
    sides = [*spec.sides] if isinstance(spec, TwoSourcesSpec) else [""]
    for name in sides:
        last_ms = _last_arrival(outlook, name)
        yield check_of_freshness(last_ms, outlook.horizon_ms, within_ms, name)


def _last_arrival(outlook: Outlook, name: str) -> int | None:
    """The last arrival of a source, malformed rows too where it is the only one; None: nothing.

    Of a timeline from before arrivals were kept: the end of the last day that has any.
    """
    timeline = outlook.seen.history.timeline
    rows = timeline.channel_days
    if name:
        rows = rows[rows["channel"].astype("string").str.startswith(channel_of(name, ""))]
    parts = [rows[["arrival_date", "last_arrival_ms"]]]
    if not name:
        parts.append(timeline.malformed.dropna(subset=["arrival_date"])[[*parts[0].columns]])
    last: int | None = None
    for part in parts:
        if part.empty:
            continue
        day = part["arrival_date"].max()
        arrivals = part.loc[part["arrival_date"] == day, "last_arrival_ms"]
        kept = arrivals.max()
        not_kept = part is parts[0] and arrivals.isna().any()
        at_ms = midnight_of(day) + DAY_MS - 1 if not_kept or pd.isna(kept) else int(kept)
        last = at_ms if last is None else max(last, at_ms)
    return last
