"""The operations of an expression, with the SQL of their operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from strandline.sql.as_written import span_of
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
    exp.Neg: "negative",
    exp.BitwiseNot: "~",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",  # IS DISTINCT FROM compares in the same way
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
    exp.StrPosition: "position",
    exp.Trim: "trim",
    exp.Collate: "collate",
}
"""The names of operations that are not function calls."""
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "between", "in")
"""Operations that compare values."""
_DEEPEST = 100
"""The most levels of a tree; `a + b + c` has three."""
_LITERALS = (exp.Literal, exp.RawString, exp.Null, exp.Boolean)


@dataclass(frozen=True)
class Operand:
    """An operand of an operation.

    Attributes:
        text: SQL with its type: as written, or with a value for each argument of a lambda in it;
            None: there is none, as for a lambda itself.
        literal: its literal in the dialect of sqlglot; None: it is not a literal.
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
        has_places: whether its operands have places in the text, unlike the `x` of `x::INT`; the
            unit of EXTRACT needs none.
    """

    name: str
    operands: tuple[Operand, ...]
    to: str | None = None
    type_is_given: bool = False
    is_distinct: bool = False
    is_filtered: bool = False
    has_places: bool = True

    def written(self, place: int) -> str | None:
        """The literal of an operand, a text without its quotes; None: it is none, or missing."""
        literal = self.operands[place].literal if place < len(self.operands) else None
        return literal if literal is None else literal.removeprefix("'").removesuffix("'")

    def word(self, place: int) -> str:
        """The SQL of an operand in lower case without quotes, such as the unit of EXTRACT."""
        text = self.operands[place].text if place < len(self.operands) else None
        return (text or "").strip("'\"").lower()


def operations_of(text: str) -> tuple[Operation, ...] | NotUnderstood:
    """The operations of an expression, the outer ones first."""
    tree = shallow_tree_of(text)
    return tree if isinstance(tree, NotUnderstood) else tuple(map(operation_of, places_of(tree)))


@lru_cache(maxsize=1_000)
def shallow_tree_of(text: str) -> exp.Expr | NotUnderstood:
    """The syntax tree of an expression that is not nested more deeply than its readers go.

    It is parsed once for all its readers, none of which may change it.
    """
    tree = tree_of(text)
    if isinstance(tree, NotUnderstood):
        return tree
    level, nodes = 0, [tree]
    while nodes:
        level, nodes = level + 1, [inner for node in nodes for inner in node.iter_expressions()]
        if level > _DEEPEST:
            return NotUnderstood(f"it is nested in more than {_DEEPEST} levels", is_wrong=False)
    return tree


def places_of(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of an expression that are operations, the outer ones first."""
    return filter(is_operation, tree.dfs())


def is_operation(node: exp.Expr) -> bool:
    """Whether a part is an operation; a branch of a CASE is none."""
    if isinstance(node, exp.If):
        return not isinstance(node.parent, exp.Case)
    return isinstance(node, exp.Anonymous) or type(node) in _OPERATORS


def name_of(node: exp.Expr) -> str:
    """The name of an operation, as in `Operation`."""
    if not isinstance(node, exp.Anonymous):
        return _OPERATORS[type(node)]
    name = node.name.lower()
    return "cast" if name in CONVERSIONS and len(node.expressions) == 1 else name


def operation_of(node: exp.Expr) -> Operation:
    """The operation that a part is."""
    operands = tuple(map(_operand, operands_of(node)))
    given = _type_is_given(node)
    to = None
    if isinstance(node, exp.Cast):  # Spark's dialect writes TIME as if it were TIMESTAMP
        to = "time" if node.to.this is exp.DataType.Type.TIME else sql_of(node.to).lower()
    elif name_of(node) == "cast":
        to = node.name.lower()
    return Operation(
        name_of(node),
        operands,
        to,
        given,
        is_distinct=any(isinstance(one, exp.Distinct) for one in node.expressions),
        is_filtered=isinstance(node.parent, exp.Filter) and node.arg_key == "this",
        has_places=all(
            span_of(one) is not None for one in operands_of(node) if not isinstance(one, exp.Var)
        ),
    )


def operands_of(node: exp.Expr) -> list[exp.Expr]:
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
        return [node.this, node.expression, node.parent.expression]  # as of like(s, p, escape)
    return [one for one in node.iter_expressions() if not isinstance(one, exp.DataType)]


def _of_distinct(argument: exp.Expr) -> list[exp.Expr]:
    return argument.expressions if isinstance(argument, exp.Distinct) else [argument]


def _operand(node: exp.Expr) -> Operand:
    plain = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    literal = node.sql(dialect="spark") if isinstance(plain, _LITERALS) else None
    return Operand(typed_alone(node), literal)


def typed_alone(node: exp.Expr) -> str | None:
    """SQL with the type of a part, without the arguments of lambdas; None: there is none.

    Example:
        for the `x` of `filter(a, x -> x > 1)`: `transform(a, (x) -> x)[0]`
    """
    if isinstance(node, exp.Lambda | exp.Star):
        return None
    text, names = sql_of(node), _names_in(node)
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        arguments = [one.name for one in around.expressions]
        if names & {name.lower() for name in arguments}:
            arrays = _arrays_of(around)
            if len(arrays) < len(arguments):
                return None
            for name, array in zip(arguments, arrays, strict=False):
                text = f"transform({array}, ({name}) -> {text})[0]"
            names |= _names_in(around.parent or around)
        around = around.find_ancestor(exp.Lambda)
    return text


def has_lambda(text: str) -> bool:
    """Whether an expression contains a lambda, as in `exists(a, x -> x > 1)`."""
    tree = shallow_tree_of(text)
    return not isinstance(tree, NotUnderstood) and tree.find(exp.Lambda) is not None


def _arrays_of(function: exp.Lambda) -> list[str]:
    """Arrays of elements of the types of a lambda's arguments; empty: they are not known."""
    call = function.parent
    if not isinstance(call, exp.Anonymous) or len(call.expressions) < 2:
        return []
    first, second = map(sql_of, call.expressions[:2])
    match call.name.lower():
        case "exists" | "filter" | "forall" | "transform":
            return [first, "array(0)"]
        case "array_sort":
            return [first, first]
        case "aggregate" | "reduce":
            return [f"array({second})", first]
        case "map_filter":
            return [f"map_keys({first})", f"map_values({first})"]
    return []


def _names_in(node: exp.Expr) -> set[str]:
    return {one.name.lower() for one in node.find_all(exp.Identifier)}


def _type_is_given(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, exp.Case):  # its subject is compared
        return above.this is not None and above.this.unnest() is node.unnest()
    return isinstance(above, exp.Cast | exp.Predicate | exp.Between | exp.In)
