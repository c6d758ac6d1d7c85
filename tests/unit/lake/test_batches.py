"""Rows divided by their keys, and sums over rows that come some at a time."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from values import KINDS

from strandline.lake.publish import batches
from strandline.lake.publish.batches import ROWS, in_pieces, sums_by

keys = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 30)), max_size=60)


def a_table(rows):
    return pa.Table.from_pylist(
        [{"day": day, "key": key, "n": number} for number, (day, key) in enumerate(rows)],
        pa.schema([("day", pa.string()), ("key", pa.int64()), ("n", pa.int64())]),
    )


def in_batches(rows, size):
    return [rows.slice(0, 0), *(rows.slice(at, size) for at in range(0, len(rows), size))]


@pytest.fixture
def few_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", 300)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@DEAR
@given(keys, keys, st.integers(1, 40))
def test_each_row_is_in_one_piece_with_all_rows_of_its_key(some, others, size):
    sides = a_table(some), a_table(others)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BYTES_AT_ONCE", 400)
        found = [*in_pieces([in_batches(rows, size) for rows in sides], ["day"], ["day", "key"])]
    for place, rows in enumerate(sides):
        every = [row for piece in found for row in piece[place].to_pylist()]
        assert sorted(every, key=lambda row: row["n"]) == rows.to_pylist()
    of_key = Counter(
        key
        for piece in found
        for key in {(row["day"], row["key"]) for side in piece for row in side.to_pylist()}
    )
    assert {*of_key.values()} <= {1}


def test_without_rows_there_is_a_piece_with_the_columns():
    ((some, others),) = in_pieces([[a_table([])], [a_table([])]], ["key"])
    assert some.schema == others.schema == a_table([]).schema
    assert not len(some) + len(others)


def test_rows_of_one_key_stay_together_however_many(few_at_once):
    rows = a_table([("a", 1)] * 500)
    ((found,),) = in_pieces([in_batches(rows, 50)], ["day"], ["key"])
    assert len(found) == 500
    assert not [*few_at_once.iterdir()]


def test_who_stops_half_way_leaves_no_file(few_at_once):
    found = in_pieces([in_batches(a_table([("a", n) for n in range(300)]), 50)], ["key"])
    next(found)
    assert [*few_at_once.iterdir()]
    found.close()
    assert not [*few_at_once.iterdir()]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_every_type_come_together(few_at_once, kind):
    of, values = KINDS[kind]
    column = pa.array([None, *values] * 40, of)
    rows = pa.table({"key": column, "n": range(len(column))})
    found = [piece for (piece,) in in_pieces([in_batches(rows, 7)], ["key"]) if len(piece)]
    same = Counter(
        text for piece in found for text in {text_of(key) for key in piece["key"].to_pylist()}
    )
    assert {*same.values()} == {1}
    assert sum(map(len, found)) == len(rows)
    assert not [*few_at_once.iterdir()]


def text_of(key):
    """A key as text; what is no number is one, and 0.0 is -0.0."""
    if isinstance(key, float):
        return "nan" if math.isnan(key) else repr(key + 0.0)
    return repr(key)


@DEAR
@given(keys, st.integers(1, 40), st.sampled_from([3, 2**20]))
def test_sums_are_those_of_all_rows_in_whatever_batches(rows, size, most):
    table = a_table(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_MOST_GROUPS", most)
        found = sums_by(in_batches(table, size), ["day", "key"], ["n"]).to_pylist()
    expected = Counter(rows)
    assert {(row["day"], row["key"]): row[ROWS] for row in found} == expected
    totals = Counter[tuple[str | None, int]]()
    for number, key in enumerate(rows):
        totals[key] += number
    assert {(row["day"], row["key"]): row["n"] for row in found} == {k: totals[k] for k in expected}
