"""`from_json`, which Sail computes as Spark does for some schemas; see `types_on_sail`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from strandline.sql.calls import NotUnderstood
from strandline.sql.column_types import Problem
from strandline.sql.operations import Operation, shallow_tree_of

_Type = exp.DataType.Type
_ALIKE = {_Type.TEXT, _Type.BIGINT, _Type.DOUBLE, _Type.BOOLEAN, _Type.ARRAY, _Type.STRUCT}
_OF_SPARK = re.compile(r"\bnot\s+null|\bdefault\b|_corrupt_record|\(", re.IGNORECASE)
_OTHERWISE = (
    "takes other values for types such as DECIMAL, INT and times, and for NOT NULL",
    "a schema with STRING, BIGINT, DOUBLE and BOOLEAN, and a cast of the field",
)


def read_json(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`from_json` with a schema of which Sail reads other values, or with options."""
    literal = operation.operands[1].literal if len(operation.operands) > 1 else None
    if literal is not None:
        schema = literal[1:-1].replace("\\'", "'")
        if schema.strip().lower().startswith("array"):
            return "gives an array where Spark gives null", "a schema with fields"
        if not _is_read_alike(schema):
            return _OTHERWISE
    if len(operation.operands) > 2:
        return "leaves out most options", "from_json(x, 'field STRING'), and casts of the fields"
    return None


def _is_read_alike(schema: str) -> bool:
    """Whether each type of a schema, such as `a STRING, m MAP<STRING, STRING>`, is known."""
    tree = shallow_tree_of(f"CAST(x AS STRUCT<{schema}>)")
    if isinstance(tree, NotUnderstood) or _OF_SPARK.search(schema):  # a schema in JSON is neither
        return False
    return all(
        kind.this in _ALIKE or [inner.this for inner in kind.expressions] == [_Type.TEXT] * 2
        for kind in tree.find_all(exp.DataType)
    )
