"""The file of a pipeline's test: sample rows and the expected windows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from strandline.errors import InputError
from strandline.spec.documents import line_of, read_document
from strandline.spec.values import SpecModel, parse_instant
from strandline.trial.values import EPOCH, MS, plain, to_time


def _rows(value: Any) -> Any:
    """Rows from a list of maps, or from CSV with a header, with types by the format of cells."""
    if isinstance(value, str):
        lines = [line for line in value.splitlines() if line.strip()]
        read = list(
            csv.DictReader(io.StringIO("\n".join(lines)), skipinitialspace=True, strict=True)
        )
        if any(None in row or None in row.values() for row in read):
            msg = "not rows: a line has more cells, or fewer, than the first line has names"
            raise ValueError(msg)
        return tuple({name: cell(text) for name, text in row.items()} for row in read)
    return _maps(value, "not rows; write CSV with a line of names, or a list of maps")


def _maps(value: Any, problem: str) -> tuple[dict[str, Any], ...]:
    """Rows from a list of maps; `problem`: what is wrong with any other value."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise ValueError(problem)
    return tuple({str(name): _native(one) for name, one in row.items()} for row in value)


def _native(value: Any) -> Any:
    """A value of YAML; an instant without a zone is in UTC."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def cell(text: str) -> Any:
    """A cell of CSV as null (if empty), number, boolean, instant or text, by its format.

    Example:
        `007`, `1e5` and `+1` are texts; `2013-01-01` is a date.
    """
    text = text.strip()
    if text == "":
        return None
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text or (kind is float and text.rstrip("0") == str(number).rstrip("0")):
            return number
    try:
        return date.fromisoformat(text) if len(text) == 10 else to_time(text)
    except (ValueError, OverflowError):
        return text


def _expected(value: Any) -> Any:
    return _maps(value, "not a list of rows, each a map of columns")


def _instant(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return (to_time(_native(value)) - EPOCH) // MS
    if not isinstance(value, str):
        msg = "not an instant; write 2013-01-02T00:00:00Z"
        raise ValueError(msg)
    return parse_instant(value)


_MAPS = {"type": "array", "items": {"type": "object"}}
"""The JSON schema of rows, each a map of columns."""
_Table = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_expected), WithJsonSchema(_MAPS)]
_Rows = Annotated[
    tuple[dict[str, Any], ...],
    BeforeValidator(_rows),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, _MAPS | {"minItems": 1}]}),
]
_Instant = Annotated[
    int, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Expected(SpecModel):
    """The expected rows.

    Attributes:
        windows: all published windows, identified by `window_start` and the key columns; the other
            given columns must be equal.
        quarantine: all rows that no window accepts, by `row` (the first is 1) and `reason`; not
            given: they are not compared.
    """

    windows: _Table
    quarantine: _Table | None = None


class SampleTest(SpecModel):
    """A pipeline's test.

    Attributes:
        rows: the sample rows in any order; the arrival column decides when each arrives.
        as_of: the instant before which rows count; by default all rows count.
        close: whether the input ends after the rows, so that every window fires and closes.
        expect: the expected rows.
    """

    rows: _Rows
    as_of: _Instant | None = None
    close: bool = False
    expect: Expected


def read_test(path: Path) -> SampleTest:
    """The test in a file.

    Raises:
        InputError: the file does not exist, or keys or values are wrong; the message names all.
    """
    if not path.is_file():
        raise InputError(
            str(path),
            "there is no such test",
            "write one: rows, and the windows that they must give (docs/testing-a-pipeline.md)",
        )
    content = read_document(path)
    if not isinstance(content, dict):
        raise InputError(path.name, "not a test", "it is a map of rows and expect")
    try:
        return SampleTest.model_validate(content)
    except ValidationError as error:
        lines = [line_of(path.name, detail) for detail in error.errors()]
        raise InputError(path.name, "not a valid test\n  " + "\n  ".join(lines)) from None


def updated(
    path: Path, windows: Sequence[Mapping[str, Any]], quarantine: Sequence[Mapping[str, Any]]
) -> str:
    """The text of a test with the actual rows as expected rows; the text before them is unchanged.

    Raises:
        InputError: the key `expect` is not the last key of the file, so a comment could be lost.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    begins = [number for number, line in enumerate(lines) if line.startswith("expect:")]
    behind = lines[begins[0] + 1 :] if begins else []
    if not begins or any(line[:1] not in {" ", "\n", "#"} for line in behind):
        raise InputError(path.name, "expect is not its last key", "put it at the end of the file")
    tables = {"windows": windows} | ({"quarantine": quarantine} if quarantine else {})
    rows = (
        f"  {name}:{'' if of else ' []'}\n" + "".join(f"    - {_flow(row)}\n" for row in of)
        for name, of in tables.items()
    )
    return "".join([*lines[: begins[0]], "expect:\n", *rows])


def _flow(row: Mapping[str, Any]) -> str:
    """A row as a YAML map on one line."""
    text = yaml.safe_dump(
        plain(row), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return text.strip()
