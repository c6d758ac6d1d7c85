"""The input of a proposal: a Delta table or files, with its columns, their types, and a sample."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from strandline.errors import InputError
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import is_uri
from strandline.proposal.files import batches_of, files_at

_LADDER = (pa.int64(), pa.float64(), pa.bool_(), pa.string())
"""The types in order; a column gets the first type that fits all its values."""
_CODE = r"^[+-]?0[0-9]"
"""Matches a code with leading zeros, which would be lost in a number."""


class _TypeInference:
    """The types of columns, determined block by block."""

    def __init__(self) -> None:
        """Start without columns."""
        self._ladder_steps: dict[str, int] = {}  # of text columns: the place in _LADDER
        self._file_types: dict[str, pa.DataType] = {}  # of columns that a file gives a type
        self._has_values: set[str] = set()  # the text columns with a value that is not null

    def add(self, rows: pa.Table) -> None:
        """Add the values of a block."""
        for of_column in rows.schema:
            if of_column.type != pa.string():
                self._add_typed(of_column)
                continue
            column, step = rows.column(of_column.name), self._ladder_steps.get(of_column.name, 0)
            while step < len(_LADDER) - 1 and not _fits(column, _LADDER[step]):
                step += 1
            self._ladder_steps[of_column.name] = step
            if column.null_count < len(column):
                self._has_values.add(of_column.name)

    def _add_typed(self, field: pa.Field) -> None:
        """Combine a file's type with the type of earlier files."""
        before = self._file_types.setdefault(field.name, field.type)
        if before != field.type:
            numbers = all(
                pa.types.is_integer(one) or pa.types.is_floating(one)
                for one in (before, field.type)
            )
            floating = any(pa.types.is_floating(one) for one in (before, field.type))
            both = (pa.float64() if floating else pa.int64()) if numbers else pa.string()
            self._file_types[field.name] = both

    @property
    def schema(self) -> pa.Schema:
        """The columns with the types that fit all their values; text for a column of nulls."""
        names = dict.fromkeys([*self._ladder_steps, *self._file_types])
        return pa.schema([pa.field(name, self._type(name)) for name in names])

    def _type(self, name: str) -> pa.DataType:
        """The type of a column; text if it has values as text in one file and a type in another."""
        if name not in self._ladder_steps:
            return self._file_types[name]
        if name in self._file_types:
            return self._file_types[name] if name not in self._has_values else pa.string()
        return _LADDER[self._ladder_steps[name]] if name in self._has_values else pa.string()


def as_typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows cast to a schema; a missing column is null."""
    return pa.table([_column(rows, field) for field in schema], schema=schema)


def concatenated(blocks: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """Several blocks as one table with a schema."""
    found = [as_typed(block, schema) for block in blocks]
    return pa.concat_tables(found) if found else schema.empty_table()


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
    return rows.column(field.name).cast(field.type)


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    if not pa.types.is_boolean(kind):
        codes = pc.match_substring_regex(column, _CODE)
        if pc.any(codes).as_py():
            return False
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


_SAMPLE_ROWS = 20_000
_PARTS = 40
"""The largest number of files or blocks in the sample, spread over the table."""


@dataclass(frozen=True)
class Table:
    """The input of a proposal.

    Attributes:
        name: the proposed name of the pipeline.
        said: the table's name in the pipeline file.
        sample: some of its rows, in the table's order.
        rows: its number of rows.
        partitions: the partition columns of a Delta table.
        files: the files to land; empty for a Delta table.
        schema: its columns.
    """

    name: str
    said: str
    sample: pa.Table
    rows: int
    schema: pa.Schema
    partitions: tuple[str, ...] = ()
    files: tuple[Path, ...] = field(default=())

    @property
    def is_landed(self) -> bool:
        """Whether it is a Delta table, which a pipeline can read."""
        return not self.files


def table_at(places: list[str], lake: Lake, name: str | None) -> Table:
    """The table or the files of `--from`.

    Args:
        places: the texts of the option: one table (a path, a URI, a path below the lake), or files.
        lake: the lake's root.
        name: the pipeline's name; None: the table's name.

    Raises:
        InputError: the table or a file does not exist, cannot be read, or has no rows.
    """
    delta = _delta_at(places[0], lake) if len(places) == 1 else None
    found = _of_files(places, name) if delta is None else _of_delta(*delta, name)
    if not found.rows or not found.sample.num_rows:
        raise InputError(
            "--from",
            f"{found.said} has no rows: there is nothing to guess from",
            "land some, or write the pipeline by hand: docs/guide.md",
        )
    return found


def _delta_at(place: str, lake: Lake) -> tuple[str, DeltaTable] | None:
    """The Delta table at a path or below the lake, and its name in a pipeline file."""
    for table_name, uri in _places_of(place, lake):
        try:
            if DeltaTable.is_deltatable(uri):
                return table_name, DeltaTable(uri)
        except (DeltaError, OSError) as error:
            problem = f"cannot be opened ({str(error).splitlines()[0]})"
            raise InputError(f"--from {place}", problem, "check the path") from None
    if is_uri(place):
        raise InputError("--from", f"no Delta table at {place}", "files are read from this machine")
    return None


def _places_of(place: str, lake: Lake) -> Iterator[tuple[str, str]]:
    if is_uri(place):
        yield place, place
        return
    path = Path(place).absolute()
    root = lake.folder
    if path.is_dir():
        inside = root is not None and path.is_relative_to(root)
        yield (str(path.relative_to(root)) if inside and root else str(path)), str(path)
    if not Path(place).is_absolute():
        resolved = lake.resolve(place)
        leads_out = Path(os.path.normpath(place)).parts[:1] == ("..",)
        yield (resolved if leads_out else place), resolved


def _of_delta(said: str, table: DeltaTable, name: str | None) -> Table:
    """The Delta table that a pipeline file calls `said`, as a table with a name."""
    rows = sum(count or 0 for count in pa.table(table.get_add_actions())["num_records"].to_pylist())
    try:
        sample = _sample_of(table.to_pyarrow_dataset())
    except (DeltaError, pa.ArrowException, OSError) as error:
        problem = f"its rows cannot be read ({str(error).splitlines()[0]})"
        raise InputError(
            "--from", problem, "see the landing contract: docs/landing-contract.md"
        ) from None
    partitions = tuple(table.metadata().partition_columns)
    return Table(name or short_name(said), said, sample, rows, sample.schema, partitions)


def _sample_of(dataset: ds.Dataset) -> pa.Table:
    """The first rows of some row groups, which are spread over the files of a table."""
    fragments = sorted(dataset.get_fragments(), key=lambda one: one.path)
    files = _spread(fragments, _PARTS)
    groups = _spread([group for file in files for group in file.split_by_row_group()], _PARTS)
    each = _SAMPLE_ROWS // max(1, len(groups))
    parts = [group.scanner(schema=dataset.schema, batch_size=each).head(each) for group in groups]
    return pa.concat_tables(parts) if parts else dataset.schema.empty_table()


def _of_files(places: list[str], name: str | None) -> Table:
    files = files_at(places)
    own = name or short_name(files[0].name if len(files) == 1 else files[0].parent.name)
    kinds, kept, rows = _TypeInference(), _Sample(), 0
    for path in files:
        for block in batches_of(path):
            kinds.add(block)
            kept.take(block)
            rows += block.num_rows
    schema = kinds.schema
    sample = concatenated(kept.blocks, schema)
    return Table(own, f"landing/{own}", sample, rows, schema, files=tuple(files))


class _Sample:
    """A sample of rows from a sequence of blocks of unknown length."""

    def __init__(self) -> None:
        self.blocks: list[pa.Table] = []
        self._every, self._seen = 1, 0

    def take(self, block: pa.Table) -> None:
        """Add the first rows of a block; with more blocks, fewer blocks and rows are kept."""
        if self._seen % self._every == 0:
            self.blocks.append(_some_rows(block, _SAMPLE_ROWS))
        self._seen += 1
        if len(self.blocks) > _PARTS:
            self.blocks, self._every = self.blocks[::2], self._every * 2
        each = _SAMPLE_ROWS // max(1, len(self.blocks))
        self.blocks = [_some_rows(one, each) for one in self.blocks]


def _some_rows(rows: pa.Table, many: int) -> pa.Table:
    """A copy of at most a number of rows, spread over all rows in their order."""
    if rows.num_rows <= many:
        return rows
    places = np.linspace(0, rows.num_rows - 1, many).astype(np.int64)
    return rows.take(pa.array(np.unique(places)))


def _spread(parts: list[Any], many: int) -> list[Any]:
    """At most a number of parts, spread over all parts."""
    return parts[:: max(1, -(-len(parts) // many))]


def short_name(text: str) -> str:
    """A legal name of a pipeline, made from the last part of a path."""
    last = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    stem = last.split(".")[0] or last
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-").lower()
    return (name if name[:1].isalpha() else f"p_{name}")[:100] or "pipeline"
