"""What people see of a diff is the same by Spark as without it, whatever the types."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from values import KINDS

from strandline.lake.diff import INSERT, OP, diff
from strandline.lake.largest import (
    LONGEST_TEXT,
    counted,
    first_rows,
    largest_of_few,
    largest_updates,
)
from strandline.lake.small_diff import small_diff

pytestmark = pytest.mark.spark
KEYS, VALUES = ["kind", "place"], [*KINDS]
COMPARED = [*KEYS, "long", "double", "float", "decimal", "flag", "day", "at"]


def test_without_spark_few_rows_are_shown_as_by_spark(session):
    staged, published = [], []
    for kind, (_, values) in KINDS.items():
        for place, (before, after) in enumerate(product([None, *values], repeat=2)):
            staged.append({"kind": kind, "place": place, kind: after})
            published.append({"kind": kind, "place": place, kind: before})
        staged.append({"kind": kind, "place": -1, kind: values[0]})
    columns = {"kind": pa.string(), "place": pa.int64()} | {k: of for k, (of, _) in KINDS.items()}
    schema = pa.schema(columns.items())
    few_staged, few_published = (pa.Table.from_pylist(r, schema) for r in (staged, published))
    few = small_diff(few_staged, few_published, KEYS)
    rows, there = map(session.createDataFrame, (few_staged, few_published))
    many = diff(rows, there, KEYS, place="test").persist()
    one = largest_of_few(few, few_published, KEYS, VALUES, 1_000)
    other = largest_updates(many, there, KEYS, VALUES, 1_000)
    assert one.in_values == other.in_values == len(one.after) > 50
    for side in ("before", "after"):
        ours, theirs = (getattr(found, side).select(COMPARED) for found in (one, other))
        assert repr(ours.to_pylist()) == repr(theirs.to_pylist())
    assert counted(few, ["kind", OP], 20) == counted(many, ["kind", OP], 20)
    shown = (first_rows(changes, INSERT, "place", KEYS, 3)["kind"] for changes in (few, many))
    assert next(shown).to_pylist() == next(shown).to_pylist()


def test_of_a_long_value_only_the_beginning_comes_to_the_driver(session):
    rows = session.sql(
        "SELECT 'a' key, 1 records, repeat('x', 100000) text, array_repeat('y', 50000) list, "
        "map('z', repeat('z', 9999)) map, cast(repeat('b', 9999) AS binary) raw"
    )
    changes = rows.selectExpr(f"'{INSERT}' AS {OP}", "*")
    (row,) = first_rows(changes, INSERT, "records", ["key"], 5).to_pylist()
    assert {name: len(row[name]) for name in ("text", "list", "map", "raw")} == dict.fromkeys(
        ("text", "list", "map", "raw"), LONGEST_TEXT + 1
    )
