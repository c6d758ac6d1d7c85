"""Expressions written so that Sail gives Apache Spark's results where its own differ.

Only operations with a rule are rewritten; the rest stays as it is, character by character.
Some forms repeat their operands, so that such operations inside of each other make an expression
exponentially longer: what grows too long, and what cannot be written, is refused; see `on_sail`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from strandline.sql.as_written import Span, span_of, text_of
from strandline.sql.calls import NotUnderstood
from strandline.sql.differences import Form
from strandline.sql.guards import (
    TypeOf,
    compared_by,
    is_choice,
    may_fail,
    next_to_guard,
    terms_of,
)
from strandline.sql.operations import (
    operands_of,
    operation_of,
    places_of,
    shallow_tree_of,
    typed_alone,
)
from strandline.sql.written_for_sail import chosen, form_of, may_differ

TypesOf = Callable[[Sequence[str]], Sequence[str | None]]
"""Asks the engine for the types of expressions over the table; None: it has no answer."""


def as_on_spark(text: str, types_of: TypesOf) -> str:
    """An expression that gives on Sail what another one gives on Spark.

    Args:
        text: the expression; if it cannot be parsed, it is returned.
        types_of: asks the engine for the types of its parts.

    Example:
        `i + 1` of an INT: `CAST(CAST(i AS BIGINT) + CAST(1 AS BIGINT) AS INT)`
    """
    tree = shallow_tree_of(text)
    if isinstance(tree, NotUnderstood):
        return text
    places = [node for node in places_of(tree) if _may_differ(node)]
    parts = [one for place in places for one in (*operands_of(place), *compared_by(place))]
    asked = [*dict.fromkeys(one for one in map(typed_alone, parts) if one is not None)]
    types = dict(zip(asked, types_of(asked), strict=True)) if asked else {}
    forms = [(place, _form(place, types)) for place in places]
    writer = _Writer(
        text,
        {id(place): form.whole for place, form in forms if form.whole is not None},
        {
            id(operand): written
            for place, form in forms
            for operand, written in zip(operands_of(place), form.operands, strict=False)
        },
        {id(place): form.around for place, form in forms},
        types.get,
    )
    return writer.between((0, len(text)), [tree])


def _may_differ(node: exp.Expr) -> bool:
    """Whether an operation has a rule; a function with a qualifier never has."""
    is_qualified = isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
    return (is_choice(node) or may_differ(operation_of(node))) and not is_qualified


def _form(node: exp.Expr, types: Mapping[str, str | None]) -> Form:
    operation = operation_of(node)
    if not operation.has_places:  # it is refused where it would have another form
        return Form()
    of_operands = [types.get(one.text or "") for one in operation.operands]
    form = chosen(of_operands) if is_choice(node) and may_fail(node, types.get) else Form()
    return form_of(operation, of_operands) if form == Form() and may_differ(operation) else form


@dataclass(frozen=True)
class _Writer:
    """Writes the parts of an expression.

    Attributes:
        text: the expression.
        wholes: the forms of operations, by the identity of their nodes; see `Form`.
        operands: the forms of operands, by the identity of their nodes.
        around: what stands around operations, by the identity of their nodes.
        type_of: gives the types of operands.
    """

    text: str
    wholes: Mapping[int, str]
    operands: Mapping[int, str]
    around: Mapping[int, str]
    type_of: TypeOf

    def between(self, span: Span, nodes: Iterable[exp.Expr]) -> str:
        """The text of a span with the parts inside of it written; `nodes`: the parts."""
        at, pieces = span[0], []
        for node, (first, end) in sorted(_with_spans(nodes), key=lambda found: found[1]):
            form = self.operands.get(id(node), "{0}")
            inner = form.format(self._written(node, (first, end)))
            pieces += [self.text[at:first], self._for_its_rows(node, inner)]
            at = end
        return "".join([*pieces, self.text[at : span[1]]])

    def _written(self, node: exp.Expr, span: Span) -> str:
        operation = node.this if isinstance(node, exp.Filter) else node
        whole = self.wholes.get(id(operation))
        if terms := terms_of(node, self.type_of):
            return f"({self._guarded(terms, 'AND' if isinstance(node, exp.And) else 'OR')})"
        if whole is None:
            written = self.between(span, node.iter_expressions())
            return self.around.get(id(node), "{0}").format(written)
        operands = [self._alone(one) for one in operands_of(operation)]
        wanted = f" FILTER (WHERE {self._wanted(node)})" if isinstance(node, exp.Filter) else ""
        return whole.format(*operands, filtered=wanted)

    def _guarded(self, terms: Sequence[exp.Expr], word: str) -> str:
        """Terms of AND or OR; one that may fail is computed where those before leave it open."""
        first = next_to_guard(terms, self.type_of)
        before = f" {word} ".join(map(self._alone, terms[:first]))
        if first == len(terms):
            return before
        is_open = f"coalesce({before}, true)" if word == "AND" else f"NOT coalesce({before}, false)"
        rest = chosen(["boolean"]).operands[0].format(self._guarded(terms[first:], word))
        return f"{before} {word} CAST(CASE WHEN {is_open} THEN {rest} END AS BOOLEAN)"

    def _for_its_rows(self, operand: exp.Expr, written: str) -> str:
        """An operand of an aggregate, computed for no row that a FILTER excludes if it may fail.

        Sail computes the argument of an aggregate before its FILTER; Spark does so, too, where the
        aggregate is DISTINCT.
        """
        aggregate = operand.parent
        above = None if aggregate is None else aggregate.parent
        while isinstance(above, exp.Order | exp.WithinGroup):
            above = above.parent
        if not isinstance(aggregate, exp.Anonymous | exp.Ordered) or not isinstance(
            above, exp.Filter
        ):
            return written
        is_of_rows = may_fail(operand, self.type_of) and operand.find(exp.Column) is not None
        if written == text_of(operand) and not is_of_rows:
            return written
        if not isinstance(operand.unnest(), exp.Predicate | exp.Connector | exp.Not):
            return f"CASE WHEN {self._wanted(above)} THEN {written} END"
        form = chosen(["boolean"])
        branch = form.operands[0].format(written)
        return form.around.format(f"CASE WHEN {self._wanted(above)} THEN {branch} END")

    def _wanted(self, node: exp.Filter) -> str:
        return self._alone(node.expression.this)

    def _alone(self, node: exp.Expr) -> str:
        span = span_of(node)
        if span is None:
            msg = f"a part of {self.text!r} has no place in it"
            raise ValueError(msg)
        return self.between(span, [node])


def _with_spans(nodes: Iterable[exp.Expr]) -> Iterator[tuple[exp.Expr, Span]]:
    """Parts with their spans; in place of a part without one, the parts of which it consists."""
    for node in nodes:
        span = span_of(node)
        if span is None:
            yield from _with_spans(node.iter_expressions())
        else:
            yield node, span
