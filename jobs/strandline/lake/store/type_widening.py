"""The common type of two types of a column without loss, and the cast of values to it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FLOATING = (T.FloatType, T.DoubleType)
_DIGITS = 38
_WHOLE_DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 3,
    T.ShortType: 5,
    T.IntegerType: 10,
    T.LongType: 20,
}
"""The digits of the decimal that can hold every value of a type of whole numbers."""


def key_of(name: str) -> str:
    """A column's name in lower case, as Spark compares names."""
    return name.lower()


def same_type(one: T.DataType, other: T.DataType) -> bool:
    """Whether two types are equal apart from nullability."""
    return one.simpleString() == other.simpleString()


def common_type(
    one: T.DataType, other: T.DataType, *, into_fractions: bool = False
) -> T.DataType | None:
    """The narrowest type that both types can be cast to without loss; None if there is none.

    Fields of structs are named as in `other`.

    Args:
        one: a type.
        other: another type.
        into_fractions: whether whole numbers may become floating-point numbers or decimals, as in
            Delta's type widening: INT becomes DOUBLE; BIGINT does not, since 2^53 + 1 is no DOUBLE.
    """
    if same_type(one, other):
        return other
    for family in (_WHOLE, _FLOATING):
        if isinstance(one, family) and isinstance(other, family):
            return max(one, other, key=lambda kind: family.index(type(kind)))
    if isinstance(one, T.DecimalType) and isinstance(other, T.DecimalType):
        return _common_decimal(one, other)
    if into_fractions and (isinstance(one, _WHOLE) or isinstance(other, _WHOLE)):
        whole, fraction = (one, other) if isinstance(one, _WHOLE) else (other, one)
        return _with_fractions(whole, fraction)
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        element = common_type(one.elementType, other.elementType, into_fractions=into_fractions)
        return None if element is None else T.ArrayType(element)
    if isinstance(one, T.MapType) and isinstance(other, T.MapType):
        value = common_type(one.valueType, other.valueType, into_fractions=into_fractions)
        same_keys = same_type(one.keyType, other.keyType)
        return T.MapType(other.keyType, value) if value is not None and same_keys else None
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return _common_struct(one, other, into_fractions=into_fractions)
    return None


def _common_decimal(one: T.DecimalType, other: T.DecimalType) -> T.DecimalType | None:
    scale = max(one.scale, other.scale)
    digits = scale + max(one.precision - one.scale, other.precision - other.scale)
    return T.DecimalType(digits, scale) if digits <= _DIGITS else None


def _with_fractions(whole: T.DataType, fraction: T.DataType) -> T.DataType | None:
    """The type of fractions that can also hold a type of whole numbers; None if there is none."""
    if isinstance(fraction, _FLOATING) and not isinstance(whole, T.LongType):
        return T.DoubleType()
    if isinstance(fraction, T.DecimalType):
        return _common_decimal(T.DecimalType(_WHOLE_DIGITS[type(whole)], 0), fraction)
    return None


def _common_struct(
    one: T.StructType, other: T.StructType, *, into_fractions: bool
) -> T.StructType | None:
    ours = {key_of(field.name): field for field in one.fields}
    both = T.StructType()
    for field in other.fields:
        of_one = ours.pop(key_of(field.name), field)
        kind = common_type(of_one.dataType, field.dataType, into_fractions=into_fractions)
        if kind is None:
            return None
        both.add(field.name, kind)
    for field in ours.values():
        both.add(field.name, field.dataType)
    return both


def in_type(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Values cast to a type of `common_type`; new fields of structs are null."""
    if values.type == wanted:
        return values
    named = _by_names_of(wanted, values.type)
    return pa.chunked_array([part.view(named).cast(wanted) for part in values.chunks], wanted)


def _by_names_of(wanted: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """A type with the names of struct fields taken from another type."""
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        theirs = {key_of(field.name): field for field in wanted}
        both = [(theirs[key_of(field.name)], field) for field in kind]
        return pa.struct([(of.name, _by_names_of(of.type, own.type)) for of, own in both])
    if pa.types.is_map(kind) and pa.types.is_map(wanted):
        return pa.map_(kind.key_type, _by_names_of(wanted.item_type, kind.item_type))
    if pa.types.is_list(kind) and pa.types.is_list(wanted):
        return pa.list_(_by_names_of(wanted.value_type, kind.value_type))
    return kind
