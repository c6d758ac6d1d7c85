"""The upkeep of one table: compaction of small files, and removal of unneeded files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import fs

from strandline.lake.store.days import PARTITIONS
from strandline.lake.store.lock import commit, require_held
from strandline.lake.store.reads import files_below, files_of, paths_below
from strandline.lake.timeline.rows import WRITTEN

_SMALL_BYTES = 64 * 2**20
"""The size in bytes below which files of a day are compacted."""
_HOURS_OF_DAY = 24
_LOG_DAYS = 30
"""The default retention of a table's log, in days."""
_LOG_KEPT = "delta.logRetentionDuration"


def size_of(files: Iterable[int]) -> dict[str, int]:
    """The number of some files, and their bytes in all, by the bytes of each."""
    sizes = [*files]
    return {"files": len(sizes), "bytes": sum(sizes)}


def in_use(table: DeltaTable) -> dict[str, int]:
    """The files of the newest version, and their bytes."""
    return size_of(pa.table(table.get_add_actions())["size_bytes"].to_pylist())


def stored(table: DeltaTable) -> dict[str, int]:
    """All files of the table, also of old versions, without the log, and their bytes."""
    return size_of(_stored(table).values())


def scattered_days(table: DeltaTable, partition: str) -> list[date]:
    """The days with several small files, which can be compacted.

    A day with rows of several rules, or of unknown ones, is not compacted: the statistics of a file
    with rows of one rule show whether these were published before a column (`days_lacking`).
    """
    if not table.file_uris():
        return []
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    rules: defaultdict[date | None, set[str | None]] = defaultdict(set)
    small: defaultdict[date | None, int] = defaultdict(int)
    has_rules = any(field.name == "spec_fingerprint" for field in table.schema().fields)
    for file in files:
        day = file[f"partition.{partition}"]
        small[day] += file["size_bytes"] < _SMALL_BYTES
        if has_rules:
            rules[day] |= {file.get(f"{edge}.spec_fingerprint") for edge in ("min", "max")}
    scattered = (day for day, count in small.items() if count > 1 and _is_of_one(rules[day]))
    return sorted(day for day in scattered if day is not None)


def _is_of_one(rules: Collection[str | None]) -> bool:
    """Whether a day's files have rows of one rule, or of a table without rules."""
    return len(rules) <= 1 and None not in rules


def compact(table: DeltaTable, name: str, days: Collection[date]) -> None:
    """Compact the files of some days in one commit without new rows; call it under the lock.

    Files of the timeline stay as small as it writes them.
    """
    if days:
        table.optimize.compact(
            partition_filters=[(PARTITIONS[name], "in", [day.isoformat() for day in days])],
            target_size=_SMALL_BYTES,
            writer_properties=WRITTEN if name == "timeline" else None,
            commit_properties=commit(table.table_uri, "maintain"),
        )


def unneeded(table: DeltaTable, keep_days: int, needed: Collection[int]) -> dict[str, int]:
    """The files that `vacuum` would remove now, and their bytes."""
    return size_of(_unneeded(table, keep_days, needed).values())


def vacuum(table: DeltaTable, keep_days: int, needed: Collection[int]) -> None:
    """Remove the files that no recent version needs, and files of writers that have died.

    Call it under the lock. The log is kept as long as the versions.

    Args:
        table: the open table.
        keep_days: the number of days of which versions are kept.
        needed: further versions to keep.
    """
    kept = table.metadata().configuration.get(_LOG_KEPT)
    asked = f"interval {keep_days} days"
    if keep_days > _LOG_DAYS and kept != asked:
        properties = commit(table.table_uri, "maintain")
        table.alter.set_table_properties({_LOG_KEPT: asked}, commit_properties=properties)
    unneeded_paths = _unneeded(table, keep_days, needed)
    # what is listed by now is of no writer who takes the lock later
    require_held(table.table_uri)
    files = files_of(table)
    for path in unneeded_paths:
        files.delete_file(path)
    _drop_empty_folders(table)


def _unneeded(table: DeltaTable, keep_days: int, needed: Collection[int]) -> dict[str, int]:
    """The bytes of each file that can be removed."""
    kept_versions = []
    for version in sorted({*needed}):
        with suppress(DeltaError):  # its log is gone: nobody reads it any more
            kept_versions.append(DeltaTable(table.table_uri, version=version).version())
    paths = table.vacuum(
        keep_days * _HOURS_OF_DAY,
        dry_run=True,
        enforce_retention_duration=False,
        full=True,
        keep_versions=[*kept_versions, table.version()],
    )
    unneeded_paths = {unquote(path) for path in paths_below(table, paths)}
    return {path: size for path, size in _stored(table).items() if path in unneeded_paths}


def _drop_empty_folders(table: DeltaTable) -> None:
    """Remove the empty folders below a table's root, except in its log.

    Each publication writes into new folders.
    """
    files = files_of(table)
    found = files.get_file_info(fs.FileSelector("", recursive=True))
    holding = {
        str(folder)
        for one in found
        if one.type == fs.FileType.File
        for folder in PurePosixPath(one.path.lstrip("/")).parents
    }
    folders = [one.path.lstrip("/") for one in found if one.type == fs.FileType.Directory]
    for folder in sorted(folders, reverse=True):  # those inside first
        if folder not in holding and PurePosixPath(folder).parts[0] != "_delta_log":
            files.delete_dir(folder)


def _stored(table: DeltaTable) -> dict[str, int]:
    """The bytes of each file below the table's root, without its log."""
    sizes = {one.path.lstrip("/"): one.size for one in files_below(files_of(table))}
    return {path: size for path, size in sizes.items() if not path.startswith("_delta_log/")}
