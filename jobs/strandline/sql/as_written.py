"""The dialect of Spark SQL by which expressions are parsed: functions as written, places known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

Span = tuple[int, int]
"""The place of a part in the text of an expression: its first character, and the one behind it."""
SELECT = "SELECT "
"""The words before an expression that make it a statement."""
_SYNTAX_OF_THEIR_OWN = {
    *("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "SUBSTR", "TRIM", "OVERLAY")
}
"""Functions with words between their arguments: CAST(x AS INT), EXTRACT(HOUR FROM x)."""
_SPAN, _TEXT = "span", "written"
"""The keys of a part's place and its text in its `meta`."""


def span_of(node: exp.Expr) -> Span | None:
    """A part's place in its expression; None: the parser keeps none, as of the `a` of `a::INT`."""
    span: Span | None = node.meta.get(_SPAN)
    return span


def text_of(node: exp.Expr) -> str | None:
    """A part as written; None: see `span_of`."""
    text: str | None = node.meta.get(_TEXT)
    return text


def _named_column(name: str) -> exp.Expr:
    return exp.column(name)


class AsWritten(Spark):
    """sqlglot's dialect of Spark, with functions under the names in the text, and with spans."""

    class Parser(SparkParser):
        """A parser of Spark SQL that keeps the place of each part in the text."""

        STRICT_CAST: ClassVar = True  # else a CAST is parsed as if it were TRY_CAST
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar = {
            name: parser
            for name, parser in SparkParser.FUNCTION_PARSERS.items()
            if name in _SYNTAX_OF_THEIR_OWN
        }
        NO_PAREN_FUNCTIONS: ClassVar = {
            token: partial(_named_column, token.name.lower())
            for token in SparkParser.NO_PAREN_FUNCTIONS
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            name: parser
            for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items()
            if name in {"CASE", "IF"}
        }
        # array(a)[0] would be an array of 0, and list[0] of a column `list`, too
        ARRAY_CONSTRUCTORS: ClassVar = {}
        # Spark joins texts from left to right with + and -: a || b + c is (a || b) + c
        TERM: ClassVar = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}

        def _parse_atom(self) -> exp.Expr | None:
            return self._spanned(self._curr, super()._parse_atom())

        def _parse_unary(self) -> exp.Expr | None:
            return self._spanned(self._curr, super()._parse_unary())

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            return self._spanned(self._curr, super()._parse_equality(parse_is))

        def _parse_disjunction(self) -> exp.Expr | None:
            return self._spanned(self._curr, super()._parse_disjunction())

        def _replace_lambda(
            self, node: exp.Expr | None, expressions: list[exp.Expr]
        ) -> exp.Expr | None:
            return node  # the arguments of a lambda stay columns, with their places

        def expression(
            self,
            instance: Any,
            token: Token | None = None,
            comments: list[str] | None = None,
        ) -> Any:
            """A part that the parser has made, with its place if those of its operands are kept."""
            made = super().expression(instance, token, comments)
            if isinstance(made, exp.Binary):
                left, right = span_of(made.this), span_of(made.expression)
                if left is not None and right is not None:
                    self._keep(made, left[0], right[1])
            return made

        def _spanned(self, first: Token, node: exp.Expr | None) -> exp.Expr | None:
            """A part that has just been parsed, with its place; `first`: its first token."""
            if node is not None:
                self._keep(node, first.start - len(SELECT), self._prev.end + 1 - len(SELECT))
            return node

        def _keep(self, node: exp.Expr, first: int, end: int) -> None:
            node.meta[_SPAN] = first, end
            node.meta[_TEXT] = self.sql[len(SELECT) :][first:end]
