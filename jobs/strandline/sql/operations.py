"""The operations of an expression, with the SQL of their operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from strandline.sql.calls import NotUnderstood
from strandline.sql.known_functions import CONVERSIONS
from strandline.sql.parsing import sql_of, tree_of

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.Between: "between",
    exp.In: "in",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.Case: "case",
    exp.If: "if",
    exp.Cast: "cast",
    exp.TryCast: "try_cast",
    exp.Extract: "extract",
    exp.Substring: "substring",
    exp.Overlay: "overlay",
}
"""The names of operations that are not function calls."""


_LITERALS = (exp.Literal, exp.RawString, exp.Null, exp.Boolean)


@dataclass(frozen=True)
class Operand:
    """An operand of an operation.

    Attributes:
        text: its SQL; None: it contains an argument of a lambda, so that it has no type alone.
        literal: its literal as written; None: it is not a literal.
    """

    text: str | None
    literal: str | None = None


@dataclass(frozen=True)
class Operation:
    """A call of a function, an operator, a CASE or a CAST.

    Attributes:
        name: its name in lower case, of `_OPERATORS` or of a function of Spark.
        operands: its operands; for a CASE its branches.
        to: the target type of a CAST in SQL.
        type_is_given: whether the type of its result does not matter, since it is directly cast or
            compared.
        is_distinct: whether it is an aggregate with DISTINCT.
        is_filtered: whether it is an aggregate with FILTER (WHERE …).
    """

    name: str
    operands: tuple[Operand, ...]
    to: str | None = None
    type_is_given: bool = False
    is_distinct: bool = False
    is_filtered: bool = False


def operations_of(text: str) -> tuple[Operation, ...] | NotUnderstood:
    """The operations of an expression, the outer ones first."""
    tree = tree_of(text)
    return tree if isinstance(tree, NotUnderstood) else tuple(_operations(tree, frozenset()))


def _operations(node: exp.Expr, bound: frozenset[str]) -> Iterator[Operation]:
    if isinstance(node, exp.Lambda):
        bound |= {name.name.lower() for name in node.expressions}
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    if not is_branch and (isinstance(node, exp.Anonymous) or type(node) in _OPERATORS):
        yield _operation(node, bound)
    for child in node.iter_expressions():
        yield from _operations(child, bound)


def _operation(node: exp.Expr, bound: frozenset[str]) -> Operation:
    operands = tuple(_operand(one, bound) for one in _operands(node))
    given = _type_is_given(node)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name in CONVERSIONS and len(operands) == 1:
            return Operation("cast", operands, name, given)
        return Operation(
            name,
            operands,
            type_is_given=given,
            is_distinct=any(isinstance(one, exp.Distinct) for one in node.expressions),
            is_filtered=isinstance(node.parent, exp.Filter) and node.arg_key == "this",
        )
    to = None
    if isinstance(node, exp.Cast):  # Spark's dialect writes TIME as if it were TIMESTAMP
        to = "time" if node.to.this is exp.DataType.Type.TIME else sql_of(node.to).lower()
    return Operation(_OPERATORS[type(node)], operands, to, given)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of an operation from left to right; for a CASE its branches only."""
    if isinstance(node, exp.Anonymous):
        return [inner for one in node.expressions for inner in _of_distinct(one)]
    if isinstance(node, exp.Case):
        branches = [one.args["true"] for one in node.args["ifs"]]
        return [*branches, *([default] if (default := node.args.get("default")) else [])]
    if isinstance(node, exp.If):
        found = [node.args.get("true"), node.args.get("false")]
        return [one for one in found if one is not None]
    if isinstance(node, exp.Cast):
        return [node.this]
    if isinstance(node, exp.Like | exp.ILike) and isinstance(node.parent, exp.Escape):
        return [node.this, node.expression, node.parent.expression]  # as of like(s, pattern, sign)
    return [one for one in node.iter_expressions() if not isinstance(one, exp.DataType)]


def _of_distinct(argument: exp.Expr) -> list[exp.Expr]:
    return argument.expressions if isinstance(argument, exp.Distinct) else [argument]


def _operand(node: exp.Expr, bound: frozenset[str]) -> Operand:
    plain = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    literal = sql_of(node) if isinstance(plain, _LITERALS) else None
    names = {one.name.lower() for one in node.find_all(exp.Identifier)}
    is_askable = not (names & bound) and not isinstance(node, exp.Lambda | exp.Star)
    return Operand(sql_of(node) if is_askable else None, literal)


def _type_is_given(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Cast | exp.Predicate | exp.Between | exp.In)
