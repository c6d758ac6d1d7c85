"""The landing rows in rows of quarantine."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from strandline.engine.records.quarantine import as_landed

pytestmark = pytest.mark.spark

LANDING = T.StructType().add("amount", T.LongType()).add("Amount__Double", T.DoubleType())
SECOND = {"amount": ["amount__double"]}


def read_back(session, columns: str, *rows):
    found = as_landed(session.createDataFrame(rows, columns), LANDING, SECOND)
    return [tuple(row)[:2] for row in found.collect()]


def test_the_second_column_of_another_one_is_not_read_whatever_its_case(session):
    kept = "amount bigint, amount__double double"
    assert read_back(session, kept, (None, 2.5), (1, None)) == [(2, None), (1, None)]


def test_rows_of_the_source_that_has_a_column_of_that_name_itself_keep_its_values(session):
    kept = "amount bigint, amount__double double, input string"
    assert read_back(session, kept, (1, 2.5, "left")) == [(1, 2.5)]
