"""Floating-point numbers in SQL so that equal ones are the same on each engine."""

from __future__ import annotations

from strandline.sql.column_types import FLOATS


def comparable(text: str, kind: str | None) -> str | None:
    """A number, or an array of numbers, with one zero and one NaN; None: it is no such value.

    Args:
        text: the value in SQL.
        kind: its type, by its name in Spark SQL.
    """
    if kind in FLOATS:
        return f"nanvl({text} + CAST(0 AS {kind}), CAST('NaN' AS {kind}))"
    element = (kind or "").removeprefix("array<").removesuffix(">")
    if element in FLOATS:
        return f"transform({text}, _strandline_x -> {comparable('_strandline_x', element)})"
    return None
