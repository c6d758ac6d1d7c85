"""Reads the sample rows of a test as a pipeline's records, and finds the malformed ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from strandline.errors import InputError
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, day_of
from strandline.model.windows import TimeWindow, TumblingWindows
from strandline.reference.records import Record, without_duplicates
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.used_expressions import Use, uses_of
from strandline.spec.window import GridWindow, Session
from strandline.trial.expressions import evaluator
from strandline.trial.operators import Row
from strandline.trial.values import EPOCH, MS, ThrownError, as_time, kind_of, to_time

_DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Read:
    """Sample rows as records.

    Attributes:
        records: the well-formed records without duplicates; a record's id is its row's number.
        refused: the other rows' numbers with their reason.
    """

    records: list[Record]
    refused: dict[int, str]


def read_rows(spec: PipelineSpec, rows: Sequence[Row]) -> Read:
    """The rows that meet the pipeline's `where`, as records.

    Args:
        spec: a pipeline with one source.
        rows: the sample; the first row has the number 1.

    Raises:
        InputError: an expression calls a function that tests do not support, or throws on a row.
    """
    reader, records, refused = _Reader(spec), list[Record](), dict[int, str]()
    for number, row in enumerate(rows, 1):
        try:
            found = reader.read(number, row)
        except ThrownError as error:
            place = f"{spec.pipeline}: row {number}"
            raise InputError(place, str(error), "correct the row, or the expression") from None
        if isinstance(found, str):
            refused[number] = found
        elif found is not None:
            records.append(found)
    rule = spec.source.deduplicate
    if rule is None:
        return Read(records, refused)
    columns = rule.columns
    kept, repeated = without_duplicates(
        records, lambda one: tuple(one.payload.get(name) for name in columns), within_ms=rule.within
    )
    return Read(kept, refused | {int(one.record_id): _DUPLICATE for one in repeated})


class _Reader:
    """Reads rows by a pipeline's expressions, which are parsed once."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._spec = spec
        self._texts = {use.place: use.text for use in uses_of(spec) if _is_of_a_record(use)}
        self._evaluators = {
            place: evaluator(text, f"{spec.pipeline}: {place}")
            for place, text in self._texts.items()
        }

    def _value(self, place: str, row: Row) -> Any:
        """The value of the expression at a place of the pipeline file; None: there is none."""
        evaluate = self._evaluators.get(place)
        return None if evaluate is None else evaluate(row)

    def _compared(self, place: str, row: Row) -> float | None:
        """The number that a trigger or an evictor compares; None: it compares none."""
        if place not in self._evaluators:
            return None
        value = self._value(place, row)
        if value is None:
            problem = f"{self._texts[place]} is null for a record"
            raise self._error(place, problem, "leave such records out, or give a default")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(place, f"is {kind_of(value)}", "give a number")
        return float(value)

    def _gap_ms(self, row: Row) -> int | None:
        """The gap after a record, in ms; None: null, or there is none."""
        place = "window.session"
        value = self._value(place, row)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._error(place, f"is {kind_of(value)}", "give a whole number of milliseconds")
        return value

    def _error(self, place: str, problem: str, way_out: str) -> InputError:
        return InputError(f"{self._spec.pipeline}: {place}", problem, way_out)

    def read(self, number: int, row: Row) -> Record | str | None:
        """A row as a record; the reason if it is malformed; None if it does not meet `where`."""
        spec, value = self._spec, self._value
        if spec.source.where is not None and value("source.where", row) is not True:
            return None
        arrival = self._time_ms("source.arrival_time", row)
        given = None if spec.arrival_is_event_time else value("source.event_time", row)
        ts = arrival if spec.arrival_is_event_time else self._time_ms("source.event_time", row)
        fields: dict[str, Any] = {
            "channel": value("source.channel", row),
            "key": tuple(value(f"source.key.{name}", row) for name in spec.source.key),
            "sequence": value("source.sequence", row),
            "gap_ms": self._gap_ms(row),
        }
        is_given = spec.arrival_is_event_time or given is not None
        reason = next(self._reasons(row, arrival, ts, fields, is_given=is_given), None)
        if reason is not None or arrival is None or ts is None:
            return reason
        channel = fields.pop("channel")
        return Record(
            arrival_ms=arrival,
            ts_ms=ts,
            record_id=f"{number:09}",
            channel="" if channel is None else str(channel),
            marker=value("watermark.marker", row) is True,
            candidate_ms=self._time_ms("watermark.candidate", row),
            trigger_value=self._compared("trigger.of", row),
            evictor_value=self._compared("evictor.of", row),
            payload=row,
            **fields,
        )

    def _time_ms(self, place: str, row: Row) -> int | None:
        """A time in whole ms; None for null, or for a text that is not a time."""
        found = self._value(place, row)
        if isinstance(found, bool | int | float):
            problem = f"{found!r} is a number, and a time belongs there"
            way_out = "write timestamp_millis(column), timestamp_seconds(column) or …micros(column)"
            raise self._error(place, problem, way_out)
        if isinstance(found, str):
            try:
                found = to_time(found)
            except (ValueError, OverflowError):
                return None
        return None if found is None else (as_time(found) - EPOCH) // MS

    def _reasons(
        self,
        row: Row,
        arrival: int | None,
        ts: int | None,
        fields: Mapping[str, Any],
        *,
        is_given: bool,
    ) -> Iterator[str]:
        """The reasons why a row is malformed; the first one counts (see `malformed_reasons`)."""
        source, channel = self._spec.source, fields["channel"]
        if not is_given:
            yield "null_event_time"
        if ts is None:
            yield "unparsable_event_time"
        if arrival is None:
            yield "null_arrival"
        if ts is None or arrival is None:
            return
        day = source.arrival_date or ""
        if day in row and _day(row[day]) != day_of(arrival):
            yield "arrival_outside_partition"
        if source.max_ahead is not None and ts - arrival > source.max_ahead:
            yield "ahead_of_arrival"
        if source.channel is not None:
            yield from self._reasons_of_channel(channel, arrival)
        if None in fields["key"]:
            yield "null_key"
        if source.valid is not None and self._value("source.valid", row) is not True:
            yield "invalid"
        gap = fields["gap_ms"]
        if self._spec.window.gap_of_record is not None and (gap is None or gap <= 0):
            yield "invalid"
        if not self._lies_in_the_years(ts, gap):
            yield "event_time_out_of_range"

    def _lies_in_the_years(self, ts: int, gap_ms: int | None) -> bool:
        """Whether an event time and all of its windows lie in the years 0001 to 9999."""
        window, windows = self._spec.window, [TimeWindow(ts, ts)]
        if isinstance(window, Session):
            windows.append(TimeWindow(ts, ts + (window.gap_ms or gap_ms or 0)))
            windows += TumblingWindows(self._spec.quality.session_slot).windows_of(ts)
        elif isinstance(window, GridWindow):
            windows += window.assigner.windows_of(ts)
        starts, ends = (one.start_ms for one in windows), (one.end_ms for one in windows)
        return min(starts) >= LEAST_INSTANT_MS and max(ends) < END_OF_INSTANTS_MS

    def _reasons_of_channel(self, channel: Any, arrival: int) -> Iterator[str]:
        source = self._spec.source
        if channel is None:
            yield "null_channel"
        declared = source.declared_channels
        is_retired = source.retired.get(str(channel), arrival + 1) <= arrival
        if declared is not None and (str(channel) not in declared or is_retired):
            yield "undeclared_channel"


def _is_of_a_record(use: Use) -> bool:
    """Whether an expression is computed on each row; a test may leave the partition column out."""
    return use.wanted not in {"aggregate", "column", "date"}


def _day(value: Any) -> date | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value)[:10])
