"""The schemas of `from_json` with which Sail reads JSON as Spark does; see `types_on_sail`."""

from __future__ import annotations

import re

_TYPE = r"(?:STRING|BIGINT|LONG|DOUBLE|BOOLEAN|<>)"
_NAME = r"(?!`?_corrupt_record\b)(?:\w+|`[^`]+`)"
_COMMENT = r"""(?:\s+COMMENT\s+(?:'[^']*'|"[^"]*"))?"""
_FIELD = rf"{_NAME}(?:\s*:\s*|\s+){_TYPE}{_COMMENT}"
_FIELDS = rf"\s*{_FIELD}(?:\s*,\s*{_FIELD})*\s*"
_MAP = r"MAP\s*<\s*STRING\s*,\s*STRING\s*>"
_NESTED = re.compile(rf"\b(?:{_MAP}|ARRAY\s*<\s*{_TYPE}\s*>|STRUCT\s*<{_FIELDS}>)", re.IGNORECASE)
"""Matches a map, and an array or a struct of which each nested type is written as `<>`."""
_SCHEMA = re.compile(rf"\s*<>\s*|{_FIELDS}", re.IGNORECASE)


def is_read_alike(schema: str) -> bool:
    r"""Whether each type of a written schema, such as `a STRING, m MAP<STRING, STRING>`, is known.

    Args:
        schema: as in the SQL, with `\'` for a quote.
    """
    schema, before = schema.replace("\\'", "'"), ""
    while schema != before:
        schema, before = _NESTED.sub("<>", schema), schema
    return _SCHEMA.fullmatch(schema) is not None
