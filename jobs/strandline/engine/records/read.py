"""Reads a landing table as records: its columns by the spec, and which rows are malformed."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.conditions import any_of
from strandline.engine import columns as c
from strandline.engine.frames import executor_of, first_of_cases, long
from strandline.engine.position.axis import Numbering
from strandline.engine.position.grid import WIDEST_MS, Grid
from strandline.engine.records.arithmetic import (
    candidate_of,
    date_of,
    floor,
    instant_of,
    pane_of,
    windows_fit,
)
from strandline.engine.records.days import lies_in_its_day
from strandline.engine.records.expressions import (
    NESTED,
    column_and_type,
    condition,
    holds,
    require_stored,
    require_type,
    time_ms,
    whole_number,
)
from strandline.engine.records.results import places_of_results
from strandline.errors import InputError
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Candidate
from strandline.spec.chained import ResultsSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import CandidateExpression, Punctuated

_FLOATING = (T.FloatType, T.DoubleType)


def read_records(landing: DataFrame, spec: PipelineSpec) -> DataFrame:
    """The landing rows of a pipeline with the engine's columns beside their own.

    Rows that `source.where` excludes are dropped; malformed rows stay, with their `REASON`.

    Raises:
        InputError: a column is missing, an expression is wrong, or a time has no time type.
    """
    _refuse_wrong_names(landing, spec)
    source, grid = spec.source, Grid.of(spec)
    rows, where = landing, source.where
    if where is not None:
        rows = landing.where(condition(landing, where, f"{spec.pipeline}: source.where"))
    arrival, _ = time_ms(
        landing, source.arrival_time, f"{spec.pipeline}: source.arrival_time", where
    )
    ts, ts_given = arrival, None
    if not spec.arrival_is_event_time:
        ts, ts_given = time_ms(
            landing, source.event_time, f"{spec.pipeline}: source.event_time", where
        )
    as_given = {
        c.ARRIVAL: arrival,
        c.TS: ts,
        c.CHANNEL: _channel(landing, spec),
        c.ARRIVAL_DAY: _arrival_day(landing, spec, arrival),
        c.SEQUENCE: _sequence(landing, spec),
        **_keys(landing, spec),
    }
    derived = {
        c.STEP: floor(F.col(c.TS), grid.step_ms, grid.offset_ms),
        c.INSTANT: instant_of(Numbering.of_spec(spec), F.col(c.ARRIVAL), F.col(c.SEQUENCE)),
        c.CANDIDATE: _candidate(landing, spec),
    }
    rows = rows.withColumns(as_given).withColumns(derived).withColumn(c.PANE, pane_of(grid))
    if isinstance(spec, ResultsSpec):
        rows = rows.withColumns(places_of_results(spec))
    if spec.window.merging:
        rows = rows.withColumn(c.END, F.col(c.TS) + _gap(landing, spec))
    return rows.withColumn(c.REASON, _reason(landing, spec, ts_given))


def _refuse_wrong_names(landing: DataFrame, spec: PipelineSpec) -> None:
    for name in landing.columns:
        if c.is_ours(name) and name != c.QUARANTINED:
            place = f"{spec.pipeline}: source.table"
            raise InputError(place, f"its column {name!r} has a reserved name", "rename it there")
    for name in spec.source.id or ():
        if name not in landing.columns:
            known = ", ".join(landing.columns)
            place = f"{spec.pipeline}: source.id"
            raise InputError(place, f"{name!r} is not a column", f"its columns are {known}")


def _channel(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The channel of a record; an empty text, where the source has no channels."""
    if spec.source.channel is None:
        return F.lit("")
    place = f"{spec.pipeline}: source.channel"
    column, found = column_and_type(landing, spec.source.channel, place, spec.source.where)
    otherwise = (*_FLOATING, T.BinaryType, *NESTED)
    if not _is_as_on_spark(landing) and holds(found, otherwise):
        problem = f"is {found.simpleString()}, which Sail writes otherwise as a text, or not at all"
        raise InputError(place, problem, "give a text or a whole number, or --engine spark")
    return column.cast("string")


def _keys(landing: DataFrame, spec: PipelineSpec) -> dict[str, Column]:
    return {
        c.key_column(name): _key(
            landing, text, f"{spec.pipeline}: source.key.{name}", spec.source.where
        )
        for name, text in spec.source.key.items()
    }


def _key(landing: DataFrame, text: str, place: str, where: str | None) -> Column:
    """A key column; -0.0 is 0.0 and each NaN the same, as where Spark groups, on every engine."""
    column, found = column_and_type(landing, text, place, where)
    require_stored(text, found, place)
    if not _is_as_on_spark(landing) and holds(found, (T.MapType,)):
        problem = "is a MAP, of which Sail compares the order of the entries, too"
        raise InputError(place, problem, "give array_sort(map_entries(m)), or --engine spark")
    if isinstance(found, _FLOATING):
        return F.nanvl(column + F.lit(0.0), F.lit(float("nan"))).cast(found)
    if not _is_as_on_spark(landing) and holds(found, _FLOATING):
        problem = f"is {found.simpleString()}, in which Sail takes -0.0 and 0.0 for two values"
        raise InputError(place, problem, "give its numbers one by one, or --engine spark")
    return column


def _is_as_on_spark(landing: DataFrame) -> bool:
    return executor_of(landing.sparkSession).answers_as_spark


def _gap(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The session gap of a record in ms, which must be positive; null: it has none."""
    own = spec.window.gap_of_record
    if own is None:
        return F.lit(min(spec.window.least_length_ms, WIDEST_MS)).cast("bigint")
    place = f"{spec.pipeline}: window.session"
    gap_ms = whole_number(landing, own, place, "gap", spec.source.where)
    return F.when(gap_ms > 0, F.least(gap_ms, F.lit(WIDEST_MS)).cast("bigint"))


def _candidate(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The watermark that a record offers; null: none. See `Generator` in `reference.generators`."""
    watermark, place, where = spec.watermark, f"{spec.pipeline}: watermark", spec.source.where
    if watermark.candidate is not None:
        return candidate_of(watermark.candidate, F.col(c.TS))
    if isinstance(watermark, Punctuated):
        marked = condition(landing, watermark.marker, f"{place}.marker", where)
        return F.when(marked, F.col(c.TS))
    if isinstance(watermark, CandidateExpression):
        offered, _ = time_ms(landing, watermark.candidate_, f"{place}.candidate", where)
        return offered
    if watermark.lag_ms is not None and watermark.interval_ms is None:
        return candidate_of(Candidate(watermark.lag_ms), F.col(c.ARRIVAL))
    return long(None)


def _arrival_day(landing: DataFrame, spec: PipelineSpec, arrival: Column) -> Column:
    if spec.source.arrival_date is None:
        known = arrival.between(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
        return F.when(known, date_of(arrival))
    place = f"{spec.pipeline}: source.arrival_date"
    column, found = column_and_type(landing, spec.source.arrival_date, place, spec.source.where)
    require_type("date", spec.source.arrival_date, found, place)
    if not isinstance(found, T.StringType):
        return column.cast("date")
    # the time behind a date counts for nothing, and not every engine takes one with a zone
    before_the_time = F.substring_index(F.substring_index(F.trim(column), "T", 1), " ", 1)
    return before_the_time.try_cast("date")


def _sequence(landing: DataFrame, spec: PipelineSpec) -> Column:
    """The order of records inside an arrival instant; a record without one comes first."""
    source = spec.source
    if source.sequence is None:
        return long(0)
    place = f"{spec.pipeline}: source.sequence"
    sequence = whole_number(landing, source.sequence, place, "sequence", source.where)
    return F.coalesce(sequence.cast("bigint"), F.lit(MIN_WATERMARK))


def _reason(landing: DataFrame, spec: PipelineSpec, ts_given: Column | None) -> Column:
    """The first reason why a row is malformed; null: it is well-formed.

    Args:
        landing: the landing table.
        spec: the pipeline.
        ts_given: whether the row has a value for its event time; None: the arrival is used.
    """
    reasons = _reasons(landing, spec, ts_given)
    return first_of_cases(((applies, F.lit(reason)) for reason, applies in reasons), F.lit(None))


def _reasons(
    landing: DataFrame, spec: PipelineSpec, ts_given: Column | None
) -> Iterator[tuple[str, Column]]:
    """Each reason, and whether it applies to a row, in order of precedence."""
    source, ts = spec.source, F.col(c.TS)
    if ts_given is not None:
        yield "null_event_time", ~ts_given
        yield "unparsable_event_time", ts.isNull()
    yield "null_arrival", F.col(c.ARRIVAL).isNull()
    yield "arrival_outside_partition", ~lies_in_its_day()
    if source.max_ahead is not None:
        yield "ahead_of_arrival", ts - F.col(c.ARRIVAL) > source.max_ahead
    if source.channel is not None:
        yield "null_channel", F.col(c.CHANNEL).isNull()
        if source.declared_channels is not None:
            undeclared = ~F.col(c.CHANNEL).isin(*source.declared_channels)
            retired = (
                (F.col(c.CHANNEL) == channel) & (F.col(c.ARRIVAL) >= retired_ms)
                for channel, retired_ms in source.retired.items()
            )
            yield "undeclared_channel", any_of([undeclared, *retired], undeclared)
    if source.key:
        yield "null_key", any_of((F.col(key).isNull() for key in c.keys_of(spec)), F.lit(False))
    if source.valid is not None:
        place = f"{spec.pipeline}: source.valid"
        valid = condition(landing, source.valid, place, source.where)
        yield "invalid", ~valid
    if spec.window.gap_of_record is not None:
        yield "invalid", F.col(c.END).isNull()
    yield "event_time_out_of_range", ~_inside_the_years(spec)


def _inside_the_years(spec: PipelineSpec) -> Column:
    """Whether the record and all of its windows lie in the years 0001 to 9999.

    Nearly all records lie far from both ends and need only one comparison.
    """
    ts, grid = F.col(c.TS), Grid.of(spec)
    far_ms = 3 * grid.reach_ms
    surely = ts.between(LEAST_INSTANT_MS + far_ms, END_OF_INSTANTS_MS - 1 - far_ms)
    within = ts.between(LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
    inside = surely | (within & windows_fit(grid))
    if spec.window.merging:
        return inside & (F.col(c.END) < END_OF_INSTANTS_MS)
    return inside
