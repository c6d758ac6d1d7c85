"""The landing rows of a range with overridden settings: see `EarlierRuns`."""

from __future__ import annotations

from dataclasses import replace

from strandline.engine.history.history import History
from strandline.engine.sessions.reach import whole_within
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.model.intervals import TimeRange, last_day_before
from strandline.pipeline.observe.earlier_runs import LandedBefore
from strandline.pipeline.request.context import Context
from strandline.spec.pipeline import PipelineSpec


def landed_before(ctx: Context, one: OverriddenRange) -> LandedBefore | None:
    """The landing table at a range's run; None: rows that landed since cannot be distinguished."""
    log = ctx.landing.log
    if one.landing_version is None or one.horizon_ms is None or log.is_another(one.landing_id):
        return None
    days_by = log.day_partition(ctx.spec.source.arrival_date)
    last_day = last_day_before(one.horizon_ms)
    if log.same_rows_since(one.landing_version, days_by=days_by, last_day=last_day):
        return LandedBefore(log=None)
    before = log.readable_at(one.landing_version)
    return None if before is None else LandedBefore(before)


def whole_sessions(
    ctx: Context,
    history: History,
    rules: PipelineSpec,
    within: TimeRange,
    horizon_ms: int,
    watermark_ms: int,
) -> TimeRange | None:
    """The slots of a range whose sessions had been dropped, with no session across the edges."""
    records = ctx.landing.records(history.axis, history.days.rebuilt)
    by_rules = replace(history, spec=rules)
    return whole_within(records, by_rules, within, until_ms=horizon_ms, watermark_ms=watermark_ms)
