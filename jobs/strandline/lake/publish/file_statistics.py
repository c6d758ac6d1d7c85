"""The statistics of a Parquet file for a Delta log, from the file's footer.

Readers skip files by these bounds, so a bound may be too wide, but never too narrow. A column has
none if the footer has none, or if readers compare values of its type differently.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

_Path: TypeAlias = tuple[str, ...]
_EXACT = Context(prec=100)
_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)
_MOST_CHARACTERS = 32
"""The longest bound of a text in characters, as in Spark."""
_SHOWS_NAN = "parquet-mr"
"""Writers of footers without bounds for columns with NaN."""
_LAST_CHARACTER = "\U0010ffff"


def statistics_of(footer: pq.FileMetaData, nulls_of: Mapping[str, int] | None = None) -> str:
    """The JSON of `stats` of an add action: `numRecords`, `minValues`, `maxValues`, `nullCount`.

    Args:
        footer: the footer of the file.
        nulls_of: the number of nulls of columns about which the footer says nothing, by column.
    """
    bounds: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for place, (path, kind) in enumerate(_leaves(footer.schema.to_arrow_schema())):
        if path is None:
            continue
        found = [group.column(place).statistics for group in groups]
        nulls = _nulls(found)
        if nulls is None:
            nulls = (nulls_of or {}).get(path[0]) if len(path) == 1 else None
        if nulls is None:
            continue
        _put(bounds["nullCount"], path, nulls)
        if pa.types.is_floating(kind) and not footer.created_by.startswith(_SHOWS_NAN):
            continue
        for name, bound in zip(("minValues", "maxValues"), _bounds(found, kind), strict=True):
            if bound is not None:
                _put(bounds[name], path, bound)
    # as they are: some readers take the two halves of an escaped character for another one
    return json.dumps({"numRecords": footer.num_rows, **bounds}, ensure_ascii=False)


def columns_with_bounds(schema: pa.Schema) -> list[str]:
    """The columns, and fields of structs, for which a footer gets bounds.

    Floating-point columns get none: Arrow's bounds ignore NaN, so that a search for NaN would skip
    the file.
    """
    return [
        ".".join(path)
        for path, kind in _leaves(schema)
        if path is not None and not pa.types.is_floating(kind)
    ]


def nulls_of_floating_columns(rows: pa.Table) -> dict[str, int]:
    """The number of nulls of each floating-point column, which gets no bounds, by column.

    A column whose nulls the log does not count looks like one that the file does not have.
    """
    without = (field.name for field in rows.schema if pa.types.is_floating(field.type))
    return {name: rows[name].null_count for name in without}


def _leaves(
    fields: Iterable[pa.Field], above: _Path | None = ()
) -> Iterator[tuple[_Path | None, pa.DataType]]:
    """The paths of a Parquet file's columns, in order; None for values inside lists and maps."""
    for field in fields:
        path, kind = None if above is None else (*above, field.name), field.type
        if pa.types.is_struct(kind):
            yield from _leaves(kind.fields, path)
        elif pa.types.is_map(kind):
            yield from _leaves([kind.key_field, kind.item_field], None)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            yield from _leaves([kind.value_field], None)
        else:
            yield path, kind


def _put(into: dict[str, Any], path: _Path, value: Any) -> None:
    """Set a value in nested maps, by the path of its column."""
    *above, name = path
    for struct in above:
        into = into.setdefault(struct, {})
    into[name] = value


def _nulls(groups: Sequence[pq.Statistics | None]) -> int | None:
    """The number of nulls of a column; None if a row group lacks it."""
    if any(group is None or not group.has_null_count for group in groups):
        return None
    return sum(int(group.null_count) for group in groups if group is not None)


def _bounds(groups: Sequence[pq.Statistics | None], kind: pa.DataType) -> tuple[Any, Any]:
    """The bounds of a column as JSON values; None if there are no safe bounds."""
    filled = [group for group in groups if group is not None and group.num_values]
    if not filled or not _has_bounds(kind) or not all(group.has_min_max for group in filled):
        return None, None
    if any(group.physical_type == "INT96" for group in filled):
        return None, None
    least, most = [group.min_raw for group in filled], [group.max_raw for group in filled]
    if pa.types.is_decimal(kind):
        first, last = min(map(_whole, least)), max(map(_whole, most))
        return _of_decimal(first, kind, ROUND_FLOOR), _of_decimal(last, kind, ROUND_CEILING)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_from(min(least)), _text_to(max(most))
    if pa.types.is_timestamp(kind):
        # many keep milliseconds alone: of the last instant, the one that is not before it
        unit = _PER_MS[kind.unit]
        return _instant(min(least) // unit, kind), _instant(-(-max(most) // unit), kind)
    if pa.types.is_date(kind):
        return _day(min(least)), _day(max(most))
    if pa.types.is_floating(kind):
        return _finite(least, min), _finite(most, max)
    return min(least), max(most)


def _has_bounds(kind: pa.DataType) -> bool:
    of_kinds = (
        pa.types.is_boolean,
        pa.types.is_floating,
        pa.types.is_signed_integer,
        pa.types.is_date32,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    in_a_known_unit = pa.types.is_timestamp(kind) and kind.unit in _PER_MS
    return in_a_known_unit or any(is_it(kind) for is_it in of_kinds)


def _whole(unscaled: int | bytes) -> int:
    if isinstance(unscaled, bytes):
        return int.from_bytes(unscaled, "big", signed=True)
    return unscaled


def _of_decimal(unscaled: int, kind: pa.Decimal128Type, rounding: str) -> float | int | None:
    """A decimal as a number of JSON; with too many digits it is rounded outward to a whole one."""
    exact = Decimal(unscaled).scaleb(-kind.scale, _EXACT)
    shortest = repr(float(exact))
    if "e" not in shortest and Decimal(shortest) == exact:
        return float(exact)
    whole = int(exact.to_integral_value(rounding))
    return whole if abs(whole) < 10 ** (kind.precision - kind.scale) else None


def _finite(bounds: Sequence[float], of: Callable[[Sequence[float]], float]) -> float | None:
    return of(bounds) if all(map(math.isfinite, bounds)) else None


def _text_from(least: bytes) -> str | None:
    """A lower bound of a text: its first characters, at most `_MOST_CHARACTERS`."""
    text = _text(least)
    return None if text is None else text[:_MOST_CHARACTERS]


def _text_to(most: bytes) -> str | None:
    """An upper bound of a text: a long text's first characters, and the largest character."""
    text = _text(most)
    if text is None or len(text) <= _MOST_CHARACTERS:
        return text
    if text[_MOST_CHARACTERS] == _LAST_CHARACTER:
        return None
    return text[:_MOST_CHARACTERS] + _LAST_CHARACTER


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _instant(ms: int, kind: pa.TimestampType) -> str | None:
    """An instant in Delta's format; None if its year does not have four digits."""
    try:
        at = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
    text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if kind.tz is None else f"{text}Z"


def _day(number: int) -> str | None:
    try:
        return (_EPOCH_DAY + timedelta(days=number)).isoformat()
    except OverflowError:
        return None
