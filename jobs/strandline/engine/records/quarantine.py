"""Quarantine rows: the whole source row of a refused record, and why it was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.frames import long, named
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import SourceColumns, content, identity
from strandline.engine.records.side_by_side import columns_side_by_side, side_by_side
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT, QUARANTINE

_ORDER = "_strandline_order"


def quarantine_late(
    late: DataFrame, spec: PipelineSpec, source_columns: SourceColumns
) -> DataFrame:
    """Late records, each with the WATERMARK at its arrival, as quarantine rows without `run_id`.

    Flink's `isElementLate` wraps around on overflow: a record between two windows is late only
    by its own time; otherwise it is dropped as `no_window`.
    """
    after_the_end = F.col(c.ARRIVAL) >= F.col(c.ENDED_AT)
    late = late.withColumn(
        c.WATERMARK, F.when(after_the_end, F.lit(MAX_WATERMARK)).otherwise(F.col(c.WATERMARK))
    )
    in_gap = F.col(c.MISSED) <= 0
    vanished = in_gap & (_wrapped(c.TS, spec.allowed_lateness) > _decimal(c.WATERMARK))
    behind = _decimal(c.WATERMARK) - (_decimal(c.SLOT_END) - 1) - spec.allowed_lateness + 1
    in_a_long = F.greatest(F.least(behind, F.lit(MAX_WATERMARK)), F.lit(MIN_WATERMARK))
    late_by = in_a_long.cast("bigint")
    slot_start = F.timestamp_millis(c.SLOT)
    columns = {
        "reason": F.when(vanished, "no_window").otherwise("late"),
        "watermark_ms": F.nullif(F.col(c.WATERMARK), F.lit(MIN_WATERMARK)),
        "late_by_ms": F.when(~vanished, late_by),
        "slot_start": slot_start,
        "missed_windows": F.when(~vanished, F.greatest(F.col(c.MISSED), long(0))),
    }
    return _rows(late, spec, source_columns, columns, slot_start.cast("date"))


def _wrapped(name: str, lateness_ms: int) -> Column:
    """Sum of a time and the lateness as a decimal, with a long's overflow: `wrapping_add`."""
    exact = _decimal(name) + F.lit(Decimal(lateness_ms))
    return F.when(exact > MAX_WATERMARK, exact - F.lit(Decimal(2**64))).otherwise(exact)


def quarantine_malformed(
    records: DataFrame, spec: PipelineSpec, source_columns: SourceColumns
) -> DataFrame:
    """The malformed records as quarantine rows without `run_id`."""
    nothing, malformed = long(None), records.where(F.col(c.REASON).isNotNull())
    columns = {
        "reason": F.col(c.REASON),
        "watermark_ms": nothing,
        "late_by_ms": nothing,
        "slot_start": F.lit(None).cast("timestamp"),
        "missed_windows": nothing,
    }
    return _rows(malformed, spec, source_columns, columns, F.col(c.ARRIVAL_DAY))


def of_inputs(rows: Mapping[str, DataFrame], spec: PipelineSpec) -> DataFrame:
    """The quarantine rows of both inputs of a join in one table, each with its INPUT.

    Raises:
        InputError: both landing tables have a column of one name, of types that do not fit one.
    """
    named = {
        name: of_input.withColumns(
            {
                # equal rows of both landing tables are two rows
                "record_id": F.concat(F.lit(f"{name}-"), "record_id"),
                "spec_fingerprint": F.lit(spec.spec_fingerprint),
            }
        )
        for name, of_input in rows.items()
    }
    return side_by_side(named, spec)


def result_names(source_columns: Sequence[str]) -> dict[str, str]:
    """The quarantine name of each source column: `source_<name>` if quarantine has that name."""
    names = {name: name for name in source_columns}
    in_use = {*QUARANTINE.columns, *(name.lower() for name in source_columns)}
    for name in source_columns:
        if name.lower() in QUARANTINE.columns:
            while names[name].lower() in in_use:
                names[name] = f"source_{names[name]}"
    return names


def as_quarantined(landing: T.StructType) -> T.StructType:
    """The columns of a landing table by their names in quarantine."""
    names = result_names(landing.names)
    return T.StructType([T.StructField(names[f.name], f.dataType) for f in landing.fields])


def second_of_two(landing: Mapping[str, T.StructType], spec: PipelineSpec) -> dict[str, str]:
    """The quarantine columns that hold a landing column's values in its second type.

    Two landing tables may have a column `amount` in two types. Then quarantine has `amount` and
    `amount__double`, and this is `{"amount__double": "amount"}`. Rows of an interval
    join are named for quarantine before the tables are combined, late rows of windows over both
    tables afterwards: so a column `reason` gives `source_reason__double` or `reason__double`.

    Args:
        landing: the columns of each landing table, by its side.
        spec: the pipeline.
    """
    combined, named = (
        [one for side in columns_side_by_side(sides, spec).values() for one in side.items()]
        for sides in (landing, {side: as_quarantined(own) for side, own in landing.items()})
    )
    names = result_names([column.name for _, column in combined])
    second = {names[column.name]: names[own] for own, column in combined if column.name != own}
    return second | {column.name: own for own, column in named if column.name != own}


def as_landed(
    quarantined: DataFrame, landing: T.StructType, second: Mapping[str, Sequence[str]]
) -> DataFrame:
    """The landing rows in quarantine rows, with the whole quarantine row as QUARANTINED.

    A column that the landing table got later is null, and so is a value that cannot be cast to its
    present type. Names are compared without case. Where a landing column has the name of another
    column's second one (`amount__double`), the values in quarantine are of the other column, and
    not read; with two sources they are read, since each row has values of its own source alone.

    Args:
        quarantined: rows of quarantine.
        landing: the columns of the landing table.
        second: for a column, the further quarantine columns with values of it in other types.
    """
    names = result_names([field.name for field in landing.fields])
    columns = {field.name.lower(): field for field in quarantined.schema.fields}
    second = {name.lower(): [own.lower() for own in every] for name, every in second.items()}
    of_others = set() if INPUT in columns else {*chain(*second.values())}

    def columns_of(kept: str) -> list[T.StructField]:
        own = [] if kept in of_others else [kept]
        return [columns[name] for name in (*own, *second.get(kept, ())) if name in columns]

    values = {
        field.name: _value_of(columns_of(names[field.name].lower()), field.dataType)
        for field in landing.fields
    }
    whole = F.struct(*map(quoted, quarantined.columns)).alias(c.QUARANTINED)
    return quarantined.select(*named(values), whole)


def _value_of(columns: Sequence[T.StructField], wanted: T.DataType) -> Column:
    """The first non-null value of some columns, cast to a type; null: they have none."""
    found = [
        quoted(own.name) if own.dataType == wanted else quoted(own.name).try_cast(wanted)
        for own in columns
        if own.dataType == wanted or _means_the_same(own.dataType, wanted)
    ]
    return F.coalesce(*found) if found else F.lit(None).cast(wanted)


def _means_the_same(kind: T.DataType, wanted: T.DataType) -> bool:
    """Whether a cast keeps the meaning of a value: a time is not a number."""
    families = (T.NumericType, T.DatetimeType)
    either_is_text = isinstance(kind, T.StringType) or isinstance(wanted, T.StringType)
    of_one_family = any(isinstance(kind, f) and isinstance(wanted, f) for f in families)
    is_plain = isinstance(kind, T.AtomicType) and isinstance(wanted, T.AtomicType)
    return is_plain and (either_is_text or of_one_family)


def _rows(
    records: DataFrame,
    spec: PipelineSpec,
    source_columns: SourceColumns,
    columns: Mapping[str, Column],
    day: Column,
) -> DataFrame:
    """Quarantine rows with a reason's own `columns`, and the columns that every such row has."""
    names = result_names(source_columns.names)
    # equal ids get a number; rows equal in everything are interchangeable, and have one id where it
    # is made of the whole row
    is_whole_row = not (spec.source.id or source_columns.of_sides)
    order = F.lit(0) if is_whole_row else content(source_columns)
    rows = records.select(
        *(quoted(name).alias(names[name]) for name in source_columns.names),
        identity(spec, source_columns).alias("record_id"),
        *named(columns),
        F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        day.alias("quarantine_date"),
        order.alias(_ORDER),
    )
    equal = Window.partitionBy("record_id", "quarantine_date", "slot_start").orderBy(_ORDER)
    number = F.row_number().over(equal)
    return rows.withColumn(
        "record_id",
        F.when(number > 1, F.concat_ws("-", "record_id", number)).otherwise(F.col("record_id")),
    ).drop(_ORDER)


def _decimal(name: str) -> Column:
    return F.col(name).cast("decimal(20,0)")
