"""deduplicate on a lake: what is delivered again counts once, whatever day it comes on."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from lakes import RESULTS, SCHEMA, Line, a_record, a_spec, a_week, land
from replayed import published, told_by_replay

from strandline.errors import InputError

pytestmark = pytest.mark.spark


def delivered_again(rows):
    """Every fifth record comes once more soon after, every seventh after each midnight as well."""
    sound = [row for row in rows if row["arrived_at"] and row["arrived_at"].date() < _LAST]
    for number, row in enumerate(sound):
        pauses = [20] * (number % 5 == 0) + [1430, 1430 * 2] * (number % 7 == 0)
        for minutes in pauses:
            arrived = row["arrived_at"] + timedelta(minutes=minutes)
            if arrived.date() < _LAST and row["arrived_on"] == row["arrived_at"].date():
                yield {**row, "arrived_at": arrived, "arrived_on": arrived.date()}


WEEK = a_week(days=4)
_LAST = max(row["arrived_on"] for row in WEEK) + timedelta(1)
ROWS = [*WEEK, *delivered_again(WEEK)]
RULE = {"columns": ["position"], "within": "1d of arrival"}


def tables(rows):
    return {name: rows[name] for name in RESULTS}


def test_days_in_any_order_are_one_go_are_the_replay_and_a_rerun_writes_nothing(spark, tmp_path):
    spec = a_spec(source__deduplicate=RULE)
    expected = told_by_replay(spec, ROWS, "5")
    repeated = [row for row in expected["quarantine"] if row[0][2] == "duplicate"]
    assert len(repeated) > 50
    line = Line(spark, tmp_path / "days", spec)
    second, others = (
        [row for row in ROWS if (row["arrived_on"].day == 2) == is_second]
        for is_second in (True, False)
    )
    land(line.folder, others)
    line.advance("4")
    assert tables(published(line)) == tables(told_by_replay(spec, others, "4"))
    # a day that lands late has its say about the repetitions after it
    land(line.folder, second, mode="append")
    healed = line.backfill("1", "6", as_of="5")
    assert [day[-1] for day in healed.observed_days] == ["2", "3", "4"]
    assert tables(published(line)) == tables(expected)
    before = line.versions()
    again = line.backfill("2 05:00", "3 20:00")
    assert not again.changed
    assert line.versions() == before
    whole = Line(spark, tmp_path / "whole", spec)
    land(whole.folder, reversed(ROWS), partition_by=[])
    whole.backfill("1", "6", as_of="5")
    for name in RESULTS:
        assert whole.rows(name) == line.rows(name), name
    # they are in no window, and the books of their days know them
    for entry in whole.ledger:
        for book in entry.books or []:
            assert book.balanced, book


def test_a_day_of_nothing_but_duplicates_still_tells_those_of_the_next_day(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(source__deduplicate=RULE))
    rows = [
        a_record("1 13:00", "1 12:00", position=1),
        a_record("2 12:59", "1 12:00", position=1),
        a_record("3 12:58", "1 12:00", position=1),
        a_record("4 13:00", "4 12:00", position=1),  # a day and two minutes later: it counts
        a_record("4 13:00", "4 12:00", "b", position=2),
    ]
    # with a floating-point number beside the columns that identify a duplicate
    weighed = pa.Table.from_pylist(
        [{**row, "weight": number / 4} for number, row in enumerate(rows)],
        SCHEMA.append(pa.field("weight", pa.float64())),
    )
    land(tmp_path, weighed)
    for day in ("3", "5"):
        line.advance(day)
    repeated = [row["quarantine_date"].day for row in line.rows("quarantine")]
    assert repeated == [2, 3]
    assert {row["reason"] for row in line.rows("quarantine")} == {"duplicate"}
    assert tables(published(line)) == tables(told_by_replay(line.spec, rows, "5"))


def test_a_column_that_cannot_tell_duplicates_is_named(spark, tmp_path):
    rule = {"columns": ["position", "offset"], "within": "1h of arrival"}
    line = Line(spark, tmp_path, a_spec(source__deduplicate=rule))
    land(tmp_path, WEEK)
    with pytest.raises(
        InputError, match=r"source\.deduplicate\.columns.*offset.*position"
    ) as wrong:
        line.backfill("1", "2")
    assert "arrived_at" in wrong.value.way_out
