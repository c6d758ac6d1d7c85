"""Tables of operations: how some of their calls differ on Sail, and what becomes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Generic, TypeVar

from strandline.sql.column_types import Problem
from strandline.sql.form import Types
from strandline.sql.operations import Operation

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
