"""The schemas of `from_json` with which Sail reads JSON as Spark does; see `types_on_sail`."""

from __future__ import annotations

import re

from sqlglot import exp

from strandline.sql.calls import NotUnderstood
from strandline.sql.operations import shallow_tree_of

_Type = exp.DataType.Type
_ALIKE = {_Type.TEXT, _Type.BIGINT, _Type.DOUBLE, _Type.BOOLEAN, _Type.ARRAY, _Type.STRUCT}
_OF_SPARK = re.compile(r"\bnot\s+null|\bdefault\b|_corrupt_record|\(", re.IGNORECASE)


def is_read_alike(schema: str | None) -> bool:
    r"""Whether each type of a written schema, such as `a STRING, m MAP<STRING, STRING>`, is known.

    Args:
        schema: as in the SQL, with `\'` for a quote; None: it is computed, as by schema_of_json().
    """
    if schema is None:
        return True
    schema = schema.replace("\\'", "'")
    tree = shallow_tree_of(f"CAST(x AS STRUCT<{schema}>)")
    if isinstance(tree, NotUnderstood) or _OF_SPARK.search(schema):  # a schema in JSON is neither
        return False
    return all(
        kind.this in _ALIKE or [inner.this for inner in kind.expressions] == [_Type.TEXT] * 2
        for kind in tree.find_all(exp.DataType)
    )
