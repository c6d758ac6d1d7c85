"""The parts of an expression that Spark computes for the rows alone that need them.

These are the later terms of AND and OR, and the branches of a CASE. Sail computes such terms, and
the branches of a boolean CASE, for every row, and so fails on values that the expression excludes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from strandline.sql.as_written import span_of
from strandline.sql.calls import NotUnderstood
from strandline.sql.operations import is_operation, name_of, shallow_tree_of

_NEVER_FAIL = {
    *("=", "<>", "<", "<=", ">", ">=", "<=>", "between", "in", "like", "ilike", "rlike"),
    *("case", "if", "coalesce", "nvl", "ifnull", "nvl2", "nullif", "isnull", "isnotnull"),
    *("equal_null", "lower", "upper", "ltrim", "rtrim", "btrim", "length", "char_length"),
    *("startswith", "endswith", "contains", "try_cast"),
    *("try_add", "try_subtract", "try_multiply", "try_divide"),
}
"""Operations that have a result for each value of their operands."""


def may_fail(node: exp.Expr) -> bool:
    """Whether a part of an expression may fail on a value, as far as its operations say."""
    return any(
        isinstance(inner, exp.Bracket)
        or (is_operation(inner) and name_of(inner) not in _NEVER_FAIL)
        for inner in node.walk()
    )


def text_may_fail(text: str) -> bool:
    """Whether an expression may fail on a value; no, if it cannot be parsed."""
    tree = shallow_tree_of(text)
    return not isinstance(tree, NotUnderstood) and may_fail(tree)


def terms_of(node: exp.Expr) -> Sequence[exp.Expr]:
    """The terms of an AND or OR of which a later one may fail; none if there is no such term.

    Example:
        of `y <> 0 AND x / y > 1 AND z`: the three terms
    """
    if not isinstance(node, exp.And | exp.Or):
        return ()
    terms = [*node.flatten(unnest=False)]
    known = all(span_of(term) is not None for term in terms)
    return terms if known and any(map(may_fail, terms[1:])) else ()


def next_to_guard(terms: Sequence[exp.Expr]) -> int:
    """The number of terms before the first one, behind another, that may fail."""
    return next((n for n, term in enumerate(terms) if n and may_fail(term)), len(terms))


def is_choice_that_may_fail(node: exp.Expr) -> bool:
    """Whether a part is a CASE, or an IF, with a part that may fail."""
    is_branch = isinstance(node.parent, exp.Case)
    is_choice = isinstance(node, exp.Case) or (isinstance(node, exp.If) and not is_branch)
    return is_choice and may_fail(node)
