"""Column names and Spark SQL expressions of a pipeline file, over the landing table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    UnsupportedOperationException,
)
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine.frames import executor_of
from strandline.errors import InputError
from strandline.spec.expressions import problems_of_record
from strandline.sql.column_types import Wanted, misfit

REFUSED_BY_THE_ENGINE = (
    AnalysisException,
    IllegalArgumentException,
    UnsupportedOperationException,
)
"""Errors of engines for expressions that they reject; Spark raises only the first."""
_LEADING_YEAR = r"^\s*[+-]?\d{4}"
"""Matches a text that begins with a year. Spark parses a text such as `10:00` as a time of today,
which a rebuild would change, so such a text is malformed here."""

NESTED = (T.ArrayType, T.MapType, T.StructType)
"""Types that hold values of other types."""
_NOT_STORED = (
    T.DayTimeIntervalType,
    T.YearMonthIntervalType,
    T.CalendarIntervalType,
    T.VariantType,
)
_YEAR_1_MS = -62_135_596_800_000
"""The first valid event time; a row with an earlier one is malformed."""


@dataclass(frozen=True)
class _Known:
    """The cached types that an engine has given for expressions over columns.

    Attributes:
        types: the types of the columns, and of expressions as far as Sail has been asked.
        of_records: the types of expressions over one record.
    """

    types: dict[str, str] = field(default_factory=dict)
    of_records: dict[str, T.DataType] = field(default_factory=dict)


_KNOWN: WeakKeyDictionary[SparkSession, dict[T.StructType, _Known]] = WeakKeyDictionary()
"""By the session, as each has functions and settings of its own, and by the columns."""


def _known_over(rows: DataFrame) -> _Known:
    over, columns = _KNOWN.setdefault(rows.sparkSession, {}), rows.schema
    if columns not in over:
        fields = (one for one in columns.fields if one.name.isidentifier())
        over[columns] = _Known({one.name: one.dataType.simpleString() for one in fields})
    return over[columns]


def column_and_type(
    landing: DataFrame, text: str, place: str, where: str | None = None
) -> tuple[Column, T.DataType]:
    """A column by its exact name, or else a Spark SQL expression over the landing table; its type.

    Args:
        landing: the landing table.
        text: the name or the expression.
        place: its place in the pipeline's file.
        where: a condition; the expression is computed only for rows that fulfil it.

    Raises:
        InputError: the text is neither, or its value does not depend on the record alone.
    """
    if text in landing.columns:
        return quoted(text), landing.schema[text].dataType
    for problem, way_out in problems_of_record(text, "any", dict.fromkeys(landing.columns)):
        raise InputError(place, problem, way_out)
    try:
        sql = written(landing, text)
        column, known = F.expr(sql), _known_over(landing).of_records
        if sql not in known:
            # select("*", …): Spark refuses an aggregate beside plain columns, and analyses a plan
            # only when its schema is read
            known[sql] = landing.select("*", column).schema.fields[-1].dataType
    except REFUSED_BY_THE_ENGINE as error:
        names = ", ".join(landing.columns)
        raise InputError(
            place,
            f"{text!r} is neither a column nor an expression over the landing table "
            f"({first_line(error)})",
            f"its columns are {names}",
        ) from None
    found = known[sql]
    if where is not None and not executor_of(landing.sparkSession).answers_as_spark:
        from strandline.sql.guards import text_may_fail  # noqa: PLC0415

        if text_may_fail(text, lambda part: types_or_none(landing, [part])[0]):
            column = F.expr(_behind_where(landing, where, sql, found))
    return column, found


def expression(rows: DataFrame, text: str) -> Column:
    """An expression or aggregate over rows, with Apache Spark's result on each engine."""
    return F.expr(written(rows, text))


def written(rows: DataFrame, text: str) -> str:
    """The SQL by which the engine of some rows gives Apache Spark's result of an expression."""
    if executor_of(rows.sparkSession).answers_as_spark:
        return text
    from strandline.sql.as_on_spark import as_on_spark  # noqa: PLC0415

    return as_on_spark(text, partial(types_or_none, rows))


def _behind_where(landing: DataFrame, where: str, sql: str, kind: T.DataType) -> str:
    """The SQL by which Sail computes an expression only for rows that fulfil `where`: a CASE.

    A filter is not enough: Sail computes conditions on filtered rows together with the filter. The
    expression and the condition are each written for Sail alone, as they were checked: a CASE is
    nested more deeply.
    """
    from strandline.sql.written_for_sail import chosen  # noqa: PLC0415

    kept = in_quotes(where) if where in landing.columns else written(landing, where)
    form = chosen([kind.simpleString()])
    branch = form.operands[0].format(f"{sql}\n") if form.operands else f"{sql}\n"
    return form.around.format(f"CASE WHEN {kept}\nTHEN {branch} END")


def types_or_none(rows: DataFrame, texts: Sequence[str]) -> list[str | None]:
    """The types of expressions over rows; None for an expression that the engine refuses.

    All types that are not cached are found with one query.
    """
    types = _known_over(rows).types
    asked = [text for text in texts if text not in types]
    found = zip(asked, _types_of(rows, asked), strict=True) if asked else ()
    types.update((text, kind) for text, kind in found if kind)
    return [types.get(text) for text in texts]


def _types_of(rows: DataFrame, texts: Sequence[str]) -> list[str | None]:
    try:
        fields = rows.select(*map(F.expr, texts)).schema.fields
    except PySparkException as error:
        require_answered(error)
        if len(texts) == 1:
            return [None]
        return [kind for text in texts for kind in _types_of(rows, [text])]
    return [field.dataType.simpleString() for field in fields]


def require_answered(error: PySparkException) -> None:
    """Raise an error again if the connection to Sail caused it, and no expression did."""
    if type(error) is SparkConnectGrpcException:
        raise error


def quoted(name: str) -> Column:
    """A column by its exact name, which may contain any characters."""
    return F.col(in_quotes(name))


def in_quotes(name: str) -> str:
    """A name in backquotes for Spark SQL, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


def condition(landing: DataFrame, text: str, place: str, where: str | None = None) -> Column:
    """A boolean column or expression; null counts as false. `where`: see `column_and_type`."""
    column, found = column_and_type(landing, text, place, where)
    require_type("condition", text, found, place)
    return F.coalesce(column, F.lit(False))


def require_type(wanted: Wanted, text: str, found: T.DataType, place: str) -> None:
    """Refuse an expression of another type than the wanted one.

    Raises:
        InputError: the type is another one.
    """
    if problem := misfit(wanted, text, found.simpleString()):
        raise InputError(place, *problem)


def require_stored(text: str, found: T.DataType, place: str) -> None:
    """Refuse a key or an aggregate of a type that a Delta table cannot store.

    Raises:
        InputError: it has such a type, or holds values of one.
    """
    if isinstance(found, T.NullType) or holds(found, _NOT_STORED):
        raise InputError(
            place,
            f"{text!r} gives {found.simpleString()}, which a Delta table cannot store",
            "make a number or a text of it: an interval of seconds is CAST(x AS BIGINT)",
        )


def holds(kind: T.DataType, types: tuple[type[T.DataType], ...]) -> bool:
    """Whether a type is one of some types, or holds values of one."""
    inside: list[T.DataType] = []
    if isinstance(kind, T.StructType):
        inside = [field.dataType for field in kind.fields]
    elif isinstance(kind, T.ArrayType):
        inside = [kind.elementType]
    elif isinstance(kind, T.MapType):
        inside = [kind.keyType, kind.valueType]
    return isinstance(kind, types) or any(holds(one, types) for one in inside)


def whole_number(
    landing: DataFrame, text: str, place: str, wanted: Wanted, where: str | None = None
) -> Column:
    """A column or expression that gives whole numbers. `where`: see `column_and_type`.

    Raises:
        InputError: it gives anything else.
    """
    column, found = column_and_type(landing, text, place, where)
    require_type(wanted, text, found, place)
    return column


def _floored_ms(instant: Column) -> Column:
    """The millisecond of a timestamp, floored; not every engine floors times before 1970."""
    micros = F.unix_micros(instant)
    from_year_1 = F.call_function("div", micros + F.lit(-_YEAR_1_MS * 1000), F.lit(1000))
    return F.when(micros < 0, from_year_1 + F.lit(_YEAR_1_MS)).otherwise(F.unix_millis(instant))


def time_ms(
    landing: DataFrame, text: str, place: str, where: str | None = None
) -> tuple[Column, Column]:
    """A time column or expression in ms (null: it is no time), and whether its value is not null.

    A value that is not null but no time, such as the text `soon`, makes the row malformed.
    `where`: see `column_and_type`.

    Raises:
        InputError: see `column_and_type`; or the type is neither a time nor text.
    """
    column, found = column_and_type(landing, text, place, where)
    require_type("time", text, found, place)
    given = column.isNotNull()
    if isinstance(found, T.StringType):
        plain = F.when(column.rlike(_LEADING_YEAR), column)
        return _floored_ms(plain.try_cast("timestamp")), given
    return _floored_ms(column.cast("timestamp")), given


def first_line(error: PySparkException) -> str:
    """The first line of an engine's error message."""
    return str(error.getMessage() or error).splitlines()[0]
