"""What a pipeline file says about the landing table: columns by name, and Spark SQL expressions."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.errors import InputError

_LEADING_YEAR = r"^\s*[+-]?\d{4}"
"""A text without a date would be a time of today: nothing that a rebuild may depend on."""


def expression(landing: DataFrame, text: str, place: str) -> Column:
    """A column by its exact name, or else a Spark SQL expression over the landing table.

    Raises:
        InputError: it is neither.
    """
    if text in landing.columns:
        return quoted(text)
    try:
        column = F.expr(text)
        landing.select("*", column)  # beside the others: an aggregate is none of them
    except AnalysisException as error:
        known = ", ".join(landing.columns)
        raise InputError(
            place,
            f"{text!r} is no column and no expression over the landing table "
            f"({_first_line(error)})",
            f"its columns are {known}",
        ) from None
    return column


def quoted(name: str) -> Column:
    """A column by its exact name, whatever signs that has."""
    return F.col(in_quotes(name))


def in_quotes(name: str) -> str:
    """A name as Spark SQL takes it, whatever signs it has."""
    return "`" + name.replace("`", "``") + "`"


def condition(landing: DataFrame, text: str, place: str) -> Column:
    """A boolean column or expression; null counts as false."""
    column = expression(landing, text, place)
    found = type_of(column, landing)
    if not isinstance(found, T.BooleanType):
        raise InputError(place, f"gives {found.simpleString()}", "give a boolean expression")
    return F.coalesce(column, F.lit(False))


def type_of(column: Column, landing: DataFrame) -> T.DataType:
    """The type of a column over the landing table."""
    return landing.select(column).schema[0].dataType


def whole_number(landing: DataFrame, text: str, place: str, *, way_out: str) -> Column:
    """A column or expression that gives whole numbers.

    Raises:
        InputError: it gives anything else; `way_out` says what to give instead.
    """
    column = expression(landing, text, place)
    found = type_of(column, landing)
    without_fraction = isinstance(found, T.DecimalType) and not found.scale
    if not (isinstance(found, T.IntegralType) or without_fraction):
        raise InputError(place, f"is {found.simpleString().upper()}", way_out)
    return column


def time_ms(landing: DataFrame, text: str, place: str) -> tuple[Column, Column]:
    """The milliseconds of a time column or expression, and whether the row has any value there."""
    column = expression(landing, text, place)
    found = type_of(column, landing)
    given = column.isNotNull()
    if isinstance(found, T.StringType):
        plain = F.when(column.rlike(_LEADING_YEAR), column)
        return F.unix_millis(plain.try_cast("timestamp")), given
    if isinstance(found, T.TimestampType | T.TimestampNTZType | T.DateType):
        return F.unix_millis(column.cast("timestamp")), given
    raise InputError(
        place,
        f"{text!r} is {found.simpleString().upper()}, which is no time",
        f"give an expression such as timestamp_millis({text})",
    )


def _first_line(error: AnalysisException) -> str:
    return str(error.getMessage() or error).splitlines()[0]
