"""What deletion vectors take away from the files of a landing table, by its log."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from strandline.lake.places import below


class DeletedRows(NamedTuple):
    """The rows of a file that are deleted without having been taken out of it.

    Attributes:
        rows: how many there are.
        digest: of which they are.
    """

    rows: int
    digest: str


def deleted_rows(table: DeltaTable) -> dict[str, DeletedRows]:
    """The rows of each file that are deleted, and still lie in it.

    A statement such as DELETE then only marks the rows: the file, and the number of records that
    the log gives for it, stay as they were. By the path of `file_name`; a file that lost none is
    not named.
    """
    if "deletionVectors" not in (table.protocol().reader_features or []):
        return {}
    deleted: dict[str, DeletedRows] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch["filepath"], batch["selection_vector"], strict=True):
            gone = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False))
            digest = sha256(gone.astype("<i8").tobytes()).hexdigest()[:32]
            name = file_name(below(table.table_uri, uri.as_py()))
            deleted[name] = DeletedRows(len(gone), digest)
    return deleted


def file_name(path: str) -> str:
    """A file's path as `deleted_rows` names it; `path` is as the log has it, quoted for URIs."""
    return unquote(path)
