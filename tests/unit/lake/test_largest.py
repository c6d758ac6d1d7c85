"""The rows of a diff that are shown; `tests/spark/lake/test_shown_rows.py` is Spark's part."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from strandline.lake.diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.largest import counted, first_rows, largest_of_few

KEYS = ["key"]


def a_diff(*rows):
    return pa.Table.from_pylist([{OP: op, "key": key, "n": n, "text": "a"} for op, key, n in rows])


def published(**numbers):
    return pa.Table.from_pylist([{"key": k, "n": n, "text": "a"} for k, n in numbers.items()])


def test_the_largest_change_is_the_one_that_changes_most_for_its_size():
    changes = a_diff(
        (UPDATE, "much", 1_100), (UPDATE, "half", 2), (UPDATE, "other way", -9), (INSERT, "x", 7)
    )
    there = published(**{"half": 1, "much": 1_000, "other way": 9, "as it is": 3})
    found = largest_of_few(changes, there, KEYS, ["n", "text"], 10)
    assert found.after["key"].to_pylist() == ["other way", "half", "much"]
    assert found.before["n"].to_pylist() == [9, 1, 1_000]
    assert found.after["n"].to_pylist() == [-9, 2, 1_100]
    assert found.in_values == 3


def test_only_so_many_rows_are_shown_and_all_are_counted():
    changes = a_diff(*((UPDATE, str(n), n) for n in range(9)))
    there = published(**{str(n): n + 1 for n in range(9)})
    found = largest_of_few(changes, there, KEYS, ["n"], 2)
    assert (len(found.before), found.in_values) == (2, 9)
    assert found.after["n"].to_pylist() == [0, 1]


@pytest.mark.parametrize(("before", "after"), [(None, 5), (5, None), (math.nan, 5.0)])
def test_what_is_no_number_on_one_side_changes_wholly(before, after):
    changes = a_diff((UPDATE, "half", 10.0), (UPDATE, "none", after))
    there = published(half=5.0, none=before)
    found = largest_of_few(changes, there, KEYS, ["n"], 10)
    assert found.after["key"].to_pylist() == ["none", "half"]


def test_a_change_of_none_of_the_values_comes_last_and_is_not_counted_among_them():
    changes = a_diff((UPDATE, "a", 1), (UPDATE, "b", 3))
    found = largest_of_few(changes, published(a=1, b=2), KEYS, ["n"], 10)
    assert found.after["key"].to_pylist() == ["b", "a"]
    assert found.in_values == 1


def test_rows_that_their_key_does_not_tell_apart_are_left_to_spark():
    twice = pa.concat_tables([published(a=1), published(a=2)])
    assert largest_of_few(a_diff((UPDATE, "a", 3)), twice, KEYS, ["n"], 10) is None


def test_rows_that_come_or_go_are_shown_by_what_they_hold():
    changes = a_diff((INSERT, "a", 1), (INSERT, "b", 5), (INSERT, "c", 3), (DELETE, "d", 9))
    assert first_rows(changes, INSERT, "n", KEYS, 2)["key"].to_pylist() == ["b", "c"]
    assert first_rows(changes, DELETE, "n", KEYS, 2)["key"].to_pylist() == ["d"]


def test_rows_are_counted_by_their_columns_up_to_a_number_of_groups():
    changes = a_diff((INSERT, "b", 1), (INSERT, "a", 1), (INSERT, "a", 2), (DELETE, "a", 2))
    assert counted(changes, ["key", OP], 9) == [
        ("a", DELETE, 1),
        ("a", INSERT, 2),
        ("b", INSERT, 1),
    ]
    assert counted(changes, ["key", OP], 1) == [("a", DELETE, 1)]
