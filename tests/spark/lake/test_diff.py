"""What counts as changed: every value that is another one, floating point by its size."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import pyarrow as pa
import pytest
from values import INFINITY, KINDS

from strandline.lake.diff import OP, diff
from strandline.lake.small_diff import small_diff

pytestmark = [pytest.mark.spark, pytest.mark.story]


NUMBERS = [
    (5.0, 5.0 * (1 + 1e-12), None),
    (5.0, 5.1, "update"),
    (0.0, 0.0, None),
    (math.nan, math.nan, None),
    (math.nan, 5.0, "update"),
    (5.0, math.nan, "update"),
    (INFINITY, INFINITY, None),
    (INFINITY, -INFINITY, "update"),
    (5.0, INFINITY, "update"),
    (-INFINITY, 5.0, "update"),
    (None, 5.0, "update"),
    (None, None, None),
]


def test_a_number_has_changed_if_it_is_another_one(spark):
    published, staged = (
        spark.createDataFrame([*enumerate(values)], "key int, mean double")
        for values in list(zip(*NUMBERS, strict=True))[:2]
    )
    rows = diff(staged, published, ["key"], place="test").collect()
    changed = {number: change for number, (_, _, change) in enumerate(NUMBERS) if change}
    assert {row["key"]: row[OP] for row in rows} == changed


@pytest.mark.parametrize("kept_out", [None, "key"])
def test_without_spark_few_rows_have_the_same_diff_whatever_their_types(spark, kept_out):
    """Each value of a kind beside each other one, and each of them alone, on either side."""
    staged, published = [], []
    for kind, (_, values) in KINDS.items():
        for place, (before, after) in enumerate(product([None, *values], repeat=2)):
            key = {"key": kind if kept_out is None else None, "more": place, "kind": kind}
            staged.append(key | {kind: after, "run_id": "new"})
            published.append(key | {kind: before, "run_id": "old"})
        staged.append({"key": kind, "more": -1, "kind": kind, kind: values[0]})
        published.append({"key": kind, "more": -2, "kind": kind, kind: values[-1]})
    columns = {"key": pa.string(), "more": pa.int64(), "kind": pa.string(), "run_id": pa.string()}
    columns |= {kind: of for kind, (of, _) in KINDS.items()}
    tables = [
        pa.Table.from_pylist(rows, pa.schema(columns.items())) for rows in (staged, published)
    ]
    keys = ["key", "more", "kind"]
    of_spark = diff(*map(spark.createDataFrame, tables), keys, place="test").toArrow()
    few = small_diff(*tables, keys)
    assert told(few) == told(of_spark)
    assert {"insert", "update", "delete"} == {*few[OP].to_pylist()}


def told(changes: pa.Table) -> Counter[str]:
    """The rows of a diff in any order."""
    return Counter(repr(sorted(row.items())) for row in changes.to_pylist())
