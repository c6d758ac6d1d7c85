"""Where a pipeline's records come from and how their columns are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from strandline.model.intervals import DAY_MS, LEAST_INSTANT_MS
from strandline.spec.values import (
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
    """The milliseconds of a time of arrival such as `1d of arrival`."""
    words = value.split() if isinstance(value, str) else []
    if words[1:] != ["of", "arrival"]:
        msg = "not a time of arrival; write a duration and `of arrival`: 1d of arrival"
        raise ValueError(msg)
    return parse_length(words[0])


def key_of(value: Any) -> Any:
    """A list of columns is short for a map of each name to itself."""
    if value is None:
        return {}
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        if len(set(value)) != len(value):
            msg = "a list with a column twice; name each key column once"
            raise ValueError(msg)
        return {name: name for name in value}
    if not isinstance(value, dict):
        msg = "not a key; write a list of columns, or a map of name: expression"
        raise ValueError(msg)
    return value


def _columns(value: Any) -> Any:
    """A list of columns; one column alone stands for a list of it."""
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


class Deduplicate(SpecModel):
    """Records equal in `columns` count once: the first to arrive.

    `within`: the longest pause in ms, exclusive. A record counts again if no equal one, whether it
    counted or not, arrived less than this before it.
    """

    columns: Annotated[tuple[Text, ...], BeforeValidator(_columns)]
    within: Annotated[int, BeforeValidator(_within)]

    @property
    def days_back(self) -> int:
        """How many days before its own a record that is repeated may have arrived."""
        return -(-(self.within - 1) // DAY_MS)


class Source(SpecModel):
    """The landing table and its columns; every `Expression` is a column or Spark SQL."""

    table: Expression
    arrival_date: Expression | None = None
    arrival_time: Expression
    event_time: Expression
    channel: Expression | None = None
    channels: Annotated[_Channels | None, BeforeValidator(_channels)] = None
    retired: dict[Text, Instant] = Field(default_factory=dict)
    key: Annotated[dict[Name, Expression], BeforeValidator(key_of)] = Field(default_factory=dict)
    sequence: Expression | None = None
    id: Annotated[tuple[Text, ...], BeforeValidator(_columns)] | None = None
    start: Instant | None = None
    where: Expression | None = None
    valid: Expression | None = None
    deduplicate: Deduplicate | None = None
    max_ahead: Lateness | None = None
    ready_after: Lateness | None = None

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
        """The fixed set in probe order; one nameless channel if none is given; None: discovered."""
        if self.channels == "discovered":
            return None
        return ("",) if self.channels is None else self.channels
