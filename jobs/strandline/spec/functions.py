"""User-defined functions over windows, whose modules are shipped to workers as text.

This module itself runs in Spark's workers, too, and is shipped there by its content: it imports
nothing of the library.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

RAISED_BY = "strandline process: "
"""The beginning of the message of an error that a user-defined function has raised."""
_FACTORIES = {
    "boolean": "bool_",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "date": "date32",
}
"""The functions of pyarrow that make the types of columns, by the names of the types in Spark."""
SIMPLE_TYPES = (*_FACTORIES, "timestamp")
"""The types of columns that a function can return, by their names in Spark."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")
_STRUCT = re.compile(r"struct<(.+)>")
_FIELD = re.compile(r"([A-Za-z_]\w*):(.+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WindowTimes(NamedTuple):
    """The window of a function call: `start` is inclusive, `end` is exclusive."""

    start: datetime
    end: datetime


class ProcessError(Exception):
    """A function has failed, or its result does not match `returns`: see `RAISED_BY`."""


Function = Callable[[dict[str, Any], WindowTimes, "pa.Table", int | None], Any]


def arrow_type(kind: str) -> pa.DataType:
    """The type of a column in `returns`.

    Raises:
        ValueError: a function cannot return this type.
    """
    import pyarrow as pa  # noqa: PLC0415 - whoever only reads a pipeline's file needs none

    if kind == "timestamp":
        return pa.timestamp("us", "UTC")
    if kind in _FACTORIES:
        return getattr(pa, _FACTORIES[kind])()
    if decimal := _DECIMAL.fullmatch(kind):
        precision, scale = int(decimal[1]), int(decimal[2])
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    if array := _ARRAY.fullmatch(kind):
        return pa.list_(arrow_type(array[1]))
    if struct := _STRUCT.fullmatch(kind):
        return pa.struct(_fields_of(struct[1]))
    raise ValueError(kind)


def _fields_of(text: str) -> dict[str, pa.DataType]:
    """The fields of a struct: `NAME:TYPE`, with commas between."""
    fields: dict[str, pa.DataType] = {}
    for field in _split_outside_brackets(text):
        named = _FIELD.fullmatch(field)
        if named is None or named[1].lower() in {name.lower() for name in fields}:
            raise ValueError(field)
        fields[named[1]] = arrow_type(named[2])
    return fields


def _split_outside_brackets(text: str) -> Iterator[str]:
    """The parts of a text between commas outside of brackets."""
    depth, begin = 0, 0
    for place, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]


def times_of(start_ms: int, end_ms: int) -> WindowTimes:
    """A window by its bounds in milliseconds since 1970."""
    start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in (start_ms, end_ms))
    return WindowTimes(start, end)


def result_of(
    function: Function,
    key: dict[str, Any],
    window: WindowTimes,
    records: pa.Table,
    watermark_ms: int | None,
    returns: Mapping[str, str],
) -> dict[str, pa.Array]:
    """The result of a function for a firing: a value for each column, null if it returns no row.

    Raises:
        ProcessError: it fails, or returns several rows, other columns, or values of other types.
    """
    place = f"{RAISED_BY}key {key}, window {window.start.isoformat()} to {window.end.isoformat()}: "
    try:
        rows = _rows_of(function(key, window, records, watermark_ms))
        if len(rows) > 1:
            msg = f"returned {len(rows)} rows, and a window of a key has one"
            raise ProcessError(msg)
        row = rows[0] if rows else dict.fromkeys(returns)
        if row.keys() != returns.keys():
            msg = f"returned the columns {sorted(row)}, and `returns` names {sorted(returns)}"
            raise ProcessError(msg)
        return {name: _column(name, row[name], kind) for name, kind in returns.items()}
    except ProcessError as error:
        raise ProcessError(_in_one_line(f"{place}{error}")) from None
    except (Exception, SystemExit) as error:
        message = f"{place}{type(error).__name__}: {error}{_line_of(error)}"
        raise ProcessError(_in_one_line(message)) from error


def _rows_of(given: Any) -> Sequence[dict[str, Any]]:
    import pyarrow as pa  # noqa: PLC0415

    rows = given.to_pylist() if isinstance(given, pa.Table) else given
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        msg = f"returned {type(given).__name__}, and not a list of dicts or a pyarrow Table"
        raise ProcessError(msg)
    return rows


def _column(name: str, value: Any, kind: str) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    try:
        column_type = arrow_type(kind)
        _require_fields(value, column_type)
        return pa.array([value], column_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"returned {value!r} as {name}, which is not a {kind} ({error})"
        raise ProcessError(msg) from None


def _require_fields(value: Any, kind: pa.DataType) -> None:
    """Refuse a struct with missing or unknown fields, which Arrow would accept.

    Raises:
        ValueError: a field is missing or unknown.
    """
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_list(kind) and isinstance(value, list | tuple):
        for one in value:
            _require_fields(one, kind.value_type)
    elif pa.types.is_struct(kind) and isinstance(value, dict):
        names = [field.name for field in kind]
        if value.keys() != set(names):
            msg = f"it has the fields {sorted(map(str, value))}, and not {sorted(names)}"
            raise ValueError(msg)
        for field in kind:
            _require_fields(value[field.name], field.type)


def _line_of(error: BaseException) -> str:
    """The file and the line in which a user's module failed."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        loader = trace.tb_frame.f_globals.get("__loader__")
        if hasattr(loader, "strandline_top"):
            place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _in_one_line(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 1_000 else shown[:997] + "..."


# ----------------------------------------------------------------------------------- their modules


class _Files(MetaPathFinder, Loader):
    """An import hook for a module and its submodules, whose sources are given as texts."""

    def __init__(self, top: str, files: Mapping[str, str], digest: str) -> None:
        self.strandline_top, self.digest = top, digest
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module among the files; else None."""
        if fullname.partition(".")[0] != self.strandline_top:
            return None
        stem = fullname.replace(".", "/")
        if f"{stem}.py" in self._files:
            return spec_from_loader(fullname, self, origin=f"{stem}.py")
        is_folder = any(name.startswith(f"{stem}/") for name in self._files)
        if not is_folder:
            return None
        origin = f"{stem}/__init__.py"
        return spec_from_loader(fullname, self, origin=origin, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run a module; a package without an `__init__.py` runs nothing."""
        origin = module.__spec__.origin if module.__spec__ else None
        source = self._files.get(origin or "", "")
        # trusted as the pipeline is that names it
        exec(compile(source, origin or "", "exec"), module.__dict__)


def function_of(files: Mapping[str, str], name: str) -> Function:
    """The function `package.module:function`, imported from sources by their paths.

    Raises:
        ProcessError: the import of its module fails, or the module has no such function.
    """
    module_name, _, function_name = name.partition(":")
    top = module_name.partition(".")[0]
    digest = sha256(repr(sorted(files.items())).encode()).hexdigest()
    others = [finder for finder in sys.meta_path if getattr(finder, "strandline_top", None) != top]
    ours = [finder for finder in sys.meta_path if finder not in others]
    if [getattr(finder, "digest", None) for finder in ours] != [digest]:
        for known in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
            del sys.modules[known]
        sys.meta_path[:] = [_Files(top, files, digest), *others]
    try:
        function: Function = getattr(importlib.import_module(module_name), function_name)
    except (Exception, SystemExit) as error:
        message = f"{RAISED_BY}{module_name} cannot be imported: {type(error).__name__}: {error}"
        raise ProcessError(_in_one_line(message + _line_of(error))) from error
    return function
