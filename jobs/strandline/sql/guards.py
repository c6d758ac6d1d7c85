"""The parts of an expression that Spark computes for the rows alone that need them.

These are the later terms of AND and OR, the branches of a CASE, and the later operands of coalesce.
Sail computes such terms, and such parts of BOOLEAN, for every row, and so fails on values that the
expression excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from strandline.sql.as_written import span_of
from strandline.sql.calls import NotUnderstood
from strandline.sql.operations import (
    COMPARISONS,
    is_operation,
    name_of,
    operands_of,
    shallow_tree_of,
    typed_alone,
)

TypeOf = Callable[[str], str | None]
"""Gives the type of an expression over the table; None: it is not known."""

_CHOICES = {"case", "if", "coalesce", "nvl", "ifnull"}
_COMPARING = {*COMPARISONS, "equal_null", "nullif"}
_NEVER_FAIL = {
    *(*_CHOICES, *_COMPARING, "nvl2", "isnull", "isnotnull"),
    *("like", "ilike", "rlike", "startswith", "endswith", "contains"),
    *("lower", "upper", "ltrim", "rtrim", "btrim", "trim", "length", "char_length", "try_cast"),
    *("try_add", "try_subtract", "try_multiply", "try_divide"),
}
"""Operations that have a result for each value of their operands, if they cast no text."""


def may_fail(node: exp.Expr, type_of: TypeOf) -> bool:
    """Whether a part of an expression may fail on a value, as far as its operations say."""
    return any(
        isinstance(inner, exp.Bracket) or (is_operation(inner) and _may_fail(inner, type_of))
        for inner in node.walk()
    )


def _may_fail(node: exp.Expr, type_of: TypeOf) -> bool:
    return name_of(node) not in _NEVER_FAIL or _casts_a_text(compared_by(node), type_of)


def compared_by(node: exp.Expr) -> list[exp.Expr]:
    """The parts that an operation compares, as `x` and the values of CASE x WHEN …."""
    if isinstance(node, exp.Case):
        return [node.this, *(one.this for one in node.args["ifs"])] if node.this else []
    return operands_of(node) if name_of(node) in _COMPARING else []


def _casts_a_text(compared: Sequence[exp.Expr], type_of: TypeOf) -> bool:
    """Whether a text of a record stands beside another value, to whose type Spark casts it."""
    types = [type_alone(one, type_of) for one in compared]
    texts = [one for one, kind in zip(compared, types, strict=True) if kind == "string"]
    is_beside = not {*types} <= {"string", "void", None}
    return is_beside and not all(isinstance(one.unnest(), exp.Literal) for one in texts)


def type_alone(node: exp.Expr, type_of: TypeOf) -> str | None:
    """The type of a part, as far as it is known."""
    return None if (alone := typed_alone(node)) is None else type_of(alone)


def text_may_fail(text: str, type_of: TypeOf) -> bool:
    """Whether an expression may fail on a value; no, if it cannot be parsed."""
    tree = shallow_tree_of(text)
    return not isinstance(tree, NotUnderstood) and may_fail(tree, type_of)


def terms_of(node: exp.Expr, type_of: TypeOf) -> Sequence[exp.Expr]:
    """The terms of an AND or OR of which a later one may fail; none if there is no such term.

    All terms of a chain are those of its outermost part; the parts inside of it have none.

    Example:
        of `y <> 0 AND x / y > 1 AND z`: the three terms
    """
    if not isinstance(node, exp.And | exp.Or) or type(node.parent) is type(node):
        return ()
    terms = [*node.flatten(unnest=False)]
    known = all(span_of(term) is not None for term in terms)
    return terms if known and any(may_fail(term, type_of) for term in terms[1:]) else ()


def repeated_terms(node: exp.Expr, type_of: TypeOf) -> Sequence[exp.Expr]:
    """The terms of an AND or OR before the last one that may fail, which its guards repeat."""
    terms = terms_of(node, type_of)
    return terms[: max((n for n, term in enumerate(terms) if may_fail(term, type_of)), default=0)]


def next_to_guard(terms: Sequence[exp.Expr], type_of: TypeOf) -> int:
    """The number of terms before the first one, behind another, that may fail."""
    return next((n for n, term in enumerate(terms) if n and may_fail(term, type_of)), len(terms))


def is_choice(node: exp.Expr) -> bool:
    """Whether a part is a CASE, an IF, or a coalesce: not all of its parts are always needed."""
    return is_operation(node) and name_of(node) in _CHOICES
