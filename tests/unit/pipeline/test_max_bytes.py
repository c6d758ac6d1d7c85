"""What a run would read of the landing table, held against what it may, before it reads."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest
from lakes import FIRST_DAY, a_record, a_spec, instant, land

from strandline.engine.history.days_to_read import DaysToRead
from strandline.engine.position.axis import Axis
from strandline.engine.scope import Scope
from strandline.engine.timeline import Observed, empty_cells
from strandline.errors import InputError
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.commit import DaysToWrite, commit_days
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.plan.planned_run import PlannedRun, planned_run_of, too_much_to_read
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.request import Request

DAYS = [FIRST_DAY.replace(day=day) for day in range(1, 7)]
RULE = {"columns": ["position"], "within": "2d of arrival"}


@pytest.fixture
def a_context(tmp_path):
    """Six days have landed, a record on each; the first five were observed. No Spark is there."""

    def a_context(*, dry_run: bool = False, **changes) -> Context:
        spec, lake = a_spec(**changes), Lake.at(str(tmp_path))
        if not (tmp_path / "landing").exists():
            rows = [a_record(f"{day.day} 10:00", f"{day.day} 09:00") for day in DAYS]
            land(tmp_path, rows)
        landing = open_landing(None, lake, spec)
        store = lake.pipeline(spec.pipeline)
        axis, facts = Axis.of(spec, 0), {day: landing.facts[day] for day in DAYS[:5]}
        observed = Observed(empty_cells())
        commit_days(
            store, DaysToWrite(spec, {"": axis}, observed, [], DAYS[:5], facts), replace=True
        )
        return Context(None, spec, lake, landing, Ledger(store), "run-1", dry_run=dry_run)

    return a_context


def weight_of(ctx: Context, *days: int) -> int:
    return ctx.landing.weight([FIRST_DAY.replace(day=day) for day in days])["bytes"]


def advance(ctx: Context, max_bytes: int) -> None:
    planned_run_of(
        ctx, Request("advance", to_ms=instant("7"), max_bytes=max_bytes), PipelineState()
    )


def test_the_days_that_tell_duplicates_count_where_days_are_observed(a_context):
    ctx = a_context(source__deduplicate=RULE)
    most = weight_of(ctx, 4, 5, 6)
    problem = rf"observing them reads {most:,} bytes of 3 arrival days, from 2024-03-04 to .*06"
    with pytest.raises(InputError, match=problem) as caught:
        advance(ctx, most - 1)
    assert caught.value.exit_code == 2
    assert ctx.landing.days_read_for([]) == []


def test_without_deduplicate_no_day_before_is_counted(a_context):
    ctx = a_context()
    with pytest.raises(InputError, match=f"reads {weight_of(ctx, 6):,} bytes of 1 arrival day,"):
        advance(ctx, weight_of(ctx, 6) - 1)


@pytest.mark.parametrize(
    ("within", "first"),
    [("1ms", 6), ("1d", 5), ("86400001ms", 5), ("86400002ms", 4), ("9223372036854775807ms", 1)],
)
def test_a_duplicate_reaches_back_as_many_days_as_its_pause_can(a_context, within, first):
    rule = {**RULE, "within": f"{within} of arrival"}
    days = a_context(source__deduplicate=rule).landing.days_read_for(DAYS[5:])
    assert days == DAYS[first - 1 :]


def test_they_count_where_a_range_is_rebuilt_if_its_days_hold_any(a_context):
    ctx = a_context(source__deduplicate=RULE, dry_run=True)
    asked = Request("backfill", dry_run=True, max_bytes=weight_of(ctx, 6))
    assert too_much_to_read(ctx, asked, an_outlook(ctx, duplicates_on=5)) == []
    (note,) = too_much_to_read(ctx, asked, an_outlook(ctx, duplicates_on=6))
    assert f"reads {weight_of(ctx, 4, 5, 6):,} bytes of 3 arrival days" in note


def an_outlook(ctx: Context, *, duplicates_on: int) -> PlannedRun:
    """Of a run that rebuilds the windows of the sixth day; every day was observed before."""
    cells = [
        {
            "arrival_date": day,
            "reason": reason,
            "event_date": day,
            "records": 1,
            "least_ts_ms": instant(f"{day.day} 09:00"),
            "largest_ts_ms": instant(f"{day.day} 09:00"),
        }
        for day, reason in [*((d, None) for d in DAYS), (DAYS[duplicates_on - 1], "duplicate")]
    ]
    every = pd.DataFrame(cells).reindex(columns=empty_cells().columns)
    days = DaysToRead(Observed(every), ctx.spec)
    within = TimeRange(instant("6"), instant("6") + DAY_MS)
    seen = SimpleNamespace(new_days=[], history=SimpleNamespace(days=days))
    return PlannedRun([], seen, SimpleNamespace(scope=Scope(within)))
