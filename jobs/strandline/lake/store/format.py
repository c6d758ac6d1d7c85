"""The format number of a pipeline's tables; a program refuses tables of a newer format.

It is a property of the ledger, which every command opens first. A ledger without it has format 1.
"""

from __future__ import annotations

from importlib.metadata import version

from deltalake import DeltaTable

from strandline.errors import InputError
from strandline.lake.store.lock import commit

FORMAT = 2
"""The newest known format, which is written.

1: up to the first release. 2: the ledger has steps that do not belong to a run.
"""
_FORMAT, _WRITTEN_BY = "strandline.format", "strandline.writtenBy"


def require_known(ledger: DeltaTable) -> None:
    """Check the format of a pipeline's tables.

    Raises:
        InputError: the format is newer than this program.
    """
    configuration = ledger.metadata().configuration
    known = {str(number) for number in range(1, FORMAT + 1)}
    if _FORMAT in configuration and configuration[_FORMAT] not in known:
        writer = configuration.get(_WRITTEN_BY, "a newer version")
        raise InputError(
            ledger.table_uri,
            f"format {configuration[_FORMAT]}, written by Strandline {writer}; this is Strandline "
            f"{version('strandline')}, which reads formats up to {FORMAT}",
            f"install Strandline {writer}, or a newer one",
        )


def mark(ledger: DeltaTable) -> None:
    """Set the tables' format to this program's; call it under the ledger's lock."""
    if ledger.metadata().configuration.get(_FORMAT) != str(FORMAT):
        ledger.alter.set_table_properties(
            {_FORMAT: str(FORMAT), _WRITTEN_BY: version("strandline")},
            raise_if_not_exists=False,
            commit_properties=commit(ledger.table_uri),
        )
