"""Rows that may not fit into memory: sums over their batches, and pieces with all rows of a key.

Larger tables are divided into files by a hash of the key, which are read one after the other; a
file that is too large is divided again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import ipc

from strandline.lake.publish.arrow_diff import comparable

ROWS = "rows"
"""The column with the number of rows of a group."""
_MOST_GROUPS = 2**20


def sums_by(rows: Iterable[pa.Table], by: Sequence[str], names: Sequence[str] = ()) -> pa.Table:
    """The sums of some columns by groups, and the number of rows as `ROWS`.

    Args:
        rows: batches of rows; the first batch may be empty.
        by: the grouping columns; nulls are equal.
        names: the columns to sum; a sum over nulls only is null.
    """
    tables, most = list[pa.Table](), _MOST_GROUPS
    for some in rows:
        groups = some.group_by([*by]).aggregate([*((n, "sum") for n in names), ([], "count_all")])
        tables.append(groups.rename_columns([*by, *names, ROWS]))
        if sum(map(len, tables)) > most:
            tables = [_added(tables, by, names)]
            most = max(_MOST_GROUPS, 2 * len(tables[0]))
    return _added(tables, by, names)


def _added(parts: Sequence[pa.Table], by: Sequence[str], names: Sequence[str]) -> pa.Table:
    sums = [*names, ROWS]
    groups = pa.concat_tables(parts).group_by([*by]).aggregate([(name, "sum") for name in sums])
    return groups.rename_columns([*by, *sums])


BYTES_AT_ONCE = 128 * 2**20
"""The largest piece in bytes; its processing takes some three times as much memory."""
_FILES, _BITS = 64, 6
_DEEPEST = 64 // _BITS
_WRITTEN = ipc.IpcWriteOptions(compression="lz4")


def in_pieces(
    sides: Sequence[Iterable[pa.Table]], *keys: Sequence[str]
) -> Iterator[tuple[pa.Table, ...]]:
    """The rows of some tables in pieces, with all rows of a key in the same piece.

    Args:
        sides: batches of each table's rows, with the same columns; at least one, possibly empty.
        keys: the columns by which to divide; and further columns if pieces are still too large.

    Yields:
        The rows of each table in a piece; there is at least one piece.
    """
    return _divided(sides, [*keys], 0)


def _divided(
    sides: Sequence[Iterable[pa.Table]], keys: Sequence[Sequence[str]], depth: int
) -> Iterator[tuple[pa.Table, ...]]:
    buffered: list[list[pa.Table]] = [[] for _ in sides]
    streams, size = [iter(side) for side in sides], 0
    for place, stream in enumerate(streams):
        for rows in stream:
            buffered[place].append(rows)
            size += rows.nbytes
            if size > BYTES_AT_ONCE and depth < _DEEPEST:
                parts = zip(buffered, streams, strict=True)
                yield from _by_files([chain(*both) for both in parts], keys, depth)
                return
    yield tuple(pa.concat_tables(rows).combine_chunks() for rows in buffered)


def _by_files(
    sides: Sequence[Iterable[pa.Table]], keys: Sequence[Sequence[str]], depth: int
) -> Iterator[tuple[pa.Table, ...]]:
    by, *finer = keys
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        files = [_put(rows, Path(folder, str(n)), by, depth) for n, rows in enumerate(sides)]
        for number in sorted({number for of_side, _ in files for number in of_side}):
            piece = [_rows_in(of_side.get(number), schema) for of_side, schema in files]
            # rows with one first key differ in the others
            yield from _divided(piece, finer or [by], 0 if finer else depth + 1)


def _put(
    rows: Iterable[pa.Table], place: Path, by: Sequence[str], depth: int
) -> tuple[dict[int, Path], pa.Schema]:
    """Write rows into files by a hash of their key; the files by number, and their columns."""
    stream, files = iter(rows), dict[int, Path]()
    first = next(stream)
    with ExitStack() as opened:
        writers = dict[int, ipc.RecordBatchFileWriter]()
        for some in chain([first], stream):
            for number, of_file in _by_hash(some, by, depth):
                if number not in files:
                    files[number] = Path(f"{place}-{number}")
                    writer = ipc.new_file(files[number], first.schema, options=_WRITTEN)
                    writers[number] = opened.enter_context(writer)
                writers[number].write_table(of_file)
    return files, first.schema


def _rows_in(file: Path | None, schema: pa.Schema) -> Iterator[pa.Table]:
    yield schema.empty_table()
    if file is not None:
        with pa.memory_map(str(file)) as source:
            opened = ipc.open_file(source)
            for number in range(opened.num_record_batches):
                yield pa.Table.from_batches([opened.get_batch(number)])


def _by_hash(rows: pa.Table, by: Sequence[str], depth: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows by file number: each depth uses other bits of the hash of the key."""
    numbers = _hashed(rows.select(by)) >> np.uint64(depth * _BITS) & np.uint64(_FILES - 1)
    ordered, ends = rows.take(np.argsort(numbers)), np.cumsum(np.bincount(numbers.astype(int)))
    for number, (begin, end) in enumerate(pairwise([0, *map(int, ends)])):
        if begin < end:
            yield number, ordered.slice(begin, end - begin)


def _hashed(keys: pa.Table) -> npt.NDArray[np.uint64]:
    hashed = np.zeros(len(keys), dtype=np.uint64)
    for values in map(comparable, keys.columns):
        hashed = hashed * np.uint64(31) + _hash(values)
    mixed: npt.NDArray[np.uint64] = pd.util.hash_array(hashed)
    return mixed


def _hash(values: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    kind = values.type
    if pa.types.is_floating(kind):
        flat = values.cast(pa.float64()).fill_null(0.0).to_numpy()
    elif pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        flat = _as_numbers(values)
    else:
        texts = values if pa.types.is_binary(kind) else values.cast(pa.string())
        flat = texts.fill_null("").to_numpy()
    return pd.util.hash_array(flat)


def _as_numbers(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    numbers: npt.NDArray[np.int64] = values.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers
