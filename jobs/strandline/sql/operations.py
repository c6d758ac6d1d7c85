"""The operations of an expression, with the SQL of their operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from strandline.sql.calls import NotUnderstood
from strandline.sql.known_functions import CONVERSIONS
from strandline.sql.lambdas import Bound, bound_by, with_values
from strandline.sql.parsing import sql_of, tree_of

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.BitwiseNot: "~",
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
        text: its SQL.
        typed: SQL of its type that stands alone: with values for the arguments of lambdas; None:
            there is none, as for a lambda itself.
        literal: its literal as written; None: it is not a literal.
    """

    text: str
    typed: str | None
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
        filtered: the FILTER (WHERE …) behind an aggregate, with a blank before it; or empty.
    """

    name: str
    operands: tuple[Operand, ...]
    to: str | None = None
    type_is_given: bool = False
    is_distinct: bool = False
    filtered: str = ""


@dataclass(frozen=True)
class Place:
    """An operation in the syntax tree of an expression.

    Attributes:
        node: the operation's node.
        bound: the arguments of the lambdas around it.
    """

    node: exp.Expr
    bound: Bound

    @property
    def whole(self) -> exp.Expr:
        """The operation's node, with the FILTER behind an aggregate."""
        return self.node if (above := _filter_of(self.node)) is None else above

    @property
    def operation(self) -> Operation:
        """The operation, as it is in the tree now."""
        node, operands = self.node, tuple(_operand(one, self.bound) for one in self.operands)
        given = _type_is_given(node)
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name in CONVERSIONS and len(operands) == 1:
                return Operation("cast", operands, name, given)
            above = _filter_of(node)
            return Operation(
                name,
                operands,
                type_is_given=given,
                is_distinct=any(isinstance(one, exp.Distinct) for one in node.expressions),
                filtered="" if above is None else f" FILTER ({sql_of(above.expression)})",
            )
        to = None
        if isinstance(node, exp.Cast):  # Spark's dialect writes TIME as if it were TIMESTAMP
            to = "time" if node.to.this is exp.DataType.Type.TIME else sql_of(node.to).lower()
        return Operation(_OPERATORS[type(node)], operands, to, given)

    @property
    def operands(self) -> list[exp.Expr]:
        """The nodes of its operands from left to right; for a CASE its branches only."""
        return _operands(self.node)


def operations_of(text: str) -> tuple[Operation, ...] | NotUnderstood:
    """The operations of an expression, the outer ones first."""
    tree = tree_of(text)
    if isinstance(tree, NotUnderstood):
        return tree
    return tuple(place.operation for place in places_of(tree, {}))


def places_of(node: exp.Expr, bound: Bound) -> Iterator[Place]:
    """The operations below a node, the outer ones first; `bound`: see `Place`."""
    if isinstance(node, exp.Lambda):
        bound = {**bound, **bound_by(node, bound)}
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    if not is_branch and (isinstance(node, exp.Anonymous) or type(node) in _OPERATORS):
        yield Place(node, bound)
    for child in node.iter_expressions():
        yield from places_of(child, bound)


def _filter_of(node: exp.Expr) -> exp.Filter | None:
    above = node.parent
    return above if isinstance(above, exp.Filter) and node.arg_key == "this" else None


def _operands(node: exp.Expr) -> list[exp.Expr]:
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
    return [one for one in node.iter_expressions() if not isinstance(one, exp.DataType)]


def _of_distinct(argument: exp.Expr) -> list[exp.Expr]:
    return argument.expressions if isinstance(argument, exp.Distinct) else [argument]


def _operand(node: exp.Expr, bound: Bound) -> Operand:
    plain = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    literal = sql_of(node) if isinstance(plain, _LITERALS) else None
    is_value = not isinstance(node, exp.Lambda | exp.Star)
    return Operand(sql_of(node), with_values(node, bound) if is_value else None, literal)


def _type_is_given(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Cast | exp.Predicate | exp.Between | exp.In)
