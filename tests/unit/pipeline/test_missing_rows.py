"""Rows that have disappeared from the landing table: what `status` says, and what ends it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from meter import a_meter

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import midnight_of
from strandline.pipeline.manage.acknowledge import acknowledge
from strandline.pipeline.views.missing_rows import findings_of_missing_rows
from strandline.pipeline.views.read_pipeline import ReadPipeline

SPEC = a_meter({"tumbling": "12h"}, channel="source", channels=["a"], arrival_date="arrival_date")
DAYS = [date(2026, 3, day) for day in range(1, 7)]


@pytest.fixture
def lake(tmp_path):
    return Lake.at(str(tmp_path))


def land(lake: Lake, days: list[date]) -> None:
    """A landing table with a row of each of some days, and of no other."""
    rows = pa.table({"arrival_date": pa.array(days, pa.date32()), "source": ["a"] * len(days)})
    place = lake.resolve(SPEC.source.table)
    write_deltalake(place, rows, mode="overwrite", partition_by=["arrival_date"])


def run(
    lake: Lake, missing: list[date], *, waits: bool = False, horizon_ms: int | None = None
) -> None:
    """A scheduled run that has found rows missing, and perhaps left out what needs them."""
    ledger = Ledger(lake.pipeline("meter"))
    number = ledger.state().position + 1
    done = None if waits else number
    step = Entry(
        f"r-{number}",
        1,
        "published",
        "advance",
        lost=missing,
        completes_ms=done,
        horizon_ms=horizon_ms,
    )
    ledger.append(step, datetime.now(UTC))


def said(lake: Lake) -> str:
    store = lake.pipeline("meter")
    found = findings_of_missing_rows(ReadPipeline(SPEC, store, Ledger(store).state()))
    return " / ".join(f"{one.severity}: {one.sentence}" for one in found)


def test_old_days_that_a_retention_has_removed_are_no_warning(lake):
    land(lake, DAYS[2:])
    run(lake, DAYS[:2])
    assert said(lake) == (
        "info: rows of 2026-03-01 to 2026-03-02 have disappeared from the landing table, whose "
        "first day is 2026-03-03 now, as by a retention: windows made of them stay as published, "
        "and strandline acknowledge meter lost --reason REASON hides these days. If it was none, "
        "land them again, or use what remains (strandline advance meter --to INSTANT --accept-loss "
        "REASON)"
    )


def test_many_days_that_have_gone_at_once_are_a_warning_until_they_are_acknowledged(lake):
    """A table that was overwritten with its last day alone had only an info, without a way out."""
    days = [date(2026, 2, 1) + timedelta(days=number) for number in range(28)]
    land(lake, DAYS)
    run(lake, [])
    run(lake, days[:8])
    assert said(lake).startswith("warning: rows of 2026-02-01 to 2026-02-08 have disappeared")
    run(lake, days[:9])
    assert said(lake).startswith("warning: ")
    acknowledge(SPEC, lake, ["lost"], reason="retention")
    run(lake, days[:16])  # seven more
    assert said(lake).startswith("info: rows of 2026-02-10 to 2026-02-16 have disappeared")


def test_a_day_that_a_newer_one_has_replaced_in_a_table_of_one_day_is_a_warning_for_ever(lake):
    """A table that holds its last day alone looked like a retention."""
    for number, missing in enumerate(([], DAYS[:1], DAYS[:2], DAYS[:2])):
        run(lake, missing, horizon_ms=midnight_of(DAYS[number + 1]))
    for left in (DAYS[2:3], DAYS[2:]):  # also once others land beside it
        land(lake, left)
        assert said(lake).startswith("warning: rows of 2026-03-01 to 2026-03-02 have disappeared")


def test_a_day_that_goes_while_a_day_after_it_is_kept_is_as_by_a_retention(lake):
    for number, missing in enumerate(([], [], DAYS[:1], DAYS[:2])):
        run(lake, missing, horizon_ms=midnight_of(DAYS[number + 1]))
    land(lake, DAYS[2:])
    assert said(lake).startswith("info: rows of 2026-03-01 to 2026-03-02 have disappeared")


def test_days_that_had_landed_again_before_they_went_little_by_little_are_no_warning(lake):
    days = [date(2026, 2, 1) + timedelta(days=number) for number in range(28)]
    land(lake, DAYS)
    for missing in (days, [], days[:7], days[:14]):
        run(lake, missing)
    assert said(lake).startswith("info: ")


def test_rows_of_a_day_that_has_others_are_a_warning_until_a_person_acknowledges_them(lake):
    land(lake, DAYS[1:])
    run(lake, DAYS[:2])
    assert said(lake) == (
        "warning: rows of 2026-03-01 to 2026-03-02 have disappeared from the landing table: land "
        "them again, use what remains (strandline advance meter --to INSTANT --accept-loss "
        "REASON), or leave the windows as published (strandline acknowledge meter lost --reason "
        "REASON hides these days, whatever else disappears of them)"
    )
    done = acknowledge(SPEC, lake, ["lost"], reason="wrong rows")
    assert [one["name"] for one in done["acknowledged"]] == ["lost"]
    assert said(lake) == ""
    run(lake, [*DAYS[:2], DAYS[4]])  # a day more
    assert said(lake).startswith("warning: rows of 2026-03-05 have disappeared")
    acknowledge(SPEC, lake, [], reason="these as well")
    run(lake, DAYS[:2])
    run(lake, [*DAYS[:2], DAYS[4]])  # it had landed again
    assert said(lake).startswith("warning: rows of 2026-03-05 have disappeared")


def test_rows_that_scheduled_runs_wait_for_cannot_be_acknowledged(lake):
    land(lake, DAYS[2:])
    run(lake, DAYS[:2], waits=True)
    assert said(lake) == (
        "warning: rows of 2026-03-01 to 2026-03-02 have disappeared from the landing table, and "
        "windows that need them stay as published: land the rows again, or use what remains "
        "(strandline advance meter --to INSTANT --accept-loss REASON)"
    )
    with pytest.raises(InputError, match="no finding of this name can be acknowledged now"):
        acknowledge(SPEC, lake, ["lost"], reason="retention")
    run(lake, DAYS[:2])
    assert said(lake).startswith("info: ")
