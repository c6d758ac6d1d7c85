"""CSV, JSON and Parquet files as batches of rows with one schema, read block by block."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from csv import Error as CsvError
from csv import reader as csv_rows
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, types
from pyarrow import json as arrow_json

from strandline.errors import InputError

_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_PACKED = (".gz", ".zip")
_BLOCK_BYTES = 8 * 2**20
_BATCH_ROWS = 65_536
_MOST_JSON_BYTES = 64 * 2**20
"""The largest file with a single JSON array, which is read as a whole; a larger one needs lines."""
_NOT_IN_A_NAME = re.compile(r"[ ,;{}()\n\t=]+")
_NO_VALUE = ["", "NA", "N/A", "null", "NULL", "NaN", "nan", "None", "-"]


def files_at(places: list[str]) -> list[Path]:
    """The files that are given by path, folder or pattern, sorted by name.

    Raises:
        InputError: there are none, or a file has an unknown suffix.
    """
    found: list[Path] = []
    for place in places:
        path = Path(place)
        named = [path] if path.exists() else list(path.parent.glob(path.name))
        for one in sorted(named):
            found += sorted(p for p in one.iterdir() if _kind(p)) if one.is_dir() else [one]
        if not named:
            raise InputError("--from", f"there is no {place}", "name a Delta table, or files")
    for path in found:
        if _kind(path) is None:
            known = ", ".join(_KINDS)
            raise InputError("--from", f"{path.name} is of no kind that is known", f"give {known}")
    if not found:
        raise InputError("--from", "names no file", "name a Delta table, or CSV, JSON or Parquet")
    return list(dict.fromkeys(found))


def batches_of(path: Path) -> Iterator[pa.Table]:
    """The rows of a file in blocks; every value of a CSV file is a text.

    Characters that Delta does not allow in a column's name become `_`.

    Raises:
        InputError: the file cannot be read in the format of its suffix.
    """
    blocks = {"parquet": _parquet, "json": _json, "csv": _csv}[_kind(path) or "csv"]
    try:
        for block in blocks(path):
            yield block.rename_columns(
                _distinct(_NOT_IN_A_NAME.sub("_", n).rstrip("_") for n in block.column_names)
            )
    except (pa.ArrowException, CsvError, ValueError, OSError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        is_other_text = isinstance(error, UnicodeError) or "UTF8" in line
        way_out = "save it as UTF-8" if is_other_text else "repair the file"
        raise InputError(path.name, f"cannot be read ({line})", way_out) from None


def _kind(path: Path) -> str | None:
    suffixes = [one.lower() for one in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes = suffixes[:-1]
    return _KINDS.get(suffixes[-1]) if suffixes else None


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zip":
        archive = zipfile.ZipFile(path)
        inside = [name for name in archive.namelist() if _kind(Path(name))]
        if len(inside) != 1:
            msg = f"it contains {len(inside)} files of a known kind, and one is needed"
            raise ValueError(msg)
        return archive.open(inside[0])
    return path.open("rb")


def _parquet(path: Path) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
        yield _plain(pa.Table.from_batches([batch]))


def _csv(path: Path) -> Iterator[pa.Table]:
    """The rows of a CSV file, with every value a text; an empty cell is null."""
    with _opened(path) as file:
        # a line may end with a carriage return alone, and then this is more than one
        head = file.readline().decode("utf-8-sig").partition("\r")[0]
    by = max(",;\t|", key=head.count)
    names = _distinct(next(csv_rows([head], delimiter=by)) if head.strip() else ())
    if not names:
        return
    with (
        _opened(path) as file,
        csv.open_csv(
            file,
            read_options=csv.ReadOptions(column_names=names, skip_rows=1, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=by, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=_NO_VALUE,
                strings_can_be_null=True,
            ),
        ) as reader,
    ):
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _distinct(names: Iterable[str]) -> list[str]:
    """Distinct names of columns; an empty or repeated name gets a number."""
    found: list[str] = []
    for place, name in enumerate(names, 1):
        own = name.strip() or f"column_{place}"
        is_used = own.lower() in {one.lower() for one in found}
        found.append(f"{own}_{place}" if is_used else own)
    return found


def _json(path: Path) -> Iterator[pa.Table]:
    with _opened(path) as file:
        first = file.read(1)
        while first.isspace():
            first = file.read(1)
    with _opened(path) as file:
        if first == b"[":
            whole = file.read(_MOST_JSON_BYTES + 1)
            if len(whole) > _MOST_JSON_BYTES:
                msg = f"one array of more than {_MOST_JSON_BYTES:,} bytes; write an object a line"
                raise ValueError(msg)
            rows = json.loads(whole)
            yield _plain(pa.Table.from_pylist([row for row in rows if isinstance(row, dict)]))
            return
        options = arrow_json.ReadOptions(block_size=_BLOCK_BYTES)
        for batch in arrow_json.open_json(file, read_options=options):
            batch.validate(full=True)  # the reader takes texts that are not in UTF-8
            yield _plain(pa.Table.from_batches([batch]))


def _plain(rows: pa.Table) -> pa.Table:
    """The rows with types that Delta supports; nanoseconds are cut to microseconds."""
    columns = [
        column.cast(_plain_type(column.type), safe=not _has_nanoseconds(column.type))
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def _has_nanoseconds(kind: pa.DataType) -> bool:
    return bool(types.is_timestamp(kind)) and kind.unit == "ns"


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_null(kind) or types.is_large_string(kind) or types.is_time(kind):
        return pa.string()
    if types.is_unsigned_integer(kind) or types.is_duration(kind):
        return pa.int64()
    return pa.float32() if types.is_float16(kind) else kind
