"""The columns of a table that are times: with the cast that each needs, or why it is not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from strandline.model.intervals import DAY_MS, HOUR_MS
from strandline.proposal.formats import LEAST_SHARE, epoch_unit, form_of

MINUTE_MS = 60_000
NONE_MS = np.iinfo(np.int64).min
"""The placeholder, in ms, of a value that is not a time."""
Millis = npt.NDArray[np.int64]
"""Milliseconds since 1970 in UTC, or `NONE_MS`."""
_MOST_TEXTS = 2_000
"""The number of values of a column that decide on its format."""
_WITH_ZONE_NAME = (
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
    r"(Z|[+-]\d{2}:?\d{2})? ?\[?([A-Z]{2,5}|[A-Z][A-Za-z]+(/[A-Za-z_+-]+)+)\]?$"
)
_ZONE_NAME = re.compile(r"([A-Z]{2,5}|[A-Z][A-Za-z]+(?:/[A-Za-z_+-]+)+)\]?$")
_NO_ZONES = ("UTC", "AM", "PM")
"""Words after a time that need no sentence: `UTC` is read, `AM` and `PM` are halves of a day."""


@dataclass(frozen=True)
class TimeColumn:
    """A column that can be read as a time.

    Attributes:
        name: the column's name.
        expression: its expression in the pipeline file, with a cast if needed.
        said: its format in words.
        read: reads its values in ms from any part of the table.
        values_ms: the values of the sample in ms.
        is_number: whether it is a number that may count from 1970, or be something else.
        is_ambiguous: whether day and month could be swapped.
        has_zone: whether its values have a time zone; else they are in UTC.
    """

    name: str
    expression: str
    said: str
    read: Callable[[pa.ChunkedArray], Millis]
    values_ms: Millis
    is_number: bool = False
    is_ambiguous: bool = False
    has_zone: bool = True

    @property
    def known_ms(self) -> Millis:
        """The sample's values that are times."""
        known: Millis = self.values_ms[self.values_ms != NONE_MS]
        return known

    @property
    def unit_ms(self) -> int:
        """The largest unit that divides all values: a day, an hour, a minute or a second, in ms."""
        least = 0
        for value in np.unique(self.known_ms)[:5_000]:
            least = gcd(least, int(value))
        return next((ms for ms in (DAY_MS, HOUR_MS, MINUTE_MS) if least % ms == 0), 1_000)


def quoted(name: str) -> str:
    """A column's name as it is written in an expression."""
    return f"`{name.replace('`', '``')}`"


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return bool(types.is_string(kind) or types.is_large_string(kind))


def time_columns(sample: pa.Table) -> Iterator[TimeColumn]:
    """The columns of a sample that can be read as times, in their order."""
    for field in sample.schema:
        column = sample.column(field.name)
        if column.null_count == len(column):
            continue
        if found := _read(field, column):
            yield found


def _read(field: pa.Field, column: pa.ChunkedArray) -> TimeColumn | None:
    name, kind = field.name, field.type
    if types.is_timestamp(kind):
        has_zone = kind.tz is not None
        in_words = "a timestamp" if has_zone else "a timestamp without a zone, read as UTC"
        return TimeColumn(name, name, in_words, _of_times, _of_times(column), has_zone=has_zone)
    if types.is_date(kind):
        in_words = "a date: no time of day"
        return TimeColumn(name, name, in_words, _of_times, _of_times(column), has_zone=False)
    if is_text(kind):
        return _of_texts(name, column)
    if types.is_integer(kind) or types.is_floating(kind):
        return _of_numbers(name, column, is_text=False)
    return None


def _of_texts(name: str, column: pa.ChunkedArray) -> TimeColumn | None:
    texts = [text.strip() for text in _some(column)]
    if all(text.lstrip("-").isdigit() for text in texts) and not all(
        len(t) in {8, 14} for t in texts
    ):
        return _of_numbers(name, column, is_text=True)
    form = form_of(texts)
    if form is None:
        return None
    expression = name
    if form.spark is not None:
        pattern = form.spark.replace("'", "\\'")
        expression = f"try_to_timestamp({quoted(name)}, '{pattern}')"
    in_words = f"a text, {form.spark or 'ISO-8601'}"
    in_words += "" if form.has_zone else ", without a zone: read as UTC"

    def read(column: pa.ChunkedArray) -> Millis:
        texts = column.to_pandas().str.strip()
        times = pd.to_datetime(texts, format=form.pandas, errors="coerce", utc=True)
        values = times.astype("int64").to_numpy() // 10**6
        return np.where(times.isna().to_numpy(), NONE_MS, values).astype(np.int64)

    return TimeColumn(
        name,
        expression,
        in_words,
        read,
        read(column),
        is_ambiguous=form.is_ambiguous,
        has_zone=form.has_zone,
    )


def _timestamp_of(number: str, many: int, *, whole: bool) -> str:
    """The expression of the instant of a number, of which there are `many` a second."""
    if not whole:
        micros = f"CAST({number} * {10**6 // many if many < 10**9 else 1} AS BIGINT)"
        return f"timestamp_micros({micros}{'' if many < 10**9 else ' div 1000'})"
    if many == 10**9:
        return f"timestamp_micros({number} div 1000)"
    functions = {1: "seconds", 10**3: "millis", 10**6: "micros"}
    return f"timestamp_{functions[many]}({number})"


def _of_numbers(name: str, column: pa.ChunkedArray, *, is_text: bool) -> TimeColumn | None:
    some = np.asarray([float(value) for value in _some(column)])
    some = some[np.isfinite(some)]
    if not len(some):
        return None
    # a few wrong clocks do not make other numbers of them
    within = np.quantile(some, (0.01, 0.99), method="nearest")
    unit, per_second = epoch_unit([float(edge) for edge in within]) or (None, 0)
    if unit is None:
        return None
    number = f"try_cast({quoted(name)} AS BIGINT)" if is_text else quoted(name)
    expression = _timestamp_of(number, per_second, whole=is_text or types.is_integer(column.type))

    def read(column: pa.ChunkedArray) -> Millis:
        values = pd.to_numeric(column.to_pandas(), errors="coerce").to_numpy(dtype=float)
        in_ms = np.floor(values * 1_000 / per_second)
        return np.where(np.isfinite(in_ms), np.nan_to_num(in_ms), NONE_MS).astype(np.int64)

    in_words = f"{'a text of ' if is_text else ''}{unit} since 1970"
    return TimeColumn(name, expression, in_words, read, read(column), is_number=True)


def _some(column: pa.ChunkedArray) -> list[Any]:
    """Some non-null values of a column, spread over all rows."""
    known = column.drop_null()
    step = max(1, len(known) // _MOST_TEXTS)
    return list(known.take(pa.array(range(0, len(known), step))).to_pylist())


def _of_times(column: pa.ChunkedArray) -> Millis:
    if types.is_date(column.type):
        days = column.cast(pa.date32()).cast(pa.int32()).to_pandas().to_numpy(dtype=float)
        return np.where(np.isnan(days), NONE_MS, np.nan_to_num(days) * DAY_MS).astype(np.int64)
    zone = column.type.tz
    micros = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    values = micros.fill_null(NONE_MS).to_numpy()
    return np.where(values == NONE_MS, NONE_MS, values // 1_000).astype(np.int64)


def unread_times(sample: pa.Table) -> list[str]:
    """A sentence about each column that looks like a time but has no expression, with a way out."""
    return [*_with_zone_names(sample), *_in_nested_columns(sample)]


def _with_zone_names(sample: pa.Table) -> Iterator[str]:
    for field in sample.schema:
        if not is_text(field.type):
            continue
        known = sample.column(field.name).drop_null()
        named = known.filter(pc.match_substring_regex(known, _WITH_ZONE_NAME))
        if not len(named) or len(named) < LEAST_SHARE * len(known):
            continue
        name = _ZONE_NAME.search(named[0].as_py())
        if name is None or name[1] in _NO_ZONES:
            continue
        yield (
            f"{field.name} is a time with the name of a zone ({name[1]}), which is not read: land "
            "it as a timestamp, or with an offset (2024-03-01T10:20:00+01:00)."
        )


def _in_nested_columns(sample: pa.Table) -> Iterator[str]:
    fields = sample.select([one.name for one in sample.schema if types.is_struct(one.type)])
    while any(types.is_struct(one.type) for one in fields.schema):
        fields = fields.flatten()
    for time in time_columns(fields):
        if not time.is_number:
            by_name = f"event_time: {time.name}"
            yield (
                f"{time.name} is a time inside a nested column, and such fields are not proposed: "
                f"if it is the right one, write {by_name} in the file, as an expression if it is "
                "no timestamp."
            )
