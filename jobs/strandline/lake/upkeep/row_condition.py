"""A user's condition on a row, which is parsed, checked node by node, and rewritten.

Only the rewritten text reaches a query, so that it cannot contain more than was checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from sqlglot import exp, parse_one, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from strandline.errors import InputError

_PLACE = "--where"
_WAY_OUT = """write one such as device = 'd-1'; odd names of columns in double quotes: "a b" = 1"""
_OPERATORS = (
    *(exp.And, exp.Or, exp.Not, exp.Paren),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe),
)
_OPERANDS = (
    *(exp.Column, exp.Identifier, exp.Dot, exp.Bracket),
    *(exp.Literal, exp.Boolean, exp.Null, exp.Cast, exp.TryCast, exp.DataType),
)
_FUNCTIONS = (
    *(exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring, exp.Abs, exp.Coalesce),
    *(exp.DateTrunc, exp.TimestampTrunc, exp.Var, exp.StartsWith, exp.Contains),
)
_ALLOWED = (*_OPERATORS, *_OPERANDS, *_FUNCTIONS)
_TYPES = {
    *(exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT),
    *(exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.BOOLEAN),
    *(exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE, exp.DType.TIMESTAMP),
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_CHARACTERS = 10_000


class _WithBackticks(Dialect):
    """SQL whose names may also stand in backticks, as in Spark; it is rewritten in plain SQL."""

    class Tokenizer(tokens.Tokenizer):
        """The tokenizer, with the characters that enclose a name."""

        IDENTIFIERS: ClassVar = ['"', "`"]


def condition_on_row(text: str) -> str:
    """A condition rewritten in SQL, of columns, literals, operators and some functions.

    Examples:
        >>> condition_on_row("device='d-1'")
        "device = 'd-1'"

    Raises:
        InputError: it is empty, not a condition, reads another table, or has no column.
    """
    if len(text) > _MOST_CHARACTERS:
        raise _refused(f"it has more than {_MOST_CHARACTERS:,} characters")
    try:
        tree = parse_one(text, into=exp.Condition, dialect=_WithBackticks)
    except SqlglotError:
        raise _refused("it is not a single, complete condition") from None
    except RecursionError:
        raise _refused("it is too deep") from None
    for problem in _problems(tree):
        raise _refused(problem)
    if tree.find(exp.Column) is None:
        raise _refused("no column is compared")
    return tree.sql(comments=False)


def _problems(tree: exp.Expr) -> Iterator[str]:
    """The parts of a condition that are not allowed."""
    for node in tree.walk():
        if node.comments:
            yield "it holds a comment"
        if not isinstance(node, _ALLOWED):
            yield f"{type(node).__name__} has no place in it: {_shown(node)}"
        elif isinstance(node, exp.DataType) and node.this not in _TYPES:
            yield f"{_shown(node)} is not a type for a cast here"
        elif isinstance(node, exp.In) and not node.expressions:
            yield f"IN takes a list of values: {_shown(node)}"
        elif (
            isinstance(node, exp.Identifier) and not node.quoted and not _PLAIN.fullmatch(node.name)
        ):
            yield f"{node.name!r} is not a name of a column; put it into double quotes"


def _shown(node: exp.Expr) -> str:
    return node.sql(comments=False)[:80]


def _refused(problem: str) -> InputError:
    return InputError(_PLACE, f"no condition on a row ({problem})", _WAY_OUT)
