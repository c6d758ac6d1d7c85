"""`from_json`, which Sail computes as Spark does for some schemas; see `types_on_sail`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline.sql.column_types import Problem
from strandline.sql.operations import Operation

_OTHER_TYPES = r"byte|date|dec|decimal|int|integer|numeric|short|smallint|time|timestamp\w*|tinyint"
_OTHER_FIELD = re.compile(rf"(?:[\w`]\s*:|[\w`]\s|<)\s*(?:{_OTHER_TYPES})\b(?!\s*:)", re.IGNORECASE)
"""Matches a schema with such a type, and none with a field that is called like it."""
_OF_SPARK = re.compile(
    r"not\s+null|_corrupt_record|\bmap\s*<(?!\s*string\s*,\s*string)", re.IGNORECASE
)


def read_json(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`from_json` with a schema of which Sail reads other values."""
    schema = operation.operands[1].literal if len(operation.operands) > 1 else None
    if schema is not None and schema.strip("'\"").lower().startswith("array"):
        return "gives an array where Spark gives null", "a schema with fields"
    if schema is not None and (_OTHER_FIELD.search(schema) or _OF_SPARK.search(schema)):
        return (
            "takes other values for DECIMAL, INT, times and NOT NULL",
            "a schema with STRING and BIGINT, and a cast of the field",
        )
    if len(operation.operands) > 2:
        return "leaves out most options", "from_json(x, 'field STRING'), and casts of the fields"
    return None
