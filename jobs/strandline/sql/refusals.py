"""Tables of the operations that are refused on Sail, with the reasons and the ways out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from strandline.sql.column_types import Problem
from strandline.sql.form import Types
from strandline.sql.operations import Operation

When = Callable[[Operation, Types], bool]
"""Whether a call is refused, by its operands and their types."""
Row = tuple[str, When, str, str]
"""The names of operations, which of their calls, how Sail differs, and what to write instead:
`{name}` is the name of the operation, and `{to}` the type of a CAST."""


class Refusals:
    """The rows of a table by the names of operations."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            for name in row[0].split():
                self._rows[name].append(row)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def problem(self, operation: Operation, types: Types = ()) -> Problem | None:
        """The problem of the first row that a call is in; None: it is in none."""
        for _, when, differs, instead in self._rows.get(operation.name, ()):
            if when(operation, types):
                to = (operation.to or "").upper()
                return differs, instead.format(name=operation.name, to=to)
        return None
