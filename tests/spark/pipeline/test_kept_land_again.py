"""Ranges by rules of one run, after rows of them have landed again: quarantine follows the rows."""

from __future__ import annotations

from typing import Any

import pytest
from changes import land_again
from deltalake import DeltaTable
from joined import COGROUP
from kept_ranges import (
    RANGE,
    decided,
    decided_of_two,
    hourly,
    late_of,
    numbered,
    slots,
)
from lakes import Line, a_record, at, land
from replayed import assert_books_balance, of_range

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]
GO = {"allow_removals": True}
CUMULATIVE = {"cumulative": "6h", "step": "2h"}


def land_left(line: Line, rows: list[dict[str, Any]], of_two: bool) -> None:
    land(
        line.folder,
        numbered(*rows),
        mode="append",
        table=f"landing/{'left' if of_two else 'meter'}",
    )


@pytest.mark.parametrize("of_two", [False, True], ids=["one source", "cogroup"])
def test_a_late_record_goes_with_its_row_that_lands_again_elsewhere(begun, spark, tmp_path, of_two):
    build = (decided_of_two, spark, tmp_path, COGROUP) if of_two else (decided, spark, tmp_path)
    line = begun(*build)
    late, other = a_record("4 05:00", "2 07:15"), a_record("4 06:00", "2 08:15")
    moved, edited = late | {"happened_at": at("4 04:50")}, other | {"amount": 77}
    before, windows = slots(line, late=True), of_range(line.rows("windows"), *RANGE)
    land_left(line, [*hourly(4), late, other], of_two)
    line.advance("5")
    assert [late_by > 0 for _, late_by in late_of(line)] == [True, True]
    landing = tmp_path / ("landing/left" if of_two else "landing/meter")

    def again(*rows: dict[str, Any]) -> None:
        DeltaTable(str(landing)).delete("arrived_on = '2024-03-04'")
        land_left(line, [*hourly(4), *rows], of_two)
        line.advance("5", allow_removals=True)

    again(moved, edited)
    assert [row["amount"] for row in of_range(line.rows("quarantine"), *RANGE)] == [77]
    assert sum(slot["late"] for slot in slots(line, late=True)) == 1
    again(moved, a_record("4 06:00", "4 05:15"))
    assert not late_of(line)
    assert slots(line, late=True) == before
    assert of_range(line.rows("windows"), *RANGE) == windows
    assert_books_balance(line)


def of_the_fourth(line: Line, *rows: dict[str, Any], **more: Any) -> None:
    """The fourth day lands, again if it has landed: its hours, and some more rows."""
    DeltaTable(str(line.folder / "landing/meter")).delete("arrived_on = '2024-03-04'")
    land(line.folder, [*numbered(*hourly(4)), *rows], mode="append")
    line.advance("5", **GO, **more)
    assert_books_balance(line)


def late_slots_of(line: Line) -> int:
    return sum(slot["late"] for slot in slots(line, late=True))


def test_of_cumulative_windows_the_longest_one_loses_it(spark, tmp_path):
    line = decided(spark, tmp_path, CUMULATIVE)
    before = slots(line, late=True)
    late = numbered(a_record("4 05:00", "2 07:15"))[0]
    of_the_fourth(line, late)
    assert late_slots_of(line) == 1
    of_the_fourth(line, late | {"happened_at": at("4 04:50")})
    assert (late_of(line), slots(line, late=True)) == ([], before)


def test_with_an_id_a_record_is_late_also_where_it_has_landed_before_at_another_time(
    spark, tmp_path
):
    others = numbered(*hourly(1, 2, 3))
    moving, mended = numbered(a_record("3 05:00", "3 04:50"), a_record("3 06:00", "3 05:50"))
    landed_before = [moving, mended | {"happened_at": None}]
    line = decided(spark, tmp_path, beside=landed_before, source__id=["position"])
    third = [row for row in others if row["arrived_on"].day == 3]
    into_it = [row | {"happened_at": at("2 10:10")} for row in (moving, mended)]
    land_again(line, 3, [*third, *into_it])
    line.advance("4", **GO)
    moved = {row["position"] for row in into_it}
    assert {position for position, _ in late_of(line)} == moved
    assert_books_balance(line)

    late = numbered(a_record("4 05:00", "2 07:15"))[0]
    of_the_fourth(line, late)
    of_the_fourth(line, late | {"happened_at": at("2 07:25")})  # of the same slot
    assert {position for position, _ in late_of(line)} == {*moved, late["position"]}
    assert late_slots_of(line) == 3


def test_equal_rows_are_as_many_as_have_landed(begun, spark, tmp_path):
    line = begun(decided, spark, tmp_path)
    late = numbered(a_record("4 05:00", "2 07:15"))[0]
    of_the_fourth(line, late)
    of_the_fourth(line, late, late, late)
    assert (len(late_of(line)), late_slots_of(line)) == (3, 3)
    of_the_fourth(line, late, late, accept_loss="landed three times")
    assert (len(late_of(line)), late_slots_of(line)) == (2, 2)
    line.backfill("1", "7", as_of="5", **GO)  # all ids are unique
    assert [position for position, _ in late_of(line)].count(late["position"]) == 2


def test_of_equal_rows_of_which_one_was_accepted_the_late_one_leaves(begun, spark, tmp_path):
    line = begun(decided, spark, tmp_path)
    of_the_range = next(row for row in numbered(*hourly(2)) if row["amount"] == 900)
    second = [row for row in numbered(*hourly(1, 2, 3)) if row["arrived_on"].day == 2]
    windows = line.rows("windows")
    land_again(line, 2, [*second, of_the_range])
    line.advance("4", **GO)
    assert (len(late_of(line)), late_slots_of(line)) == (1, 1)
    land_again(line, 2, second)
    line.advance("4", accept_loss="twice", **GO)
    assert (len(late_of(line)), late_slots_of(line)) == (0, 0)
    assert of_range(line.rows("windows"), *RANGE) == of_range(windows, *RANGE)
