"""The narrow rows of the timeline: all but watermark steps and cells of well-formed records.

A timeline has a file for each arrival day, and every run asks for the narrow rows of all days.
Opening a file for each of them would make a day dearer with each day of history. Delta never
changes a file, so the narrow rows of many files are kept in one more file beside the table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from strandline.lake.store.places import path_of
from strandline.lake.store.reads import files_at
from strandline.lake.store.store import Store

MOST_NOT_KEPT = 32
"""The largest number of files that are read one by one, before their rows are kept, too."""
_FILE, _FILES = "_file", b"strandline.files"
"""The column with the path of a row's file, and the metadata with all files, also without rows."""
_NAME = "narrow.parquet"


@dataclass(frozen=True)
class NarrowRows:
    """The narrow rows of some files of the timeline.

    Attributes:
        rows: the rows; `_file` is the path of each row's file, below the table.
        files: the paths of the files, also of files without such a row.
    """

    rows: pa.Table
    files: frozenset[str]

    @classmethod
    def none(cls, schema: pa.Schema) -> NarrowRows:
        """The rows of no file; `schema`: the columns of rows without `_file`."""
        return cls(schema.append(pa.field(_FILE, pa.string())).empty_table(), frozenset())

    @classmethod
    def kept(cls, store: Store, schema: pa.Schema) -> NarrowRows:
        """The rows that `keep` has written; none if there are none, or they are not readable.

        Rows with other columns than `schema` are from another version of this program.
        """
        none = cls.none(schema)
        try:
            with files_at(_folder(store)).open_input_file(_NAME) as opened:
                rows = pq.read_table(opened)
            files = frozenset(json.loads((rows.schema.metadata or {})[_FILES]))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            return none
        return cls(rows, files) if rows.schema.equals(none.rows.schema) else none

    def of(self, dataset: ds.FileSystemDataset, wanted: ds.Expression | None) -> NarrowRows:
        """The rows of the files of a dataset; only files that are not known yet are read.

        Args:
            dataset: the files.
            wanted: a condition on the days of files; None: all files.
        """
        fragments = {one.path: one for one in dataset.get_fragments(wanted)}
        known = pc.field(_FILE).isin(pa.array(fragments, pa.string()))
        rows = self.rows if self.files <= fragments.keys() else self.rows.filter(known)
        fresh = [one for path, one in fragments.items() if path not in self.files]
        if fresh:
            read = ds.FileSystemDataset(fresh, dataset.schema, dataset.format, dataset.filesystem)
            rows = pa.concat_tables([rows, _read(read, rows.schema)])
        return NarrowRows(rows, frozenset(fragments))

    def in_order(self) -> pa.Table:
        """The rows by arrival day, without the paths of their files."""
        order = pc.sort_indices(self.rows, [("arrival_date", "ascending")])
        return self.rows.drop_columns([_FILE]).take(order)

    def keep(self, store: Store) -> None:
        """Keep the rows for later runs; call it under the lock.

        A process that dies meanwhile leaves the rows that were kept before.
        """
        named = {_FILES: json.dumps(sorted(self.files))}
        written = pa.BufferOutputStream()
        pq.write_table(self.rows.replace_schema_metadata(named), written)
        folder = path_of(_folder(store))
        if folder is None:
            with files_at(_folder(store)).open_output_stream(_NAME) as stored:
                stored.write(written.getvalue())
            return
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = Path(folder, f"{_NAME}.unfinished")
        unfinished.write_bytes(written.getvalue())
        unfinished.replace(folder / _NAME)


def _read(files: ds.FileSystemDataset, schema: pa.Schema) -> pa.Table:
    """The narrow rows of some files, in a schema with `_file`."""
    names = [name for name in schema.names if name != _FILE]
    malformed = (pc.field("kind") == "cell") & pc.field("reason").is_valid()
    narrow = ~pc.field("kind").isin(WIDE) | malformed
    # of each file that was asked, Arrow would keep what it knows of all of its columns
    scanner = files.scanner([*names, "__filename"], filter=narrow, cache_metadata=False)
    return scanner.to_table().rename_columns([*names, _FILE]).select(schema.names).cast(schema)


WIDE = ("cell", "step")
"""Kinds with so many rows that they are never read as a whole."""


def _folder(store: Store) -> str:
    return f"{store.root}/_timeline"
