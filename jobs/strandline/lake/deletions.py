"""What deletion vectors take away from the files of a landing table, by its log."""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable


def deleted_rows(table: DeltaTable) -> dict[str, int]:
    """How many rows of each file are deleted without having been taken out of it.

    A statement such as DELETE then only marks the rows: the file, and the number of records that
    the log gives for it, stay as they were. By the path of `file_name`; a file that lost none is
    not named.
    """
    if "deletionVectors" not in (table.protocol().reader_features or []):
        return {}
    root = unquote(table.table_uri).rstrip("/") + "/"
    deleted: dict[str, int] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch["filepath"], batch["selection_vector"], strict=True):
            name = unquote(uri.as_py()).removeprefix(root)
            deleted[name] = pc.sum(pc.invert(kept.values)).as_py() or 0
    return deleted


def file_name(path: str) -> str:
    """A file's path as `deleted_rows` names it; `path` is as the log has it, quoted for URIs."""
    return unquote(path)
