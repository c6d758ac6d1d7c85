"""The opening of landing tables, without reading their rows."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from strandline.errors import InputError, StrandlineError, storage_error, telling_line


class NoTableError(InputError):
    """There is no Delta table at the place that a pipeline's file names."""


def open_table(uri: str, place: str, name: str | None = None) -> DeltaTable:
    """The newest version of a landing table.

    Args:
        uri: the table's path or URI.
        place: the place of the table's name in the pipeline's file, for an error.
        name: the table's name in the pipeline's file; None: its URI.

    Raises:
        NoTableError: there is no Delta table.
        InputError: there is one, and it cannot be read.
        RetryableError: its store does not answer.
    """
    try:
        return DeltaTable(uri)
    except TableNotFoundError as error:
        problem = f"no Delta table at {name or uri} ({telling_line(str(error))})"
        way_out = "land the records first, or correct source.table or --lake"
        raise NoTableError(place, problem, way_out) from None
    except (DeltaError, OSError) as error:
        raise _unreadable(f"{place} {name or uri}", error) from None


def _unreadable(place: str, error: Exception) -> StrandlineError:
    """The error for a Delta table that is there and cannot be read."""
    problem, way_out = f"cannot be read ({telling_line(str(error))})", "repair it, or name another"
    return storage_error(place, error, to_read=True) or InputError(place, problem, way_out)
