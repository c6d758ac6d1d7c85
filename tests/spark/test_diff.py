"""What counts as changed: every value that is another one, floating point by its size."""

from __future__ import annotations

import math

import pytest

from strandline.lake.diff import OP, diff

pytestmark = pytest.mark.spark
INFINITY = math.inf


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (5.0, 5.0 * (1 + 1e-12), []),
        (5.0, 5.1, ["update"]),
        (0.0, 0.0, []),
        (math.nan, math.nan, []),
        (math.nan, 5.0, ["update"]),
        (5.0, math.nan, ["update"]),
        (INFINITY, INFINITY, []),
        (INFINITY, -INFINITY, ["update"]),
        (5.0, INFINITY, ["update"]),
        (-INFINITY, 5.0, ["update"]),
        (None, 5.0, ["update"]),
        (None, None, []),
    ],
)
def test_a_number_has_changed_if_it_is_another_one(spark, before, after, changes):
    published, staged = (
        spark.createDataFrame([("a", value)], "key string, mean double")
        for value in (before, after)
    )
    rows = diff(staged, published, ["key"], place="test").collect()
    assert [row[OP].lower() for row in rows] == changes
