"""A diff as it is staged: columns by name and type, what may go, keys that are no keys."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from staged import staged

from strandline.lake.publish import batches
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.publish.batches import ROWS
from strandline.lake.publish.staged_diff import (
    Compared,
    counted_by,
    counts_of,
    rows_with,
    stage_diff,
)
from strandline.lake.store.lake import Lake
from strandline.lake.store.schema import fit
from strandline.tables import PublishedTable


@pytest.fixture
def diff(tmp_path):
    """Stages a diff of two tables."""
    nothing = staged(Lake.at(str(tmp_path)).pipeline("meter"), pa.table({"a": [1]}))

    def of(mine, there, keys, **more):
        target = PublishedTable("windows", {}, keys, "day", "at", has_older_slots=False)
        mine_, there_ = (pa.concat_tables([t.slice(0, 0), t]) for t in (mine, there))
        sides = ([side.slice(0, 0), side] for side in (mine_, there_))
        schemas = (from_arrow_schema(side.schema) for side in (mine, there))
        fitted = fit(*schemas, "meter: windows")
        return stage_diff(nothing.staging, "diff", Compared(target, *sides, fitted, **more))

    return of


def test_a_column_that_goes_keeps_what_stands_where_that_is_asked(diff):
    mine = pa.table({"record_id": ["a", "b"], "n": [1, 2]})
    there = pa.table({"record_id": ["a", "b"], "n": [1, 3], "x.y": [7, 8]})
    kept = diff(mine, there, ("record_id",), keep=True)
    assert kept.rows.table().to_pylist() == [{OP: UPDATE, "record_id": "b", "n": 2, "x.y": 8}]
    gone = diff(mine, there, ("record_id",)).rows.table().to_pylist()
    assert {(row["record_id"], row["x.y"]) for row in gone} == {("a", None), ("b", None)}


def test_a_diff_goes_by_names_without_case_and_by_the_wider_type(diff):
    number, wide = pa.int32(), pa.int64()
    inner = pa.struct([("a", number), ("B", pa.list_(number)), ("m", pa.map_(pa.string(), number))])
    outer = pa.struct(
        [
            ("z", pa.string()),
            ("A", wide),
            ("b", pa.list_(wide)),
            ("m", pa.map_(pa.string(), wide)),
        ]
    )
    value = {"a": 3, "B": [4], "m": [("k", 5)]}
    narrow = pa.table({"ID": pa.array([1], number), "n": [2], "s": pa.array([value], inner)})
    wider = {"A": 3, "b": [4], "m": [("k", 5)], "z": None}
    there = pa.table({"id": [1], "N": [2], "s": pa.array([wider], outer)})
    assert not len(diff(narrow, there, ("ID",)).rows.table())
    other = there.set_column(1, "N", [[2**40]])
    (row,) = diff(narrow, other, ("ID",)).rows.table().to_pylist()
    assert (row[OP], row["N"], row["s"]) == (UPDATE, 2, wider)
    (back,) = diff(other, narrow, ("id",)).rows.table().to_pylist()
    assert (back[OP], back["n"], back["s"]["a"]) == (UPDATE, 2**40, 3)


@pytest.mark.parametrize("bytes_at_once", [batches.BYTES_AT_ONCE, 1_000])
def test_what_is_staged_is_counted_and_read_by_what_happens_to_a_row(
    diff, monkeypatch, bytes_at_once
):
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", bytes_at_once)
    mine = pa.table({"key": range(10, 110), "day": ["b"] * 100, "run_id": ["new"] * 100})
    there = pa.table({"key": range(100), "day": ["a"] * 50 + ["b"] * 50, "run_id": ["old"] * 100})
    done = diff(mine, there, ("key",), may_go=ds.field("key") < 7)
    assert done.counts == counts_of(done.rows) == {INSERT: 10, UPDATE: 40, DELETE: 7}
    assert not done.names_rows_twice
    by_day = {(row[OP], row["day"]): row[ROWS] for row in counted_by(done.rows, ["day", OP])}
    assert by_day == {(INSERT, "b"): 10, (UPDATE, "b"): 40, (DELETE, "a"): 7}
    gone = pa.concat_tables(rows_with(done.rows, DELETE))
    assert sorted(gone["key"].to_pylist()) == [*range(7)]
    assert {*gone["run_id"].to_pylist()} == {"old"}


def test_a_part_that_says_nothing_of_operations_is_all_inserted(tmp_path):
    part = staged(Lake.at(str(tmp_path)).pipeline("meter"), pa.table({"day": ["a", "a", None]}))
    counted = {row["day"]: row[ROWS] for row in counted_by(part, ["day", OP]) if row[OP] == INSERT}
    assert counted == {"a": 2, None: 1}
    assert sum(map(len, rows_with(part, INSERT))) == 3


@pytest.mark.parametrize("bytes_at_once", [batches.BYTES_AT_ONCE, 100])
def test_published_rows_that_change_and_are_one_by_their_key_are_noticed(
    diff, monkeypatch, bytes_at_once
):
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", bytes_at_once)
    there = pa.table({"key": [*range(30), 7], "value": [1] * 31})
    assert diff(pa.table({"key": [7], "value": [2]}), there, ("key",)).names_rows_twice
    assert not diff(
        pa.table({"key": [7], "value": [1]}), there.slice(0, 30), ("key",)
    ).names_rows_twice
    assert not diff(there, there, ("key",)).names_rows_twice
