"""Reading a landing table as records: its columns by the spec, and what is malformed, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from decimal import Decimal
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import WIDEST_MS, Grid
from strandline.errors import InputError
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Candidate, Ticks
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import CandidateExpression, Punctuated
from strandline.spec.window import Session

_LEADING_YEAR = r"^\s*[+-]?\d{4}"
"""A text without a date would be a time of today: nothing that a rebuild may depend on."""


def read_records(landing: DataFrame, spec: PipelineSpec, axis: Axis) -> DataFrame:
    """The landing rows of a pipeline with the engine's columns beside their own.

    Rows that `source.where` excludes are gone; malformed rows stay, with their `REASON`.

    Raises:
        InputError: a column is missing, an expression is wrong, or a time has no time type.
    """
    source, grid = spec.source, Grid.of(spec)
    for name in landing.columns:
        if c.is_ours(name) and name != c.QUARANTINED:
            place = f"{spec.pipeline}: source.table"
            raise InputError(place, f"its column {name!r} has a name of ours", "rename it there")
    for name in source.id or ():
        if name not in landing.columns:
            known = ", ".join(landing.columns)
            place = f"{spec.pipeline}: source.id"
            raise InputError(place, f"{name!r} is no column", f"its columns are {known}")
    rows = landing
    if source.where is not None:
        rows = landing.where(_condition(landing, source.where, f"{spec.pipeline}: source.where"))
    arrival, _ = _time(landing, source.arrival_time, f"{spec.pipeline}: source.arrival_time")
    ts, ts_given = arrival, None
    if not spec.arrival_is_event_time:
        ts, ts_given = _time(landing, source.event_time, f"{spec.pipeline}: source.event_time")
    channel = (
        F.lit("")
        if source.channel is None
        else expression(landing, source.channel, f"{spec.pipeline}: source.channel").cast("string")
    )
    keys = {
        c.key_column(name): expression(landing, text, f"{spec.pipeline}: source.key.{name}")
        for name, text in source.key.items()
    }
    rows = rows.withColumns(
        {
            c.ARRIVAL: arrival,
            c.TS: ts,
            c.CHANNEL: channel,
            c.ARRIVAL_DAY: _arrival_day(landing, spec, arrival),
            c.SEQUENCE: _sequence(landing, spec),
            **keys,
        }
    )
    rows = rows.withColumns(
        {
            c.STEP: floor(F.col(c.TS), grid.step_ms, grid.offset_ms),
            c.INSTANT: instant_of(axis, F.col(c.ARRIVAL), F.col(c.SEQUENCE)),
            c.CANDIDATE: _candidate(landing, spec),
        }
    )
    rows = rows.withColumn(c.PANE, _pane(grid))
    if isinstance(spec.window, Session):
        rows = rows.withColumn(c.END, F.col(c.TS) + _gap(landing, spec, spec.window))
    return rows.withColumn(c.REASON, _reason(landing, spec, grid, ts_given, list(keys)))


def slot_of(ts: Column, grid: Grid) -> Column:
    """The start of the newest window of an event time."""
    return floor(ts, grid.span_ms, grid.offset_ms)


def floor(ts: Column, step_ms: int, offset_ms: int) -> Column:
    """The start of the step of a grid that a time lies in."""
    return ts - F.pmod(ts - offset_ms, F.lit(step_ms))


def _pane(grid: Grid) -> Column:
    """The start of a record's pane; the set form of `Grid.panes_of`."""
    step = F.col(c.STEP)
    if not grid.cut_ms:
        return step
    return step + F.when(F.col(c.TS) - step >= grid.cut_ms, grid.cut_ms).otherwise(0)


def _gap(landing: DataFrame, spec: PipelineSpec, window: Session) -> Column:
    """The session gap of a record in ms; null where it has none: it must be positive."""
    if isinstance(window.session, int):
        return F.lit(min(window.session, WIDEST_MS)).cast("bigint")
    place = f"{spec.pipeline}: window.session"
    column = expression(landing, window.session, place)
    found = landing.select(column).schema[0].dataType
    if not _is_whole(found):
        raise InputError(
            place, f"is {found.simpleString().upper()}", "give a whole number of milliseconds"
        )
    return F.when(column > 0, F.least(column, F.lit(WIDEST_MS)).cast("bigint"))


def _windows_fit(grid: Grid) -> Column:
    """Whether all windows of a record lie in the years 0001 to 9999: `Grid.windows_of_panes`."""
    step, size = F.col(c.STEP), grid.size_ms
    if grid.cumulative:
        start = slot_of(F.col(c.TS), grid)
        return (start >= LEAST_INSTANT_MS) & (start <= END_OF_INSTANTS_MS - 1 - size)
    lets_go = F.col(c.PANE) > step if grid.cut_ms else F.lit(True)
    oldest = step - size // grid.step_ms * grid.step_ms + F.when(lets_go, grid.step_ms).otherwise(0)
    inside = (oldest >= LEAST_INSTANT_MS) & (step <= END_OF_INSTANTS_MS - 1 - size)
    return inside | (oldest > step)


def in_days(column: str, days: Iterable[date | None]) -> Column:
    """Whether a date column is one of some days; None: whether it is null.

    Written as one text of literals: a year of them, one by one, would take Spark's gateway seconds.
    """
    wanted = set(days)
    named = ", ".join(f"DATE'{day.isoformat()}'" for day in wanted if day is not None)
    inside = F.expr(f"{in_quotes(column)} IN ({named})") if named else F.lit(False)
    return inside | quoted(column).isNull() if None in wanted else inside


def on_days(
    records: DataFrame,
    days: Collection[date | None],
    among: Iterable[date | None] | None = None,
) -> DataFrame:
    """The records of some arrival days; a table partitioned by them reads no others.

    Where these are all the days that there are (`among`) nothing is filtered: a filter that names
    every day would only be work for the log's reader.
    """
    if among is not None and set(days) >= set(among):
        return records
    return records.where(in_days(c.ARRIVAL_DAY, days))


def lies_in_its_day() -> Column:
    """Whether a row's arrival lies in the day of its partition; false where either is null."""
    since_midnight = F.col(c.ARRIVAL) - midnight_ms(F.col(c.ARRIVAL_DAY))
    return F.coalesce(since_midnight.between(0, DAY_MS - 1), F.lit(False))


def midnight_ms(day: Column) -> Column:
    """The first millisecond of a date; plain arithmetic, where a cast would ask for time zones."""
    return F.unix_date(day).cast("bigint") * DAY_MS


def date_of(instant_ms: Column) -> Column:
    """The date of an instant in ms; plain arithmetic as well."""
    return F.date_from_unix_date(F.floor(instant_ms / DAY_MS).cast("int"))


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


def _condition(landing: DataFrame, text: str, place: str) -> Column:
    """A boolean column or expression; null counts as false."""
    column = expression(landing, text, place)
    found = landing.select(column).schema[0].dataType
    if not isinstance(found, T.BooleanType):
        raise InputError(place, f"gives {found.simpleString()}", "give a boolean expression")
    return F.coalesce(column, F.lit(False))


def candidate_of(rule: Candidate, ts: Column) -> Column:
    """The watermark that an event time offers; the set form of `Candidate.of`."""
    return F.greatest(ts, F.lit(MIN_WATERMARK + rule.delay_ms)) + F.lit(-rule.delay_ms)


def _candidate(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The watermark that a record offers; null: none. See `Generator.on_event` in `reference`."""
    watermark, place = spec.watermark, f"{spec.pipeline}: watermark"
    if watermark.candidate is not None:
        return candidate_of(watermark.candidate, F.col(c.TS))
    if isinstance(watermark, Punctuated):
        marked = _condition(landing, watermark.marker, f"{place}.marker")
        return F.when(marked, F.col(c.TS))
    if isinstance(watermark, CandidateExpression):
        offered, _ = _time(landing, watermark.candidate_, f"{place}.candidate")
        return offered
    if watermark.lag_ms is not None and watermark.interval_ms is None:
        return candidate_of(Candidate(watermark.lag_ms), F.col(c.ARRIVAL))
    return F.lit(None).cast("bigint")


def _time(landing: DataFrame, text: str, place: str) -> tuple[Column, Column]:
    """The milliseconds of a time column or expression, and whether the row has any value there."""
    column = expression(landing, text, place)
    found = landing.select(column).schema[0].dataType
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


def _arrival_day(landing: DataFrame, spec: PipelineSpec, arrival: Column) -> Column:
    if spec.source.arrival_date is None:
        known = arrival.between(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
        return F.when(known, date_of(arrival))
    place = f"{spec.pipeline}: source.arrival_date"
    column = expression(landing, spec.source.arrival_date, place)
    found = landing.select(column).schema[0].dataType
    if isinstance(found, T.StringType):
        return column.try_cast("date")
    if isinstance(found, T.DateType | T.TimestampType | T.TimestampNTZType):
        return column.cast("date")
    raise InputError(place, f"is {found.simpleString().upper()}", "give a date column")


def instant_of(axis: Axis, arrival: Column, sequence: Column) -> Column:
    """The instant of a record; the set form of `Axis.instant`."""
    if not axis.sequenced:
        return arrival
    return first_of(axis, arrival) + (
        sequence.cast("decimal(20,0)") - F.lit(Decimal(MIN_WATERMARK))
    )


def first_of(axis: Axis, arrival: Column) -> Column:
    """The first instant of an arrival millisecond; the set form of `Axis.first_of`."""
    if not axis.sequenced:
        return arrival
    return arrival.cast("decimal(20,0)") * F.lit(Decimal(axis.scale))


def tick_after(arrival: Column, ticks: Ticks) -> Column:
    """The tick that shows a record; the set form of `Ticks.after`."""
    interval = F.lit(ticks.interval_ms)
    tick = arrival + interval - F.pmod(arrival - ticks.start_ms, interval)
    return F.greatest(tick, F.lit(ticks.start_ms + ticks.interval_ms))


def keys_of(spec: PipelineSpec) -> list[str]:
    """The engine's columns of a pipeline's keys."""
    return [c.key_column(name) for name in spec.source.key]


def _sequence(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The order of records inside an arrival instant; a record without one comes first."""
    if spec.source.sequence is None:
        return F.lit(0).cast("bigint")
    place = f"{spec.pipeline}: source.sequence"
    column = expression(landing, spec.source.sequence, place)
    found = landing.select(column).schema[0].dataType
    if not _is_whole(found):
        raise InputError(
            place, f"is {found.simpleString().upper()}", "give a whole number, cast to BIGINT"
        )
    return F.coalesce(column.cast("bigint"), F.lit(MIN_WATERMARK))


def _is_whole(kind: T.DataType) -> bool:
    return isinstance(kind, T.IntegralType) or (isinstance(kind, T.DecimalType) and not kind.scale)


def _reason(
    landing: DataFrame, spec: PipelineSpec, grid: Grid, ts_given: Column | None, keys: list[str]
) -> Column:
    """The first reason that makes a row malformed, in the order of the design; null: none.

    `ts_given`: whether the row has an event time of its own; None: nobody looks at it.
    """
    source = spec.source
    ts, arrival, channel = F.col(c.TS), F.col(c.ARRIVAL), F.col(c.CHANNEL)
    reasons: list[tuple[str, Column]] = []
    if ts_given is not None:
        reasons += [("null_event_time", ~ts_given), ("unparsable_event_time", ts.isNull())]
    reasons += [
        ("null_arrival", arrival.isNull()),
        ("arrival_outside_partition", ~lies_in_its_day()),
    ]
    if source.max_ahead is not None:
        reasons.append(("ahead_of_arrival", ts - arrival > source.max_ahead))
    if source.channel is not None:
        reasons.append(("null_channel", channel.isNull()))
        if source.declared_channels is not None:
            reasons.append(("undeclared_channel", ~channel.isin(*source.declared_channels)))
    if keys:
        any_null = reduce(Column.__or__, (F.col(key).isNull() for key in keys))
        reasons.append(("null_key", any_null))
    if source.valid is not None:
        place = f"{spec.pipeline}: source.valid"
        reasons.append(("invalid", ~_condition(landing, source.valid, place)))
    inside = ts.between(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1) & _windows_fit(grid)
    if isinstance(spec.window, Session):
        if spec.window.gap_ms is None:
            reasons.append(("invalid", F.col(c.END).isNull()))
        inside &= F.col(c.END) < END_OF_INSTANTS_MS
    reasons.append(("event_time_out_of_range", ~inside))
    return reduce(
        lambda chain, pair: chain.when(pair[1], pair[0]),
        reasons[1:],
        F.when(reasons[0][1], reasons[0][0]),
    )


def _first_line(error: AnalysisException) -> str:
    return str(error.getMessage() or error).splitlines()[0]
