"""A proposed pipeline file: its times, then its other columns, then its lateness."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from textwrap import wrap
from typing import Any

import pyarrow.compute as pc

from strandline.model.intervals import DAY_MS, midnight_before, text_of
from strandline.proposal.columns import Columns, columns_of
from strandline.proposal.guess import Certainty, Guess
from strandline.proposal.land import SURE_OF_ARRIVAL, partition_of, shares_of_arrival
from strandline.proposal.lateness import (
    ProposedLateness,
    ProposedWindows,
    by_advice,
    by_sample,
    fresh_within,
    window_size,
)
from strandline.proposal.roles import Roles, roles_of
from strandline.proposal.table import Table
from strandline.proposal.times import is_text, time_columns, unread_times
from strandline.spec.values import written
from strandline.visible import number_of, visible

_PLAIN = re.compile(r"[A-Za-z_][\w./]*(\(([\w ]|\*)*\))?", re.ASCII)
_PART_OF_TIME = re.compile(r"(?i)(^|_)(year|month|week|day|hour|minute|date|dt|ds)$")
_LIKELY_OF_ARRIVAL = 0.5
"""The least share of rows whose partition is the day of arrival, for it to be named."""
_DAYS_OR_MONTHS = r"^\d{4}-\d{2}(-\d{2})?$"
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"}


@dataclass(frozen=True)
class Proposal:
    """A proposed pipeline file.

    Attributes:
        name: the pipeline's name.
        table: the table's name in the file.
        arrival_date: the partition column of the arrival days; None: there is none.
        roles: event time and arrival time.
        columns: channel, key and aggregates.
        windows: the size of the windows, and the rule for gaps.
        lateness: bound, allowed lateness and `max_ahead`.
        fresh_within: the proposed `fresh_within`; None: the default.
        guesses: all guesses, in the order of the keys.
    """

    name: str
    table: str
    arrival_date: str | None
    roles: Roles
    columns: Columns
    windows: ProposedWindows
    lateness: ProposedLateness
    fresh_within: Guess | None
    guesses: tuple[Guess, ...]

    def advised(self, advice: Mapping[str, Any]) -> Proposal:
        """The proposal with bound and allowed lateness chosen by the advisor's counts."""
        lateness = by_advice(self.roles, advice)
        named = {guess.key: guess for guess in lateness.guesses}
        guesses = tuple(named.get(guess.key, guess) for guess in self.guesses)
        return replace(self, lateness=lateness, guesses=guesses)

    def to_json(self) -> dict[str, Any]:
        """The proposal as a JSON document."""
        return {
            "pipeline": self.name,
            "table": self.table,
            "guesses": [asdict(guess) for guess in self.guesses],
            "advance_to": self._first_midnight,
            "problems": list(self.roles.problems),
            "choices": [
                {"total_ms": ms, "share_lost": share} for ms, share in self.lateness.choices
            ],
        }

    @property
    def _first_midnight(self) -> str:
        """The first midnight after the arrivals of the sample, to which a run can advance."""
        last_ms = int((self.roles.arrival or self.roles.event).known_ms.max())
        return text_of(midnight_before(last_ms) + DAY_MS)[:10]

    @property
    def text(self) -> str:
        """The text of the file, with a comment for each guess."""
        return "\n".join([*self._head(), *self._source(), *self._rules(), *self._rest()]) + "\n"

    def _head(self) -> Iterator[str]:
        yield f"# {self.name}: proposed by `strandline init` from {visible(self.table)}. Every line"
        yield "# is a guess until somebody who knows the data has read it. Each key is explained in"
        yield "# the guide, and by an editor with the schema of `strandline schema`."
        for problem in self.roles.problems:
            yield "#"
            text = f"# TODO {visible(problem)}"
            yield from wrap(
                text, 98, subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
            )
        yield ""
        yield f"pipeline: {scalar(self.name)}"
        yield ""

    def _source(self) -> Iterator[str]:
        roles, channel = self.roles, self.columns.channel
        arrival = roles.arrival or roles.event
        yield "source:"
        yield f"  table: {scalar(self.table)}"
        if self.arrival_date is None:
            yield _line("  arrival_date: null", "not partitioned by arrival day: runs read all")
        else:
            day = scalar(self.arrival_date)
            yield _line(f"  arrival_date: {day}", "the partition of the arrival days")
        yield self._guessed("arrival_time", arrival.expression)
        yield self._guessed("event_time", roles.event.expression)
        if channel is not None:
            yield self._guessed("channel", channel)
            yield _line("  channels: discovered", "list them, and a missing one holds back")
        yield from _map("  key", self.columns.key, "a window for each value")
        if self.lateness.max_ahead_ms is not None:
            limit = written(self.lateness.max_ahead_ms)
            yield _line(f"  max_ahead: {limit}", "further ahead of its arrival it is malformed")
        yield ""

    def _guessed(self, key: str, value: str) -> str:
        guess = next(one for one in self.guesses if one.key == f"source.{key}")
        mark = "TODO: " if guess.certainty is Certainty.TODO else ""
        return _line(f"  {key}: {scalar(value)}", f"{mark}{visible(guess.why)}")

    def _rules(self) -> Iterator[str]:
        lateness = self.lateness
        yield "watermark:"
        yield "  strategy: bounded_out_of_orderness"
        yield _line(f"  bound: {written(lateness.bound_ms)}", "how far records are out of order")
        if lateness.choices:
            yield "  # bound + allowed_lateness, and the share of the records that it would lose:"
            yield from (f"  #   {written(ms):>6}  {share:.3%}" for ms, share in lateness.choices)
        yield ""
        yield f"window: {{tumbling: {written(self.windows.size_ms)}}}"
        allowed = f"allowed_lateness: {written(lateness.allowed_ms)}"
        yield _line(allowed, "so much longer a window takes records, and fires again")
        yield ""
        yield from _map("aggregates", self.columns.aggregates, "")
        yield ""

    def _rest(self) -> Iterator[str]:
        share = self.lateness.late_share or 0
        limit = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1) if one >= 2 * share)
        yield "quality:"
        yield _line(f"  max_late_share: {limit}", "more late than this blocks publishing")
        yield _line(f"  gaps: {self.windows.gaps}", "slots without a record: allow, warn or fail")
        if self.fresh_within is not None:
            yield _line(f"  fresh_within: {self.fresh_within.value}", self.fresh_within.why)
        yield ""
        yield _line('schedule: "0 6 * * *"', "every morning at six, UTC")


def scalar(text: str) -> str:
    """A text as a YAML scalar: plain if possible, else quoted."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _line(setting: str, comment: str) -> str:
    """A line with its comment, aligned with the comments of other lines."""
    return f"{setting:<33} # {comment}"


def _map(name: str, values: Mapping[str, str], comment: str) -> Iterator[str]:
    if not values:
        yield _line(f"{name}: []", "one window for all")
        return
    yield _line(f"{name}:", comment) if comment else f"{name}:"
    indent = " " * (len(name) - len(name.lstrip()) + 2)
    yield from (f"{indent}{scalar(key)}: {scalar(value)}" for key, value in values.items())


def _is_of_time(table: Table, partition: str) -> bool:
    """Whether a partition is a part of a time, or no text, and so no key: `hour`, `2024-05`."""
    values = table.sample[partition]
    if not is_text(values.type) or _PART_OF_TIME.search(partition):
        return True
    return bool(pc.all(pc.match_substring_regex(values, _DAYS_OR_MONTHS)).as_py())


def _named(table: Table) -> list[str]:
    """The names of the columns; one without a value says so, since it may well be a time."""
    empty = {
        name
        for name, column in zip(table.sample.column_names, table.sample.columns, strict=True)
        if column.null_count == len(column)
    }
    return [f"{name} (without a value)" if name in empty else name for name in table.schema.names]


def propose(table: Table) -> Proposal:
    """The proposal of a pipeline over a table, by a sample of its rows.

    Raises:
        InputError: no column can be read as a time.
    """
    times = list(time_columns(table.sample))
    roles = roles_of(times, _named(table), table.partitions, unread_times(table.sample))
    arrival_ms = None if roles.arrival is None else roles.arrival.values_ms
    names = [one.name for one in times] + [p for p in table.partitions if _is_of_time(table, p)]
    columns = columns_of(table.sample, roles.event.values_ms, arrival_ms, names)
    windows = window_size(roles.event.values_ms, roles.event.unit_ms, table.rows)
    lateness = by_sample(roles)
    due = fresh_within(roles, table.rows)
    arrival_date, of_date = _arrival_date(table, roles)
    guesses = (
        Guess(
            "source.table",
            table.said,
            Certainty.SURE,
            f"{number_of(table.rows, 'row')}, "
            f"{len(table.schema.names)} columns; a sample of {table.sample.num_rows:,} was read",
        ),
        of_date,
        *roles.guesses,
        *columns.guesses,
        windows.guess,
        *lateness.guesses,
        *([] if due is None else [due]),
    )
    return Proposal(
        table.name, table.said, arrival_date, roles, columns, windows, lateness, due, guesses
    )


def _arrival_date(table: Table, roles: Roles) -> tuple[str | None, Guess]:
    """The partition column with the UTC day of arrival; None if there is none."""
    what = "source.arrival_date"
    if table.files:
        why = "the partition that --land makes, the UTC day of arrival"
        day = partition_of(table, roles)
        return day, Guess(what, day, Certainty.SURE, why)
    shares = shares_of_arrival(table, roles, table.partitions)
    name = max(shares, key=shares.__getitem__, default="")
    share = shares.get(name, 0)
    if share > SURE_OF_ARRIVAL:
        return name, Guess(what, name, Certainty.SURE, "a partition, and the UTC day of arrival")
    why = "no partition is the UTC day of arrival: each run reads the whole table"
    if share > _LIKELY_OF_ARRIVAL:
        why += (
            f"; {name} is it in {share:.1%} of the rows: as arrival_date it makes the others "
            "malformed (arrival_outside_partition)"
        )
    return None, Guess(what, "null", Certainty.LIKELY, why)
