"""Tables of operations that Sail computes differently, and the forms in which they are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.sql.column_types import NOT_ON_SAIL, Problem
from strandline.sql.operations import Operation


@dataclass(frozen=True)
class Form:
    """How an operation is written.

    Attributes:
        whole: with `{0}`, `{1}` … for its operands, and `{filtered}` for the FILTER behind an
            aggregate; None: as it is.
        operands: the forms of its operands, each with `{0}` for the operand as it is.
        around: with `{0}` for the operation with these operands.
    """

    whole: str | None = None
    operands: tuple[str, ...] = ()
    around: str = "{0}"


Types = Sequence[str | None]
"""The types of an operation's operands; None: the engine does not know one."""
AS_IT_IS = Form()
"""The form of an operation that Sail computes as Spark does."""


def checked(is_known: str, problem: str) -> str:
    """The form of an operand that fails where Sail has another result than Spark.

    Args:
        is_known: the condition, of `{0}`, that Sail has the same result.
        problem: the result that Sail does not have.
    """
    fails = f"raise_error('{NOT_ON_SAIL}{problem}')"
    return f"CASE WHEN {is_known} THEN {{0}} WHEN {{0}} IS NOT NULL THEN {fails} END"


def first_as(form: str, types: Types) -> Form:
    """An operation whose first operand has another form."""
    return Form(operands=(form, *("{0}" for _ in types[1:])))


Cell = TypeVar("Cell")
When = Callable[[Operation, Types], bool]
"""Whether a call is meant, by its operands and their types."""
Row = tuple[str, When, *tuple[Cell, ...]]
"""The names of operations, which of their calls are meant, and what is so of them."""


class Table(Generic[Cell]):
    """Rows by the names of operations."""

    def __init__(self, *rows: Row[Cell]) -> None:
        self._rows: dict[str, list[Row[Cell]]] = defaultdict(list)
        for row in rows:
            for name in row[0].split():
                self._rows[name].append(row)
        self.names = frozenset(self._rows)

    def row(self, operation: Operation, types: Types = ()) -> tuple[Cell, ...] | None:
        """The cells of the first row that a call is in; None: it is in none."""
        rows = self._rows.get(operation.name, ()) if operation.operands else ()
        return next(((*cells,) for _, when, *cells in rows if when(operation, types)), None)


def problem_in(table: Table[str], operation: Operation, types: Types = ()) -> Problem | None:
    """How Sail differs for a call, and what to write instead, by a table of both.

    `{name}` stands for the name of the operation, and `{to}` for the type of a CAST.
    """
    if (row := table.row(operation, types)) is None:
        return None
    differs, instead = row
    return differs, instead.format(name=operation.name, to=(operation.to or "").upper())
