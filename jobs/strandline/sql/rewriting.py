"""The rewriting of an expression's operations by rules, each by the types of its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from strandline.sql.calls import NotUnderstood
from strandline.sql.operations import Operation, Place, places_of
from strandline.sql.parsing import sql_of, tree_of

TypeOf = Callable[[str], str | None]
"""Asks the engine for the type of an expression over the table; None: the engine has no answer."""
Types = Sequence[str | None]
"""The types of an operation's operands."""
Rule = Callable[[Place, Types], bool]
"""Rewrites an operation in its tree; whether there was something to rewrite."""


def rewritten(text: str, type_of: TypeOf, rules_of: Callable[[Operation], Iterable[Rule]]) -> str:
    """An expression with its operations rewritten; as it is, if no rule rewrites one.

    Args:
        text: the expression; if it cannot be parsed, it is returned.
        type_of: asks the engine for a type.
        rules_of: the rules of an operation.
    """
    tree = tree_of(text)
    if isinstance(tree, NotUnderstood):
        return text
    whole = exp.Paren(this=tree)
    # a qualified name, such as builtin.sum, is an engine's own; Sail knows none
    plain = (one for one in places_of(tree, {}) if not isinstance(one.node.parent, exp.Dot))
    places = [(place, [*rules_of(place.operation)]) for place in plain]
    asked = [(place, rules, types_of(place.operation, type_of)) for place, rules in places if rules]
    # the inner operations first, all by the types of the expression as it was
    changed = [rule(place, types) for place, rules, types in reversed(asked) for rule in rules]
    return sql_of(whole.this) if any(changed) else text


def types_of(operation: Operation, type_of: TypeOf) -> Types:
    """The types of an operation's operands."""
    return [None if one.typed is None else type_of(one.typed) for one in operation.operands]


def put(node: exp.Expr, text: str) -> None:
    """Put SQL in the place of a node."""
    tree = tree_of(text)
    if isinstance(tree, NotUnderstood):
        msg = f"{text}: {tree.reason}"
        raise ValueError(msg)
    node.replace(tree.copy())
