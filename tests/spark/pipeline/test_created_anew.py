"""A table that is created anew is another table: what differs of it is published."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from lakes import Line, a_record, a_spec, instant, land

from strandline.spec import parse_any

if TYPE_CHECKING:
    from pathlib import Path

    from strandline.pipeline.request.outcome import Outcome

pytestmark = pytest.mark.spark

HOURS = a_spec(source__channel=..., source__channels=..., firings=True)
DAYS: dict[str, Any] = {
    "pipeline": "days",
    "source": {"pipeline": "meter", "key": ["device"]},
    "window": {"tumbling": "1d"},
    "aggregates": {"total": "sum(total)"},
}


def land_days(folder: Path, *, more: int = 0) -> None:
    """Four days in a commit each, of which the second has larger values."""
    for day in (1, 2, 3, 4):
        amount = 1 + (more if day == 2 else 0)
        hours = [f"{day} {hour}" for hour in range(10, 16)]
        rows = [a_record(f"{hour}:20", f"{hour}:17", amount=amount) for hour in hours]
        land(folder, rows, mode="append")


def totals(line: Line) -> list[int]:
    return [row["total"] for row in line.rows("windows")]


def says_so(outcome: Outcome) -> bool:
    return any("was created again (its id is another one): 4 arriv" in it for it in outcome.notes)


def test_what_differs_of_a_landing_that_is_created_anew_is_published(spark, tmp_path):
    """As `DROP TABLE` and `CREATE TABLE … AS` do, with other values of one day."""
    line = Line(spark, tmp_path, HOURS)
    land_days(tmp_path)
    line.advance("5")
    shutil.rmtree(tmp_path / "landing")
    land_days(tmp_path, more=1000)
    done = line.advance("5")
    assert says_so(done)
    assert done.diff["windows"] == {"insert": 0, "update": 6, "delete": 0}
    assert sorted(totals(line)) == [1] * 16 + [1001] * 6  # two are open
    again = line.advance("5")
    assert not (again.changed or again.to_recompute or says_so(again))


def test_what_differs_of_results_that_are_published_anew_is_published(spark, tmp_path):
    """The other pipeline's folder is removed, and it is backfilled, as `runs drop` advises."""
    hours = Line(spark, tmp_path, HOURS)
    days = hours.of(parse_any(DAYS, origin="days.yaml").over(HOURS))
    land_days(tmp_path)
    for line in (hours, days):
        line.advance("5")
    assert totals(days) == [6, 6, 6]
    shutil.rmtree(tmp_path / "landing")
    shutil.rmtree(tmp_path / "meter")
    land_days(tmp_path, more=1000)
    hours.backfill("1", "5", as_of="5")
    assert days.advance("5").horizon_ms == instant("5")
    assert sorted(totals(days)) == [6, 6, 6006]
