"""The reading of a Spark SQL expression: its calls and columns, each text parsed once."""

from __future__ import annotations

from functools import lru_cache

from strandline.sql.calls import NotUnderstood, Sql


@lru_cache(maxsize=10_000)
def read_sql(text: str) -> Sql | NotUnderstood:
    """The function calls and columns of an expression; the first call imports sqlglot."""
    from strandline.sql.parsing import parse  # noqa: PLC0415

    return parse(text)
