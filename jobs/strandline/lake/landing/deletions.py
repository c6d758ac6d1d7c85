"""The rows of a landing table that are deleted by deletion vectors, from its log."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from strandline.lake.store.places import below


class DeletedRows(NamedTuple):
    """The rows of a file that are marked as deleted by a deletion vector.

    Attributes:
        rows: their number.
        digest: a hash that identifies them.
    """

    rows: int
    digest: str


def deleted_rows(table: DeltaTable) -> dict[str, DeletedRows]:
    """The deleted rows of each file, by the path of `file_name`.

    With deletion vectors, DELETE only marks rows: the file, and its number of records in the log,
    do not change. A file without deleted rows is not in the result.
    """
    if "deletionVectors" not in (table.protocol().reader_features or []):
        return {}
    deleted: dict[str, DeletedRows] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch["filepath"], batch["selection_vector"], strict=True):
            deleted_rows = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False))
            digest = sha256(deleted_rows.astype("<i8").tobytes()).hexdigest()[:32]
            name = file_name(below(table.table_uri, uri.as_py()))
            deleted[name] = DeletedRows(len(deleted_rows), digest)
    return deleted


def file_name(path: str) -> str:
    """A file's path as a key of `deleted_rows`, from its path in the log, which is URI-encoded."""
    return unquote(path)
