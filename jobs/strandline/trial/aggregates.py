"""Spark SQL aggregates over rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from strandline.trial.expressions import not_computed, of_tree, parsed
from strandline.trial.operators import Evaluate, Row
from strandline.trial.values import ThrownError

Aggregate = Callable[[Sequence[Row]], Any]
"""Computes an aggregate of some rows."""


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return None
    total = math.fsum(values) if any(isinstance(v, float) for v in values) else sum(values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        msg = "sum: more than 64 bits"
        raise ThrownError(msg)
    return total


def _mean(values: Sequence[Any]) -> float | None:
    return math.fsum(values) / len(values) if values else None


_AGGREGATES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": len,
    "sum": _sum,
    "avg": _mean,
    "mean": _mean,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "count_if": lambda values: sum(value is True for value in values),
    **dict.fromkeys(("bool_and", "every"), lambda values: all(values) if values else None),
    **dict.fromkeys(("bool_or", "some", "any"), lambda values: any(values) if values else None),
}
"""The aggregates over non-null values."""
_PART = "strandline_part_"


def aggregate(text: str, place: str) -> Aggregate:
    """A function that computes an aggregate, such as `sum(a) / count(*)`.

    Args:
        text: Spark SQL.
        place: the place of the expression, for errors.

    Raises:
        InputError: it cannot be parsed, or calls a function that tests do not support.
    """
    parts: dict[str, Aggregate] = {}
    whole = of_tree(
        parsed(text, place).transform(lambda node: _as_column(node, parts, place)), place
    )

    def value(rows: Sequence[Row]) -> Any:
        return whole({name: part(rows) for name, part in parts.items()})

    return value


def _as_column(node: exp.Expr, parts: dict[str, Aggregate], place: str) -> exp.Expr:
    """A call of an aggregate replaced by a column with its value; other parts unchanged."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() not in _AGGREGATES:
        return node
    wanted = None
    if isinstance(node, exp.Filter):
        wanted = of_tree(node.expression.this, place)
    name = f"{_PART}{len(parts)}"
    parts[name] = _over_rows(call, wanted, place)
    return exp.column(name)


def _over_rows(call: exp.Anonymous, wanted: Evaluate | None, place: str) -> Aggregate:
    apply = _AGGREGATES[str(call.this).lower()]
    argument, is_distinct = (call.expressions or [exp.Null()])[0], False
    if isinstance(argument, exp.Distinct):
        argument, is_distinct = argument.expressions[0], True
    counts_all = isinstance(argument, exp.Star)
    if len(call.expressions) != 1 or (counts_all and str(call.this).lower() != "count"):
        raise not_computed(call, place)
    of = (lambda row: 1) if counts_all else of_tree(argument, place)

    def value(rows: Sequence[Row]) -> Any:
        chosen = [row for row in rows if wanted is None or wanted(row) is True]
        found = [one for one in map(of, chosen) if one is not None]
        return apply([*dict.fromkeys(found)] if is_distinct else found)

    return value
