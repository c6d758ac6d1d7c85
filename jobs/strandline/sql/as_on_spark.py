"""Expressions rewritten for Sail, so that it gives Spark's results where its own differ.

What can be neither computed as it is nor rewritten is refused; see `on_sail`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from strandline.sql import sail_numbers, sail_times
from strandline.sql.comparable import comparable
from strandline.sql.operations import Operation, Place
from strandline.sql.parsing import sql_of
from strandline.sql.patterns import as_rust
from strandline.sql.rewriting import Rule, TypeOf, Types, put, rewritten
from strandline.sql.ties import decided_ties

_COMPARING = {
    *("=", "<>", "<", "<=", ">", ">=", "<=>", "between", "in"),
    *("equal_null", "greatest", "least", "nullif"),
    *("array_distinct", "array_except", "array_intersect", "array_position", "array_remove"),
    *("array_agg", "array_max", "array_min", "array_sort", "array_union", "arrays_overlap"),
    *("collect_list", "collect_set", "sort_array"),
}
"""Operations that compare numbers: Sail knows several NaN, and in arrays two zeros."""
_MATCHING = {
    *("regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_like"),
    *("regexp_replace", "regexp_substr", "rlike", "split"),
}
"""Operations with a regular expression as their second operand."""
_WRITTEN: dict[str, tuple[Callable[[Operation, Types], str | None], ...]] = {
    **dict.fromkeys(("+", "-", "*"), (sail_numbers.checked,)),
    "sum": (sail_numbers.summed,),
    **dict.fromkeys(("max", "min"), (sail_numbers.extreme,)),
    **dict.fromkeys(("median", "percentile"), (sail_numbers.share,)),
    "round": (sail_numbers.rounded,),
    "~": (sail_numbers.inverted,),
    **dict.fromkeys(("unix_millis", "unix_seconds"), (sail_times.since_1970,)),
    **dict.fromkeys(("timestamp_millis", "timestamp_seconds"), (sail_times.after_1970,)),
    **dict.fromkeys(("date_diff", "datediff", "timestampdiff"), (sail_times.whole_units,)),
    **dict.fromkeys(
        ("cast", "try_cast"),
        (
            sail_numbers.to_decimal,
            sail_times.since_1970,
            sail_times.of_text,
            sail_times.to_time,
        ),
    ),
}
"""How the operations are written that Sail computes otherwise: the first that gives SQL."""


def as_on_spark(text: str, type_of: TypeOf) -> str:
    """An expression that gives on Sail what another one gives on Spark.

    Example:
        `l + 1` of a BIGINT: `CAST(CAST(l AS DECIMAL(20, 0)) + CAST(1 AS DECIMAL(20, 0)) AS BIGINT)`
    """
    return rewritten(text, type_of, _rules_of)


def _rules_of(operation: Operation) -> Iterator[Rule]:
    yield from decided_ties(operation)
    if operation.is_distinct or operation.name in _COMPARING:
        yield _compared
    if operation.name in _WRITTEN:
        yield _written
    if operation.name in _MATCHING:
        yield _matched


def _compared(place: Place, types: Types) -> bool:
    """Compare numbers with one zero and one NaN."""
    changed = False
    for node, kind in zip(place.operands, types, strict=True):
        value = None if _is_literal(node) else comparable(sql_of(node), kind)
        if value is not None:
            put(node, value)
            changed = True
    return changed


def _is_literal(node: exp.Expr) -> bool:
    """Whether a node is a number as written, such as 1.5D, which is parsed as a CAST."""
    return isinstance(node.this if isinstance(node, exp.Cast) else node, exp.Literal)


def _matched(place: Place, types: Types) -> bool:
    """Match texts by a regular expression of Rust."""
    pattern = place.operands[1] if len(place.operands) > 1 else None
    if not isinstance(pattern, exp.Literal | exp.RawString):
        return False
    written = as_rust(pattern.name)
    if written != pattern.name:
        pattern.replace(exp.Literal.string(written))
    return written != pattern.name


def _written(place: Place, types: Types) -> bool:
    """Write an operation otherwise."""
    operation = place.operation
    texts = (write(operation, types) for write in _WRITTEN[operation.name])
    text = next((one for one in texts if one is not None), None)
    if text is not None:
        put(place.whole, text)
    return text is not None
