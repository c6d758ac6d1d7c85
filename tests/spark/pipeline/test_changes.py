"""What runs say of their changes: the dates whose rows differ, and the days that are complete."""

from __future__ import annotations

from datetime import date

import pytest
from lakes import Line, a_spec, a_week, land

from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.views.changes import changes_of

pytestmark = pytest.mark.spark


def days_of(ranges) -> set[date]:
    edges = [[date.fromisoformat(day) for day in one] for one in ranges]
    return {
        date.fromordinal(number)
        for first, last in edges
        for number in range(first.toordinal(), last.toordinal() + 1)
    }


def windows_by_day(line: Line) -> dict[date, list]:
    found: dict[date, list] = {}
    for row in line.rows("windows"):
        found.setdefault(row["window_date"], []).append(row)
    return found


def test_the_dates_of_a_run_are_those_whose_rows_differ_and_a_complete_day_stays_as_it_is(
    spark, tmp_path
):
    line = Line(spark, tmp_path, a_spec())
    land(line.folder, a_week(days=5))
    before, since, complete = {}, 0, set()

    def last_change():
        nonlocal before, since
        found = changes_of(line.spec, line.lake, since)
        since, (one,) = found["next"], found["runs"]
        after = windows_by_day(line)
        differ = {day for day in before | after if before.get(day) != after.get(day)}
        before = after
        assert days_of(one["dates"].get("windows", ())) == differ
        return one, differ

    for day in ("3", "5", "6"):
        outcome = line.advance(day)
        one, differ = last_change()
        assert (one["dates"], one["completed"]) == (outcome.dates, outcome.completed)
        assert not differ & complete
        now = days_of(one["completed"])
        assert not now & complete
        complete |= now
        states = {row["slot_date"]: set() for row in line.rows("completeness")}
        for row in line.rows("completeness"):
            states[row["slot_date"]].add(row["state"])
        assert all(states.get(of, {"closed"}) == {"closed"} for of in now)
    assert len(complete) >= 3
    last = one
    assert days_of(last["dates"]["windows"])

    revert_run(line.spec, line.lake, last["run_id"], spark, reason="a mistake")
    back, differ = last_change()
    assert (back["kind"], back["reverts"], back["completed"]) == ("revert", last["run_id"], [])
    assert differ == days_of(last["dates"]["windows"])
    line.advance("6")
    again, _ = last_change()
    assert not days_of(again["completed"]) & complete
