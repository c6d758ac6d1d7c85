"""The parsing of Spark SQL by sqlglot, whose import takes 0.2 s and so is done only when needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from strandline.sql.as_written import SELECT, AsWritten, text_of
from strandline.sql.calls import Call, NotUnderstood, Path, Read, Sql
from strandline.sql.known_functions import SORTABLE, SORTERS, UNITS_FIRST

_OWN = ("builtin.", "system.builtin.")
"""The qualifiers of Spark's built-in functions."""
_BRACKETS = {"L_PAREN", "R_PAREN", "L_BRACKET", "R_BRACKET", "L_BRACE", "R_BRACE"}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_NOW = {"now", "today", "tomorrow", "yesterday"}
"""The text of the literal TIMESTAMP'now', which reads the clock."""


_dialect = AsWritten()


def parse(text: str) -> Sql | NotUnderstood:
    """The function calls and the columns of an expression."""
    try:
        tree = tree_of(text)
        return tree if isinstance(tree, NotUnderstood) else _pieces(tree)
    except Exception:  # noqa: BLE001 - on deep texts it throws what Python throws
        return NotUnderstood("it cannot be parsed", is_wrong=False)


def tree_of(text: str) -> exp.Expr | NotUnderstood:
    """The syntax tree of an expression."""
    try:
        tokens = _dialect.tokenize(f"{SELECT}{text}")
    except SqlglotError:
        return NotUnderstood("a quote or a comment is not closed", is_wrong=True)
    if problem := _unbalanced([one.text for one in tokens if one.token_type.name in _BRACKETS]):
        return NotUnderstood(problem, is_wrong=True)
    try:
        statements = _dialect.parser().parse(tokens, f"{SELECT}{text}")
        selected = [one for one in statements if one is not None]
        if len(selected) != 1 or not _selects_one(selected[0]):
            return NotUnderstood("it is not one expression", is_wrong=False)
        tree: exp.Expr = selected[0].expressions[0]
        if tree.find(exp.Placeholder):
            return NotUnderstood("it has the path of a VARIANT, or a parameter", is_wrong=False)
    except ParseError as error:
        return NotUnderstood(_where(error), is_wrong=False)
    except Exception:  # noqa: BLE001 - on odd texts, or deep ones, it throws what Python throws
        return NotUnderstood("it cannot be parsed", is_wrong=False)
    return tree


def sql_of(tree: exp.Expr) -> str:
    """The SQL of a part of an expression, as written if the parser has kept its place."""
    return text_of(tree) or str(tree.sql(dialect=_dialect))


def _pieces(tree: exp.Expr) -> Sql:
    found = [*_found(tree, (), frozenset())]
    groups = {id(_called(node.this)): node for node in tree.find_all(exp.WithinGroup)}
    return Sql(
        calls=tuple(
            Call(
                name,
                len(node.expressions),
                within,
                _is_ordered(node, within, groups.get(id(node))),
                _is_distinct(node),
            )
            for node, name, within in found
            if isinstance(node, exp.Anonymous)
        )
        + tuple(
            Call("now", 0, (), is_ordered=False, is_distinct=False)
            for _ in filter(_reads_the_clock, tree.find_all(exp.Cast))
        ),
        reads=tuple(
            Read(path, within)
            for node, path, within in found
            if not isinstance(node, exp.Anonymous | exp.Star)
        ),
        reads_all=any(isinstance(node, exp.Star) and not _is_counted(node) for node, _, _ in found),
        over=tree.find(exp.Window) is not None,
        asks_tables=tree.find(exp.Query) is not None,
        certain_type=_certain_type(tree),
    )


_Found = tuple[exp.Expr, Any, tuple[str, ...]]
"""A call with its name, or a column with its path; and the calls around it."""


def _found(node: exp.Expr, within: tuple[str, ...], bound: frozenset[str]) -> Iterator[_Found]:
    """The calls, columns and stars of an expression, without the arguments of lambdas."""
    if isinstance(node, exp.Query):
        return  # what it reads are the columns of others
    if isinstance(node, exp.Star):
        yield node, (), within
        return
    if path := _path_of(node):
        if path[0].lower() not in bound:
            yield node, path, within
        return
    if isinstance(node, exp.Dot):
        prefix, last = _qualified(node)
        if isinstance(last, exp.Anonymous) and prefix is not None:
            yield from _of_a_call(last, f"{prefix}.{last.name}", within, bound)
            return
    if isinstance(node, exp.Anonymous):
        yield from _of_a_call(node, node.name, within, bound)
        return
    if isinstance(node, exp.Lambda):
        bound |= {name.name.lower() for name in node.expressions}
        yield from _found(node.this, within, bound)
        return
    if isinstance(node, exp.Kwarg | exp.Alias):
        value = node.expression if isinstance(node, exp.Kwarg) else node.this
        yield from _found(value, within, bound)
        return
    if isinstance(node, exp.Filter | exp.WithinGroup):
        yield from _found(node.this, within, bound)
        call = _called(node.this)
        inside = (*within, call.name.lower()) if call is not None else within
        yield from _found(node.expression, inside, bound)
        return
    for child in node.iter_expressions():
        yield from _found(child, within, bound)


def _of_a_call(
    node: exp.Anonymous, name: str, within: tuple[str, ...], bound: frozenset[str]
) -> Iterator[_Found]:
    name = name.lower()
    for prefix in _OWN:
        name = name.removeprefix(prefix)
    yield node, name, within
    arguments = node.expressions
    if name in UNITS_FIRST and len(arguments) == 3:
        arguments = arguments[1:]
    for argument in arguments:
        yield from _found(argument, (*within, name), bound)


def _path_of(node: exp.Expr) -> Path | None:
    """The path of a column or of a field inside it; None for other parts."""
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else tuple(one.name for one in node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        outside = _path_of(node.this)
        return None if outside is None else (*outside, node.expression.name)
    return None


def _qualified(node: exp.Dot) -> tuple[str | None, exp.Expr]:
    """The qualifying names and the last part of a dotted expression, if all are plain names."""
    names, above = [], node.this
    while isinstance(above, exp.Dot) and isinstance(above.expression, exp.Identifier):
        names.append(above.expression.name)
        above = above.this
    if isinstance(above, exp.Identifier):
        return ".".join([above.name, *reversed(names)]), node.expression
    path = _path_of(above)
    return (None if path is None else ".".join([*path, *reversed(names)])), node.expression


def _called(node: exp.Expr | None) -> exp.Anonymous | None:
    """The call inside WITHIN GROUP, FILTER and IGNORE NULLS."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None


def _is_ordered(
    call: exp.Anonymous, within: tuple[str, ...], group: exp.WithinGroup | None
) -> bool:
    """Whether equal records alone can be in any order in an aggregate's values.

    Args:
        call: the aggregate.
        within: the names of the calls around it.
        group: its WITHIN GROUP (ORDER BY …).
    """
    if group is not None:
        value = call.expressions[:1]
        if _is_distinct(call):
            value = value[0].expressions[:1]
        # its columns as keys would not do: 0.0 and -0.0 are equal there, and other texts
        keys = {key.this.transform(_unquoted) for key in group.expression.expressions}
        return all(one.transform(_unquoted) in keys for one in value)
    if call.name.lower() == "mode":  # mode(x, true): the least of those that come equally often
        return len(call.expressions) == 2 and call.expressions[1] == exp.true()
    if call.name.lower() not in SORTABLE or not {*within[-1:]} & SORTERS:
        return False
    around = call.find_ancestor(exp.Anonymous, exp.Bracket)
    return isinstance(around, exp.Anonymous) and not isinstance(around.expressions[-1], exp.Lambda)


def _unquoted(node: exp.Expr) -> exp.Expr:
    is_name = isinstance(node, exp.Identifier)
    return exp.to_identifier(node.name.lower(), quoted=False) if is_name else node


def _is_distinct(call: exp.Anonymous) -> bool:
    return any(isinstance(argument, exp.Distinct) for argument in call.expressions)


def _is_counted(star: exp.Expr) -> bool:
    """Whether a star is the argument of count(*), which counts rows."""
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"


def _reads_the_clock(cast: exp.Cast) -> bool:
    """Whether a part is TIMESTAMP'now', or a CAST of 'now', which Spark itself refuses."""
    literal, kind = cast.this, cast.to.this
    is_time = kind in exp.DataType.TEMPORAL_TYPES
    return is_time and isinstance(literal, exp.Literal) and literal.name.strip().lower() in _NOW


def _certain_type(tree: exp.Expr) -> str | None:
    while isinstance(tree, exp.Paren | exp.Alias):
        tree = tree.this
    if isinstance(tree, exp.Cast):
        return _type_of_cast(tree.to)
    if isinstance(tree, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
        return "boolean"
    if isinstance(tree, exp.Literal):
        return "string" if tree.is_string else "int" if tree.is_int else None
    return None


def _type_of_cast(to: exp.DataType) -> str:
    """The type of a CAST by Spark's name of the type, which may have several."""
    if to.this is exp.DataType.Type.TIME:
        return "time"
    written = sql_of(to).lower()
    return {"timestamp_ltz": "timestamp", "decimal": "decimal(10,0)"}.get(written, written)


def _selects_one(statement: exp.Expr) -> bool:
    """Whether a statement is SELECT with exactly one expression."""
    given = {name for name, value in statement.args.items() if value}
    return (
        isinstance(statement, exp.Select)
        and given == {"expressions"}
        and len(statement.expressions) == 1
    )


def _unbalanced(brackets: list[str]) -> str | None:
    """The problem of an expression's brackets; None if they are balanced."""
    opened: list[str] = []
    for bracket in brackets:
        if bracket not in _PAIRS:
            opened.append(bracket)
        elif not opened or opened.pop() != _PAIRS[bracket]:
            return f"a {bracket} closes nothing"
    return f"{Counter(opened).most_common(1)[0][0]} is not closed" if opened else None


def _where(error: ParseError) -> str:
    """The word at which the parser stopped."""
    word = error.errors[0].get("highlight") if error.errors else None
    return f"it cannot be parsed from {word!r} on" if word else "it cannot be parsed"
