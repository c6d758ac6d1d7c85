"""Second columns of quarantine: of a column whose type has changed in the landing table."""

from __future__ import annotations

from deltalake import DeltaTable

SECOND_OF = "strandline.second_of"
"""Marks a table's column that holds a source column in a type which that one's own cannot take."""


def second_columns(table: DeltaTable) -> dict[str, list[str]]:
    """The second columns of a table, by the name of the column in whose place they stand."""
    found: dict[str, list[str]] = {}
    for field in table.schema().fields:
        if of := (field.metadata or {}).get(SECOND_OF):
            found.setdefault(str(of), []).append(field.name)
    return found
