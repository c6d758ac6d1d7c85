"""Conditions by the thousand, as of thousands of channels, arrival days or ranges."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import functions as F

from strandline.conditions import any_of

pytestmark = [pytest.mark.spark, pytest.mark.story]
MANY = 1_200


def test_an_engine_takes_thousands_of_conditions_as_one(spark):
    """As a chain, Spark's analyzer ended with a StackOverflowError."""
    ids = F.col("id")
    ranges = (ids.between(4 * number, 4 * number + 1) for number in range(MANY))
    found = spark.range(8 * MANY).where(any_of(ranges, F.lit(False)))
    assert found.count() == 2 * MANY


def test_arrow_takes_thousands_of_conditions_as_one():
    of_id = ds.field("id")
    ranges = ((of_id >= 4 * number) & (of_id < 4 * number + 2) for number in range(MANY))
    rows = pa.table({"id": range(0, 4 * MANY, 1_000)})
    found = rows.filter(any_of(ranges, ds.scalar(False)))
    assert found.num_rows == rows.num_rows


def test_without_a_condition_none_holds():
    assert any_of([], False) is False
