"""A subset of Spark SQL over rows in memory, for tests of pipelines; the rest is refused by name.

Values are Python's: int, float, bool, str, datetime (UTC), date; None is null. Decimals are
computed as doubles. `tests/unit/trial/test_as_spark.py` compares the results with Spark's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from operator import neg
from typing import Any

from sqlglot import exp

from strandline.errors import InputError
from strandline.sql.calls import NotUnderstood
from strandline.sql.parsing import sql_of, tree_of
from strandline.trial import operators
from strandline.trial.operators import (
    CALLED_LIKE_TYPES,
    FUNCTIONS,
    OF_NULLS,
    Evaluate,
    Row,
    bits_of,
    substring,
    within,
)
from strandline.trial.values import (
    CASTS,
    ThrownError,
    cast_to,
    compared,
    divided,
    plus,
    remainder,
    times,
    to_text,
    whole_division,
)

_SECONDS = {
    "MICROSECOND": 1e-6,
    "MILLISECOND": 1e-3,
    "SECOND": 1,
    "MINUTE": 60,
    "HOUR": 3_600,
    "DAY": 86_400,
    "WEEK": 604_800,
}


def evaluator(text: str, place: str) -> Evaluate:
    """A function that computes an expression on a row; names of columns ignore case.

    Args:
        text: Spark SQL.
        place: the place of the expression, for errors.

    Raises:
        InputError: it cannot be parsed, or calls a function that tests do not support.
    """
    return of_tree(parsed(text, place), place)


def parsed(text: str, place: str) -> exp.Expr:
    """An expression's tree.

    Raises:
        InputError: it cannot be parsed.
    """
    tree = tree_of(text)
    if isinstance(tree, NotUnderstood):
        raise InputError(place, f"{text!r}: {tree.reason}", "correct the expression")
    return tree


def of_tree(tree: exp.Expr, place: str) -> Evaluate:
    """A function that computes a part of an expression; see `evaluator`."""
    if isinstance(tree, exp.Anonymous):
        return _call(tree, place)
    make = _MAKERS.get(type(tree))
    if make is None:
        raise not_computed(tree, place)
    return make(tree, place)


def not_computed(tree: exp.Expr, place: str) -> InputError:
    """The error for a part that tests do not support."""
    what = f"{tree.this}()" if isinstance(tree, exp.Anonymous) else sql_of(tree)
    way_out = "leave it out of the test's pipeline, or try the pipeline with strandline plan"
    return InputError(place, f"strandline test does not compute {what}", way_out)


def _column(tree: exp.Expr, place: str) -> Evaluate:
    if tree.args.get("table"):
        raise not_computed(tree, place)
    name = tree.name

    def value(row: Row) -> Any:
        if name in row:
            return row[name]
        same = [own for own in row if own.lower() == name.lower()]
        if len(same) != 1:
            known = ", ".join(row)
            raise InputError(place, f"no column {name!r}", f"the test's rows have {known}")
        return row[same[0]]

    return value


def _literal(tree: exp.Expr, place: str) -> Evaluate:
    text, is_text = str(tree.this), bool(tree.args.get("is_string"))
    value: Any = text if is_text else int(text) if text.isdecimal() else float(text)
    return lambda row: value


def _strict(apply: Callable[..., Any]) -> Callable[[exp.Expr, str], Evaluate]:
    """A binary operator that is null if an operand is null."""
    return lambda tree, place: _strict_call(
        apply, [of_tree(tree.this, place), of_tree(tree.expression, place)]
    )


def _of_numbers(apply: Callable[[Any, Any], Any]) -> Callable[[exp.Expr, str], Evaluate]:
    """An operator of numbers, of which whole ones may overflow."""
    return lambda tree, place: _strict(within(bits_of(tree), apply))(tree, place)


def _of_two(join: Callable[[Evaluate, Evaluate], Evaluate]) -> Callable[[exp.Expr, str], Evaluate]:
    """A binary condition."""
    return lambda tree, place: join(of_tree(tree.this, place), of_tree(tree.expression, place))


def _is(tree: exp.Expr, place: str) -> Evaluate:
    of = of_tree(tree.this, place)
    if isinstance(tree.expression, exp.Null):
        return lambda row: of(row) is None
    if isinstance(tree.expression, exp.Boolean):
        wanted = bool(tree.expression.this)
        return lambda row: of(row) is wanted
    raise not_computed(tree, place)


def _between(tree: exp.Expr, place: str) -> Evaluate:
    low = exp.GTE(this=tree.this, expression=tree.args["low"])
    high = exp.LTE(this=tree.this, expression=tree.args["high"])
    return operators.both(of_tree(low, place), of_tree(high, place))


def _in(tree: exp.Expr, place: str) -> Evaluate:
    if not tree.expressions:
        raise not_computed(tree, place)
    return operators.among(
        of_tree(tree.this, place), [of_tree(one, place) for one in tree.expressions]
    )


def _case(tree: exp.Expr, place: str) -> Evaluate:
    subject, default = tree.this, tree.args.get("default")
    branches = []
    for one in tree.args["ifs"]:
        test = exp.EQ(this=subject, expression=one.this) if subject is not None else one.this
        branches.append((of_tree(test, place), of_tree(one.args["true"], place)))
    otherwise = of_tree(default, place) if default is not None else None
    return operators.chosen(branches, otherwise)


def _if(tree: exp.Expr, place: str) -> Evaluate:
    return _case(exp.Case(ifs=[tree], default=tree.args.get("false")), place)


def _interval(tree: exp.Expr, place: str) -> Evaluate:
    unit = str(tree.args.get("unit") or "").upper().removesuffix("S")
    amount = tree.this
    if unit not in _SECONDS or not isinstance(amount, exp.Literal):
        raise not_computed(tree, place)
    try:
        length = timedelta(seconds=float(amount.this) * _SECONDS[unit])
    except ValueError:
        raise not_computed(tree, place) from None
    return lambda row: length


def _cast(tree: exp.Expr, place: str) -> Evaluate:
    of, kind = of_tree(tree.this, place), str(tree.args["to"].sql(dialect="spark")).upper()
    if kind not in CASTS:
        raise not_computed(tree, place)
    cast = partial(cast_to, kind=kind, is_try=isinstance(tree, exp.TryCast))
    return _strict_call(cast, [of])


def _substring_of(tree: exp.Expr, place: str) -> Evaluate:
    parts = (tree.this, tree.args.get("start"), tree.args.get("length"))
    return _strict_call(substring, [of_tree(p, place) for p in parts if p is not None])


def _strict_call(apply: Callable[..., Any], arguments: list[Evaluate]) -> Evaluate:
    """A call of a function that is null if an argument is null."""

    def value(row: Row) -> Any:
        values = [argument(row) for argument in arguments]
        return None if None in values else apply(*values)

    return value


def _call(tree: exp.Anonymous, place: str) -> Evaluate:
    name = str(tree.this).lower()
    arguments = [of_tree(argument, place) for argument in tree.expressions]
    if name in OF_NULLS:
        apply = OF_NULLS[name]
        return lambda row: apply(*(argument(row) for argument in arguments))
    if name in CALLED_LIKE_TYPES and len(arguments) == 1:
        kind = name.upper()
        return _strict_call(lambda value: cast_to(value, kind, is_try=False), arguments)
    if name not in FUNCTIONS or len(arguments) not in FUNCTIONS[name][1]:
        raise not_computed(tree, place)
    apply, _ = FUNCTIONS[name]

    def guarded(*values: Any) -> Any:
        try:
            return apply(*values)
        except (ValueError, OverflowError, TypeError) as error:
            msg = f"{name}: {error}"
            raise ThrownError(msg) from None

    return _strict_call(guarded, arguments)


_MAKERS: dict[type[exp.Expr], Callable[[exp.Expr, str], Evaluate]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda tree, place: lambda row: bool(tree.this),
    exp.Null: lambda tree, place: lambda row: None,
    exp.Paren: lambda tree, place: of_tree(tree.this, place),
    exp.Add: _of_numbers(plus(1)),
    exp.Sub: _of_numbers(plus(-1)),
    exp.Mul: _of_numbers(times),
    exp.Div: _strict(divided),
    exp.IntDiv: _strict(whole_division),
    exp.Mod: _strict(remainder),
    exp.DPipe: _strict(lambda a, b: to_text(a) + to_text(b)),
    exp.EQ: _strict(compared(lambda a, b: bool(a == b))),
    exp.NEQ: _strict(compared(lambda a, b: bool(a != b))),
    exp.GT: _strict(compared(lambda a, b: bool(a > b))),
    exp.GTE: _strict(compared(lambda a, b: bool(a >= b))),
    exp.LT: _strict(compared(lambda a, b: bool(a < b))),
    exp.LTE: _strict(compared(lambda a, b: bool(a <= b))),
    exp.NullSafeEQ: _of_two(operators.same),
    exp.And: _of_two(operators.both),
    exp.Or: _of_two(operators.either),
    exp.Not: lambda tree, place: operators.negated(of_tree(tree.this, place)),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _strict(operators.like),
    exp.Case: _case,
    exp.If: _if,
    exp.Neg: lambda tree, place: _strict_call(neg, [of_tree(tree.this, place)]),
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Substring: _substring_of,
}
