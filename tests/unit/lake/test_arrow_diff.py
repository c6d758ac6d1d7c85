"""The diff of rows, whole and in pieces, beside what a dict says; and a diff brought in."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import pyarrow as pa
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from values import INFINITY, KINDS

from strandline.lake.publish import batches
from strandline.lake.publish.arrow_diff import (
    DELETE,
    INSERT,
    OP,
    UPDATE,
    diff,
    names_rows_twice,
    with_changes,
)
from strandline.lake.publish.batches import in_pieces

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("key", pa.string()),
        ("ratio", pa.float64()),
        ("value", pa.int64()),
        ("mean", pa.float64()),
        ("run_id", pa.string()),
    ]
)
KEYS = ["day", "key", "ratio"]
DAYS = [None, *KINDS["day"][1]]
# one choice each: drawn one by one, they took more than the diffs
identities = st.sampled_from([*product(DAYS, [None, "", "a", "b"], [None, 0.0, 1.5])])
values = st.sampled_from([*product([None, 1, 2], [None, 0.0, 1.5, INFINITY])])
contents = st.dictionaries(identities, values)


def a_table(content, run_id="run-1"):
    rows = [(*identity, *value, run_id) for identity, value in content.items()]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def content_of(rows):
    found = {
        tuple(row[key] for key in KEYS): (row["value"], row["mean"]) for row in rows.to_pylist()
    }
    assert len(found) == len(rows)
    return found


def by_dict(staged, published):
    """What changes: the operation, the key, and by which run the row is."""
    found = {(INSERT, key, "run-2") for key in staged.keys() - published.keys()}
    found |= {(DELETE, key, "run-1") for key in published.keys() - staged.keys()}
    both = staged.keys() & published.keys()
    return found | {(UPDATE, key, "run-2") for key in both if staged[key] != published[key]}


def told(changes):
    rows = [(row[OP], tuple(row[k] for k in KEYS), row["run_id"]) for row in changes.to_pylist()]
    assert len({*rows}) == len(rows)
    return {*rows}


def cut(rows, sizes):
    """The rows in batches of some sizes."""
    begin, parts = 0, [rows.slice(0, 0)]
    for size in sizes:
        parts.append(rows.slice(begin, size))
        begin += size
    return [*parts, rows.slice(begin)]


@DEAR
@given(contents, contents, st.lists(st.integers(0, 5)), st.sampled_from([600, 2**28, 2**28]))
def test_a_diff_in_any_batches_and_pieces_is_the_whole_one_and_what_a_dict_says(
    staged, published, sizes, bytes_at_once
):
    mine, there = a_table(staged, "run-2"), a_table(published)
    whole = diff(mine, there, KEYS)
    assert told(whole) == by_dict(staged, published)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BYTES_AT_ONCE", bytes_at_once)
        found = [*in_pieces([cut(mine, sizes), cut(there, sizes)], ["day"], KEYS)]
    assert len(found) == 1 or bytes_at_once < 2**28
    of_pieces = pa.concat_tables([diff(*piece, KEYS) for piece in found])
    assert told(of_pieces) == told(whole)


@DEAR
@given(contents, contents)
def test_a_diff_brought_in_leaves_what_is_staged_and_twice_is_once(staged, published):
    mine, there = a_table(staged, "run-2"), a_table(published)
    changes = diff(mine, there, KEYS)
    rows = there
    for _ in range(2):
        rows = with_changes(rows, changes, KEYS)
        assert content_of(rows) == staged
    assert not len(diff(mine, rows, KEYS))
    assert not len(diff(there, there, KEYS))


@DEAR
@given(contents, contents)
def test_a_column_of_which_nothing_is_staged_keeps_its_values(staged, published):
    mine, there = a_table(staged, "run-2"), a_table(published)
    silent = mine.set_column(3, SCHEMA.field("value"), pa.nulls(len(mine), pa.int64()))
    rows = with_changes(there, diff(silent, there, KEYS, kept={"value"}), KEYS)
    before = {key: published.get(key, (None, None))[0] for key in staged}
    means = {key: mean for key, (_, mean) in staged.items()}
    assert content_of(rows) == {key: (before[key], means[key]) for key in staged}
    if len(mine):  # of a column that came into the table since the diff was made
        without = diff(mine.drop("value"), there.drop("value"), KEYS)
        brought_in = content_of(with_changes(there, without, KEYS))
        assert {key: row[1] for key, row in brought_in.items()} == means
        assert {key: row[0] for key, row in brought_in.items()} == before


NUMBERS = [
    (5.0, 5.0 * (1 + 1e-12), False),
    (5.0, 5.1, True),
    (0.0, -0.0, False),
    (math.nan, math.nan, False),
    (math.nan, 5.0, True),
    (5.0, math.nan, True),
    (INFINITY, INFINITY, False),
    (INFINITY, -INFINITY, True),
    (5.0, INFINITY, True),
    (-INFINITY, 5.0, True),
    (None, 5.0, True),
    (None, None, False),
]


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float64())])
def test_a_number_has_changed_if_it_is_another_one(kind):
    before, after, changed = zip(*NUMBERS, strict=True)
    if pa.types.is_list(kind):  # in a list it is another one if it is not just the same
        before, after = ([[number] for number in side] for side in (before, after))
        changed = [True, *changed[1:]]
    key = pa.array(range(len(NUMBERS)))
    published, staged = (
        pa.table({"key": key, "mean": pa.array(side, kind)}) for side in (before, after)
    )
    changes = diff(staged, published, ["key"])
    assert {*changes[OP].to_pylist()} == {UPDATE}
    assert changes["key"].to_pylist() == [n for n, has in enumerate(changed) if has]


NESTED = {
    "map": (pa.map_(pa.string(), pa.float64()), [[("x", 1.0)], [("x", 2.0)], []]),
    "numbers": (pa.struct([("n", pa.list_(pa.float32()))]), [{"n": [0.5, None]}, {"n": [0.25]}]),
}


def test_of_every_type_each_value_is_itself_and_no_other_one():
    """Each value beside each other one, and as a part of the key."""
    for kind, (of, few) in {**KINDS, **NESTED}.items():
        column = [None, *few]
        same = {(a, b) for a, b in product(range(len(column)), repeat=2) if is_same(column, a, b)}
        before, after = zip(*product(column, repeat=2), strict=True)
        numbers = pa.array(range(len(before)))
        published, staged = (
            pa.table({"n": numbers, kind: pa.array(side, of)}) for side in (before, after)
        )
        equal = {*range(len(before))} - {*diff(staged, published, ["n"])["n"].to_pylist()}
        pairs = [*product(range(len(column)), repeat=2)]
        assert {pairs[number] for number in equal} == same, kind
        by_itself = pa.table({kind: pa.array(column, of), "place": pa.array(range(len(column)))})
        as_keys = Counter(diff(by_itself, by_itself.slice(0, 0), [kind])[OP].to_pylist())
        assert as_keys == {INSERT: len(column)}
        assert not len(diff(by_itself.select([kind]), by_itself.select([kind]), [kind])), kind


def is_same(column, one, other):
    """Whether two values of a column are no change."""
    some, others = column[one], column[other]
    if isinstance(some, float) and isinstance(others, float):
        both_none = math.isnan(some) and math.isnan(others)
        near = math.isfinite(some + others) and math.isclose(some, others, rel_tol=1e-9)
        return some == others or both_none or near
    return some == others


def test_keys_are_one_as_spark_finds_them_one():
    zero, none = pa.array([0.0, math.nan]), pa.array([-0.0, -math.nan])
    some, others = (pa.table({"key": side, "value": [1, 2]}) for side in (zero, none))
    assert not len(diff(some, others, ["key"]))
    nested = [pa.table({"key": pa.array([[{"n": x}]]), "value": [1]}) for x in (0.0, -0.0)]
    assert not len(diff(*nested, ["key"]))
    assert len(with_changes(some, diff(some.slice(0, 0), others, ["key"]), ["key"])) == 0


def test_rows_that_are_one_by_their_key_are_only_said_where_they_change():
    twice = a_table({(None, "a", 0.0): (1, 1.0)})
    twice = pa.concat_tables([twice, twice])
    assert not len(diff(twice, twice, KEYS))
    gone = diff(twice.slice(0, 0), twice, KEYS)
    assert names_rows_twice(gone, KEYS)
    other = a_table({(None, "a", 0.0): (2, 1.0)})
    assert names_rows_twice(diff(other, twice, KEYS), KEYS)
    assert not names_rows_twice(diff(other, twice.slice(1), KEYS), KEYS)
    come = diff(twice, twice.slice(0, 0), KEYS)
    assert len(come) == 2
    assert not names_rows_twice(come, KEYS)
