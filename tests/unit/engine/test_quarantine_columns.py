"""The names of landing columns in quarantine, of one landing table and of two."""

from __future__ import annotations

import pytest
from joined import COGROUP, JOIN
from pyspark.sql import types as T

from strandline.engine.records.quarantine import as_quarantined, second_of_two
from strandline.spec import parse_spec


def columns(**kinds: str) -> T.StructType:
    of = {"text": T.StringType(), "double": T.DoubleType(), "long": T.LongType()}
    return T.StructType([T.StructField(name, of[kind]) for name, kind in kinds.items()])


@pytest.mark.parametrize(
    ("left", "right", "second"),
    [
        ({"amount": "long"}, {"amount": "long"}, {}),
        ({"amount": "long"}, {"amount": "double"}, {"amount__double": "amount"}),
        (
            {"amount": "long", "amount__double": "text"},
            {"amount": "double"},
            {"amount__double_2": "amount"},
        ),
        # a name of quarantine's own; of late rows of windows over both the latter
        (
            {"reason": "text"},
            {"reason": "double"},
            {"source_reason__double": "source_reason", "reason__double": "source_reason"},
        ),
    ],
)
@pytest.mark.parametrize("content", [JOIN, COGROUP])
def test_second_columns_of_two_landing_tables_are_named_as_their_rows_are(
    content, left, right, second
):
    spec = parse_spec(content, origin="near.yaml")
    sides = {"left": columns(**left), "right": columns(**right)}
    assert second_of_two(sides, spec) == second
    assert second_of_two({"": sides["left"]}, spec) == {}


def test_a_landing_column_with_a_name_of_quarantine_is_called_the_sources():
    landing = columns(Reason="text", source_reason="long", amount="double")
    names = as_quarantined(landing).names
    assert names == ["source_source_Reason", "source_reason", "amount"]
