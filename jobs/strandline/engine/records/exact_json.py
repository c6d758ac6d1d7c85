"""JSON as Apache Spark's `to_json` writes it, for Sail, which writes some types differently.

The hash that identifies a row is made of this JSON (`identity`), and is the same on each engine.

Sail writes floating-point numbers and DECIMAL with other digits (-0.01 even without its sign),
TIMESTAMP_NTZ with a zone, and omits nulls whatever the options. It writes all other types as Spark
does. One difference remains: the escapes of eleven control characters have lower-case letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "true",
}
"""Options of `to_json`: times in microseconds, without nulls."""
_LEAST_PLAIN, _LEAST_SCIENTIFIC = 1e-3, 1e7
"""Java writes a floating-point number in [1e-3, 1e7) without an exponent, any other with one."""
_PLAIN_SCALE = 6
"""Java writes a DECIMAL with an exponent if its first digit's place is below 10^-6."""


@dataclass(frozen=True)
class Field:
    """A column, its name in JSON and its type."""

    name: str
    column: Column
    kind: T.DataType


def exact_json(fields: Iterable[Field], *, nulls: bool) -> Column:
    """Columns as one JSON object, in their order.

    Neighbouring fields that the engine writes as Spark does are written by one `to_json`.

    Args:
        fields: the columns.
        nulls: whether fields with a null value are included.
    """
    parts: list[Column] = []
    for by_engine, group in groupby(fields, lambda f: not nulls and _is_as_on_spark(f.kind)):
        neighbours = [*group]
        if by_engine:
            whole = F.to_json(F.struct(*(f.column.alias(f.name) for f in neighbours)), OPTIONS)
            parts.append(F.nullif(_without_ends(whole, 1), F.lit("")))  # "": all values are null
        else:
            parts += [_part(field, nulls=nulls) for field in neighbours]
    return F.concat(F.lit("{"), F.concat_ws(",", *parts), F.lit("}"))


def _part(field: Field, *, nulls: bool) -> Column:
    """The name and the value of a field; null: the field is omitted."""
    value = _value(field.column, field.kind, nulls=nulls)
    if nulls:
        value = F.coalesce(value, F.lit("null"))
    return F.concat(F.lit(json.dumps(field.name, ensure_ascii=False) + ":"), value)


def _value(column: Column, kind: T.DataType, *, nulls: bool) -> Column:
    """A value as JSON text; null if the value is null."""
    if isinstance(kind, T.FloatType | T.DoubleType):
        return _floating(column)
    if isinstance(kind, T.DecimalType):
        return _decimal(column, kind)
    if isinstance(kind, T.StructType):
        inside = (Field(f.name, column[f.name], f.dataType) for f in kind.fields)
        return F.when(column.isNotNull(), exact_json(inside, nulls=nulls))
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        values = F.transform(column, lambda one: _or_null(one, element, nulls=nulls))
        return F.concat(F.lit("["), F.array_join(values, ","), F.lit("]"))
    if isinstance(kind, T.MapType):
        of = kind.valueType
        entries = F.transform(
            F.map_entries(column),
            lambda one: F.concat(
                _by_engine(one["key"].cast("string")),
                F.lit(":"),
                _or_null(one["value"], of, nulls=nulls),
            ),
        )
        return F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
    text = _by_engine(column)
    if isinstance(kind, T.TimestampNTZType):
        text = F.regexp_replace(text, 'Z"$', '"')
    return F.when(column.isNotNull(), text)


def _or_null(column: Column, kind: T.DataType, *, nulls: bool) -> Column:
    return F.coalesce(_value(column, kind, nulls=nulls), F.lit("null"))


def _by_engine(column: Column) -> Column:
    """A value that the engine writes as Spark does, as JSON."""
    return _without_ends(F.to_json(F.struct(column.alias("v")), OPTIONS), len('{"v":'))


def _without_ends(text: Column, first: int) -> Column:
    """A text without its first `first` characters and without its last one."""
    return F.substring(text, F.lit(first + 1), F.length(text) - first - 1)


def _is_as_on_spark(kind: T.DataType) -> bool:
    """Whether the engine writes values of a type as Spark does."""
    if isinstance(kind, T.StructType):
        return all(_is_as_on_spark(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _is_as_on_spark(kind.elementType)
    if isinstance(kind, T.MapType):
        return _is_as_on_spark(kind.keyType) and _is_as_on_spark(kind.valueType)
    return not isinstance(kind, T.FractionalType | T.TimestampNTZType)


def _decimal(column: Column, kind: T.DecimalType) -> Column:
    """A DECIMAL as Java's BigDecimal writes it: with an exponent if that is below -6."""
    text = column.cast("string")
    if kind.scale <= _PLAIN_SCALE:
        return text
    digits = F.regexp_replace(text, "^-?[0.]*", "")
    digits = F.when(digits == "", F.lit("0")).otherwise(digits)
    exponent = F.length(digits) - 1 - kind.scale
    small = F.concat(_sign(text), _mantissa(digits, ""), F.lit("E"), exponent.cast("string"))
    return F.when(exponent < -_PLAIN_SCALE, small).otherwise(text)


def _floating(column: Column) -> Column:
    """A number as Java's Double or Float writes it, from the shortest digits."""
    text = column.cast("string")
    size = F.abs(column.cast("double"))
    is_plain = (size == 0.0) | ((size >= _LEAST_PLAIN) & (size < _LEAST_SCIENTIFIC))
    digits = F.regexp_replace(F.regexp_replace(text, "e.*$", ""), "[-.]", "")
    digits = F.regexp_replace(F.regexp_replace(digits, "^0+", ""), "0+$", "")
    whole = F.regexp_extract(text, "^-?([0-9]+)", 1)
    zeros = F.length(F.regexp_extract(text, "^-?0[.](0*)", 1))
    exponent = (
        F.when(text.contains("e"), F.regexp_extract(text, "e[+]?(-?[0-9]+)$", 1))
        .when(whole == "0", (-1 - zeros).cast("string"))
        .otherwise((F.length(whole) - 1).cast("string"))
    )
    scientific = F.concat(_sign(text), _mantissa(digits, ".0"), F.lit("E"), exponent)
    infinite = F.when(column > 0.0, F.lit('"Infinity"')).otherwise(F.lit('"-Infinity"'))
    return (
        F.when(F.isnan(column), F.lit('"NaN"'))
        .when(size == float("inf"), infinite)
        .when(is_plain, text)
        .otherwise(scientific)
    )


def _mantissa(digits: Column, of_one_digit: str) -> Column:
    """Digits with a point after the first one; `of_one_digit` follows if there is just one."""
    first, others = F.substring(digits, 1, 1), F.substring(digits, F.lit(2), F.length(digits))
    rest = F.when(others == "", F.lit(of_one_digit)).otherwise(F.concat(F.lit("."), others))
    return F.concat(first, rest)


def _sign(text: Column) -> Column:
    return F.when(text.startswith("-"), F.lit("-")).otherwise(F.lit(""))
