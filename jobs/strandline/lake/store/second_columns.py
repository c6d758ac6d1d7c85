"""Second columns of quarantine, for columns whose type has changed in the landing table."""

from __future__ import annotations

from deltalake import DeltaTable

SECOND_OF = "strandline.second_of"
"""The metadata key of a second column: its value is the name of the source column."""


def second_columns(table: DeltaTable) -> dict[str, list[str]]:
    """The second columns of a table, by the name of their source column."""
    found: dict[str, list[str]] = {}
    for field in table.schema().fields:
        if of := (field.metadata or {}).get(SECOND_OF):
            found.setdefault(str(of), []).append(field.name)
    return found
