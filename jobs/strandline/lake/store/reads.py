"""Reads of Delta tables without a JVM, with conditions on files and rows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import fs

from strandline.lake.store.day_conditions import in_days
from strandline.lake.store.file_bounds import known_by_log
from strandline.lake.store.object_files import ObjectFiles
from strandline.lake.store.places import below, path_of
from strandline.model.intervals import END_OF_INSTANTS_MS, EVERYTHING, TimeRange, text_of

if TYPE_CHECKING:
    import pyarrow.dataset as ds

LOG = "_delta_log"
"""The folder of a Delta table with its commits and checkpoints."""
_COMMIT = re.compile(r"(\d{20})\.(?:json|checkpoint.*\.(?:parquet|json))")
"""Matches the names of commits and checkpoints in a log, with their version."""


def dataset_of(table: DeltaTable, files: str | None = None) -> ds.Dataset:
    """A table as an Arrow dataset.

    Args:
        table: the open table.
        files: a condition in SQL; files that by their statistics contain no such row are skipped,
            which saves milliseconds for each file. The rows of other files are not filtered. None:
            all files.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - loads pandas, which few commands need

    # that of delta-rs takes a column without bounds, where others have some, for one without values
    none = table.to_pyarrow_dataset(filesystem=_local_files(table), file_pruning_predicate="false")
    wanted = paths_below(table, table.file_uris(file_pruning_predicate=files))
    if not wanted:
        return none
    log = pa.table(table.get_add_actions())
    if files:
        log = log.filter(pa.array([unquote(path) in wanted for path in log["path"].to_pylist()]))
    paths = [unquote(path) for path in log["path"].to_pylist()]
    fragments = [
        none.format.make_fragment(path, none.filesystem, partition_expression=known)
        for path, known in zip(paths, known_by_log(log), strict=True)
    ]
    return ds.FileSystemDataset(fragments, none.schema, none.format, none.filesystem)


def dataset_by_day(table: DeltaTable, partition: str, schema: pa.Schema) -> ds.Dataset:
    """A table that is partitioned by a date, as a dataset for a read of some days.

    It uses only the dates of files, and no statistics, so that a table of many files opens quickly.

    Args:
        table: the open table.
        partition: the partition column.
        schema: the columns to read; a column that a file does not have is null.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - loads pandas, which few commands need

    log, day = pa.table(table.get_add_actions(flatten=True)), pc.field(partition)
    log = log.sort_by(f"partition.{partition}")
    files = files_of(table)
    fetching = ds.ParquetFragmentScanOptions(pre_buffer=_local_files(table) is None)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=fetching)
    fragments = [
        parquet.make_fragment(
            path, files, partition_expression=day.is_null() if of is None else day == of
        )
        for path, of in zip(
            log["path"].to_pylist(), log[f"partition.{partition}"].to_pylist(), strict=True
        )
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, files)


def rows_of(
    dataset: ds.Dataset, wanted: pc.Expression | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of a dataset in batches with little read-ahead, after a first table without rows.

    Args:
        dataset: the files.
        wanted: a condition on the rows; None: all rows.
        columns: the names of columns; None: all columns.
    """
    scanner = scanned(dataset, wanted, columns, files_ahead=1)
    yield scanner.projected_schema.empty_table()
    for batch in scanner.to_batches():
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def scanned(
    dataset: ds.Dataset,
    wanted: pc.Expression | None,
    columns: Sequence[str] | None,
    *,
    at_once: int = 2**16,
    files_ahead: int = 4,
) -> ds.Scanner:
    """A scan with few batches ahead.

    Args:
        dataset: see `rows_of`; so are `wanted` and `columns`.
        wanted: the condition.
        columns: the names.
        at_once: the largest number of rows of a batch.
        files_ahead: the number of files that are opened ahead, as many as Arrow's own default: on
            an object store each costs a request. One where the files are large.
    """
    return dataset.scanner(
        columns=None if columns is None else list(columns),
        filter=wanted,
        batch_size=at_once,
        batch_readahead=2,
        fragment_readahead=files_ahead,
    )


def rows_in_days(
    table: DeltaTable, partition: str, days: Collection[date | None]
) -> Iterator[pa.Table]:
    """The rows of some partitions of a table in batches, after a first table without rows."""
    return rows_of(dataset_of(table, in_days(partition, days)), rows_on_days(partition, days))


def rows_on_days(partition: str, days: Collection[date | None]) -> pc.Expression:
    """A condition for the rows of some days; None: the rows without a day."""
    day = pc.field(partition)
    on_days = day.isin(pa.array([one for one in days if one is not None], pa.date32()))
    return on_days | day.is_null() if None in days else on_days


def columns_of(table: DeltaTable) -> pa.Schema:
    """The columns of a table as in its dataset."""
    return pa.schema(table.schema().to_arrow())


def counts_of(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    """The number of rows by the value of a column, as text."""
    return {str(one["values"]): int(one["counts"]) for one in column.value_counts().to_pylist()}


def holds(table: DeltaTable, rows: pc.Expression, files: str | None = None) -> bool:
    """Whether a table has a row that meets a condition; `files`: see `dataset_of`."""
    if not table.file_uris():
        return False
    found = dataset_of(table, files).scanner(columns=[], filter=rows).head(1)
    return int(found.num_rows) > 0


def started_in(name: str, within: TimeRange) -> pc.Expression:
    """A condition for the rows of a published table whose start instant lies in a range."""
    first = in_arrow(within.start_ms)
    end = in_arrow(min(within.end_ms, END_OF_INSTANTS_MS - 1))
    return (pc.field(name) >= first) & (pc.field(name) < end)


def started_at(name: str, starts_ms: Iterable[int]) -> pc.Expression:
    """A condition for the rows of a published table that start at any of some instants."""
    at = pa.array([ms * 1000 for ms in starts_ms], pa.timestamp("us", tz="UTC"))
    return pc.field(name).isin(at)


def in_arrow(at_ms: int) -> pa.Scalar:
    """An instant, given in ms since 1970, as published tables have it."""
    return pa.scalar(at_ms * 1000, pa.timestamp("us", tz="UTC"))


def files_started_in(name: str, within: TimeRange) -> str:
    """A condition for files that may contain rows of `started_in`; see `dataset_of`."""
    first_ms = max(within.start_ms, EVERYTHING.start_ms)
    last_ms = min(within.end_ms, EVERYTHING.end_ms) - 1
    return f"\"{name}\" BETWEEN '{text_of(first_ms)}' AND '{text_of(max(first_ms, last_ms))}'"


def dataset_of_files(table: DeltaTable, paths: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """Some files of an unpartitioned table as a dataset; columns missing in a file are null."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - loads pandas, which few commands need

    return ds.dataset(list(paths), schema=schema, format="parquet", filesystem=files_of(table))


def files_at(place: str) -> fs.FileSystem:
    """The Arrow file system of a place: a folder, or a prefix of an object store."""
    folder = path_of(place)
    if folder is None:
        return fs.PyFileSystem(ObjectFiles(place))
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())


def emptied(place: str) -> fs.FileSystem:
    """The file system of a place, after removing everything in it."""
    folder, files = path_of(place), files_at(place)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return files
    for one in files_below(files):
        files.delete_file(one.path)
    return files


def files_below(files: fs.FileSystem, folder: str = "") -> list[fs.FileInfo]:
    """The files in a folder and in the folders inside; none if there is no such folder."""
    below_it = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    return [one for one in files.get_file_info(below_it) if one.type == fs.FileType.File]


def parquet_files(files: fs.FileSystem) -> dict[str, int]:
    """The bytes of all Parquet files, by path; an engine's markers are ignored."""
    sizes = {one.path.lstrip("/"): one.size for one in files_below(files)}
    return {
        path: sizes[path]
        for path in sorted(sizes)
        if not any(part.startswith(("_", ".")) for part in PurePosixPath(path).parts)
    }


def columns_in(place: str) -> pa.Schema | None:
    """The columns of the Parquet files of a place; None: it has no file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - for runs alone

    files = files_at(place)
    first = next(iter(parquet_files(files)), None)
    return None if first is None else pq.read_schema(files.open_input_file(first))


def files_of(table: DeltaTable) -> fs.FileSystem:
    """The file system with the table's root as its root."""
    return files_at(table.table_uri)


def paths_below(table: DeltaTable, uris: Sequence[str]) -> set[str]:
    """The paths of a table's files, below its root, by delta-rs' names of the files."""
    return {below(table.table_uri, uri) for uri in uris}


def is_whole(then: DeltaTable, now: DeltaTable) -> bool:
    """Whether an earlier version of a table can still be read: none of its files was removed.

    Args:
        then: the earlier version.
        now: the newest version, whose files exist.
    """
    before, after = (paths_below(table, table.file_uris()) for table in (then, now))
    others = sorted(before - after)
    found = files_of(then).get_file_info(others) if others else []
    return all(info.type != fs.FileType.NotFound for info in found)


def _local_files(table: DeltaTable) -> fs.FileSystem | None:
    """A local folder as Arrow's own file system; None if the table is not on this machine.

    With delta-rs' file system, Arrow's reading threads would call into Python, and a thread that
    does so while the process ends would abort it.
    """
    folder = path_of(table.table_uri)
    return None if folder is None else fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())


def newest_version(folder: Path) -> int | None:
    """The newest version of a local table by the names in its log; None without a commit.

    A run asks for fourteen versions, and opening a table for each would parse its log as often.
    """
    log = folder / LOG
    names = [path.name for path in log.iterdir()] if log.is_dir() else []
    versions = (version_of(name) for name in names)
    return max((version for version in versions if version is not None), default=None)


def version_of(name: str) -> int | None:
    """The version of a commit or checkpoint by the name of its file; None: it is another file."""
    found = _COMMIT.fullmatch(name)
    return None if found is None else int(found[1])
