"""The export of a table's rows into one file, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from strandline.errors import InputError, not_writable

_WRITERS: dict[str, Callable[[str, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".csv": pc.CSVWriter,
    ".arrow": pa.ipc.new_file,
}


def require_suffix(path: Path) -> None:
    """Check that a file's suffix is a known format.

    Raises:
        InputError: it is not.
    """
    if path.suffix not in _WRITERS:
        formats = ", ".join(_WRITERS)
        raise InputError("--output", f"{path} names no format", f"end it with one of {formats}")


def export(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write rows into a file in the format of its suffix.

    An existing file is replaced only when all rows are written. In CSV a list, a struct or a map is
    written as JSON.

    Args:
        path: the file.
        schema: the columns of the rows.
        batches: the rows.

    Returns:
        The number of rows.

    Raises:
        InputError: the suffix is not a known format, or the file cannot be written.
        RetryableError: the disk is full.
    """
    require_suffix(path)
    as_written = _without_nesting if path.suffix == ".csv" else lambda rows: rows
    count, unfinished = 0, path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        empty = as_written(schema.empty_table())
        with _WRITERS[path.suffix](str(unfinished), empty.schema) as writer:
            for batch in batches:
                if batch.num_rows:
                    writer.write_table(as_written(pa.Table.from_batches([batch])))
                    count += batch.num_rows
        unfinished.replace(path)
    except OSError as error:
        raise not_writable(f"--output {path}", error) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return count


def _without_nesting(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if v is None else json.dumps(v, default=str) for v in rows[place].to_pylist()
            ]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows
