"""The rows of a diff that are shown: those that change most, and how many others there are."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from values import KINDS

from strandline.lake.publish import batches
from strandline.lake.publish.shown_rows import first_rows, largest_updates

KEYS = ["key"]


def rows_of(**numbers):
    return pa.Table.from_pylist([{"key": k, "n": n, "text": "a"} for k, n in numbers.items()])


def largest(after, before, values=("n",), most=10):
    return largest_updates([after], [before], KEYS, [*values], most)


def test_the_largest_change_is_the_one_that_changes_most_for_its_size():
    changes = rows_of(**{"much": 1_100, "half": 2, "other way": -9})
    there = rows_of(**{"half": 1, "much": 1_000, "other way": 9, "as it is": 3})
    found = largest(changes, there, ["n", "text"])
    assert found.after["key"].to_pylist() == ["other way", "half", "much"]
    assert found.before["n"].to_pylist() == [9, 1, 1_000]
    assert found.after["n"].to_pylist() == [-9, 2, 1_100]
    assert found.in_values == 3


numbers = st.dictionaries(st.integers(0, 40).map(str), st.integers(-9, 9), min_size=1)


@DEAR
@given(numbers, st.integers(0, 5), st.lists(st.integers(0, 9)))
def test_only_so_many_rows_are_shown_and_all_are_counted_in_whatever_pieces(held, most, sizes):
    after, there = rows_of(**held), rows_of(**{key: n + 1 for key, n in held.items()})
    parts, begin = [after.slice(0, 0)], 0
    for size in sizes:
        parts.append(after.slice(begin, size))
        begin += size
    parts.append(after.slice(begin))
    whole = largest(after, there, most=len(held))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BYTES_AT_ONCE", 200)
        found = largest_updates(parts, [there], KEYS, ["n"], most)
    assert found.in_values == len(held) == len(whole.after)
    assert found.after == whole.after.slice(0, most)
    assert found.before == whole.before.slice(0, most)


@pytest.mark.parametrize(("before", "after"), [(None, 5), (5, None), (math.nan, 5.0)])
def test_what_is_no_number_on_one_side_changes_wholly(before, after):
    changes, there = rows_of(half=10.0, none=after), rows_of(half=5.0, none=before)
    assert largest(changes, there).after["key"].to_pylist() == ["none", "half"]


def test_a_change_of_none_of_the_values_comes_last_and_is_not_counted_among_them():
    found = largest(rows_of(a=1, b=3), rows_of(a=1, b=2))
    assert found.after["key"].to_pylist() == ["b", "a"]
    assert found.in_values == 1


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_type_a_change_has_a_size(kind):
    of, values = KINDS[kind]
    before = pa.table({"key": ["a", "b"], kind: pa.array([None, values[0]], of)})
    after = pa.table({"key": ["a", "b"], kind: pa.array([values[-1], values[0]], of)})
    found = largest(after, before, [kind])
    assert found.after["key"].to_pylist() == ["a", "b"]
    assert found.in_values == 1


def test_rows_that_come_or_go_are_shown_by_what_they_hold():
    parts = [rows_of(a=1), rows_of(b=5, d=None), rows_of(c=3)]
    assert first_rows(parts, "n", KEYS, 2)["key"].to_pylist() == ["b", "c"]
    assert first_rows(parts[:1], "n", KEYS, 2)["key"].to_pylist() == ["a"]
