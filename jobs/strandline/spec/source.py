"""The key `source`: the landing table of a pipeline, and the meaning of its columns."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS
from strandline.spec import described
from strandline.spec.values import (
    NAME,
    Expression,
    Instant,
    Lateness,
    Name,
    SpecModel,
    Text,
    parse_length,
    refuse_at,
)


def _within(value: Any) -> int:
    """The milliseconds of a time between arrivals such as `1d of arrival`."""
    words = value.split() if isinstance(value, str) else []
    if words[1:] != ["of", "arrival"]:
        msg = "not a time of arrival; write a duration and `of arrival`: 1d of arrival"
        raise ValueError(msg)
    return parse_length(words[0])


def key_of(value: Any) -> Any:
    """The key as a map of names to expressions; a list of columns maps each name to itself."""
    if value is None:
        return {}
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        if len(set(value)) != len(value):
            msg = "a list with a column twice; name each key column once"
            raise ValueError(msg)
        for name in value:
            if not NAME.fullmatch(name):
                refuse_at(name, name, f"not a legal name of a column; {_named_in_a_map(name)}")
        return {name: name for name in value}
    if not isinstance(value, dict):
        msg = "not a key; write a list of columns, or a map of name: expression"
        raise ValueError(msg)
    return value


def _named_in_a_map(expression: str) -> str:
    """The way out for a key that cannot have the name of its column: a map with a name for it."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", expression).strip("_") or "name"
    legal = name if NAME.fullmatch(name) else f"key_{name}"
    column = f"`{expression}`" if re.fullmatch(r"[\w .-]+", expression) else expression
    struct = ", without backticks for a field of a struct" if column != expression else ""
    quoted = column.replace("'", "''")  # as YAML wants it
    return f"give it one in a map: key: {{{legal}: '{quoted}'}}{struct}"


def _columns(value: Any) -> Any:
    """A list of columns; a single column needs no list."""
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list | tuple) or not columns:
        msg = "not a list of columns; write [a, b]"
        raise ValueError(msg)
    return tuple(columns)


def _channels(value: Any) -> Any:
    if value is None or value == "discovered":
        return value
    if not isinstance(value, list | tuple) or not value:
        msg = "not a set of channels; write a list such as [a, b], or discovered"
        raise ValueError(msg)
    return tuple(value)


def _channels_kind(value: Any) -> str:
    return "listed" if isinstance(value, tuple) else "discovered"


_Channels = Annotated[
    Annotated[Literal["discovered"], Tag("discovered")]
    | Annotated[tuple[Text, ...], Tag("listed")],
    Discriminator(_channels_kind),
]


Key = Annotated[dict[Name, Expression], BeforeValidator(key_of), WithJsonSchema(described.KEY)]
"""The key columns with their expressions; {} is one window for all records."""
ColumnNames = Annotated[
    tuple[Text, ...], BeforeValidator(_columns), WithJsonSchema(described.COLUMNS)
]
"""Columns by their exact names."""


class Deduplicate(SpecModel):
    """Of records with equal `columns` only the first to arrive counts.

    Attributes:
        columns: the columns that are compared.
        within: the longest pause between duplicates, exclusive: `1d of arrival`. A record counts
            again if no equal record, counted or not, arrived less than this before it.
    """

    columns: ColumnNames
    within: Annotated[
        int,
        BeforeValidator(_within),
        WithJsonSchema(described.text(rf"{described.LENGTH}of arrival")),
    ]

    @property
    def days_back(self) -> int:
        """The number of days before its own on which an earlier duplicate may have arrived."""
        return -(-(self.within - 1) // DAY_MS)


class Source(SpecModel):
    """The landing table and its columns; every `Expression` is a column or Spark SQL.

    Attributes:
        table: a Delta table: a path below the lake, an absolute path or URI, or
            `catalog.schema.table`.
        arrival_date: the partition column with the UTC day of arrival, which prunes reads; null:
            the table has none.
        arrival_time: the time at which a record reached the table.
        event_time: the time at which it happened; texts are cast, numbers need an expression such
            as timestamp_millis(ms).
        channel: the source partition of a record, each of which has its own watermark; null: there
            is only one.
        channels: the names of all channels, so that a channel without records holds windows back;
            or `discovered`.
        retired: channels that have ended, each with the instant.
        key: the key columns, as in Flink's keyBy; [] is one window for all records.
        sequence: the order of records with equal arrival times, such as a Kafka offset.
        id: the columns that identify a record; by default all columns.
        start: the start of the job's clock; by default the midnight of the first arrival day.
        where: a condition; rows that do not meet it are ignored.
        valid: a condition; records that do not meet it go to quarantine as `invalid`.
        deduplicate: the columns by which duplicates are recognized.
        max_ahead: records whose event time is more than this after their arrival are malformed.
        ready_after: the time after its midnight at which an arrival day counts as complete.
    """

    table: Expression
    arrival_date: Expression | None = None
    arrival_time: Expression
    event_time: Expression
    channel: Expression | None = None
    channels: Annotated[
        _Channels | None, BeforeValidator(_channels), WithJsonSchema(described.CHANNELS)
    ] = None
    retired: dict[Text, Instant] = Field(default_factory=dict)
    key: Key = Field(default_factory=dict)
    sequence: Expression | None = None
    id: ColumnNames | None = None
    start: Instant | None = None
    where: Expression | None = None
    valid: Expression | None = None
    deduplicate: Deduplicate | None = None
    max_ahead: Lateness | None = None
    ready_after: Lateness | None = None

    @model_validator(mode="after")
    def _table_lies_in_the_lake(self) -> Source:
        if posixpath.normpath(self.table).partition("/")[0] == "..":
            problem = "a path that leads out of the lake; give an absolute path or a URI"
            refuse_at("table", self.table, problem)
        return self

    @model_validator(mode="after")
    def _channel_and_channels_go_together(self) -> Source:
        if (self.channel is None) != (self.channels is None):
            missing, given = ("channel", "channels")[:: 1 if self.channel is None else -1]
            problem = f"missing, and {given} needs it; give both, or neither for one channel"
            refuse_at(missing, None, problem)
        if isinstance(self.channels, tuple) and len(set(self.channels)) != len(self.channels):
            problem = "a list with a channel twice; name each channel once"
            refuse_at("channels", list(self.channels), problem)
        return self

    @model_validator(mode="after")
    def _some_channels_are_retired(self) -> Source:
        listed = self.channels if isinstance(self.channels, tuple) else ()
        for channel, retired_ms in self.retired.items():
            if channel not in listed:
                problem = "not one of the listed channels; name one of source.channels"
                refuse_at(f"retired.{channel}", channel, problem)
            if retired_ms == LEAST_INSTANT_MS:
                problem = "before every arrival; leave the channel out of source.channels"
                refuse_at(f"retired.{channel}", channel, problem)
        if listed and set(listed) == set(self.retired):
            problem = "all of the channels; leave one that goes on"
            refuse_at("retired", list(self.retired), problem)
        return self

    @property
    def declared_channels(self) -> tuple[str, ...] | None:
        """The declared channels in order; None if channels are discovered.

        Without a channel column it is one nameless channel.
        """
        if self.channels == "discovered":
            return None
        return ("",) if self.channels is None else self.channels
