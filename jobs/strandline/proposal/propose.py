"""The proposal of a pipeline: its times, then its other columns, then its lateness."""

from __future__ import annotations

import re

import pyarrow.compute as pc

from strandline.proposal.columns import columns_of
from strandline.proposal.guess import Certainty, Guess
from strandline.proposal.land import SURE_OF_ARRIVAL, partition_of, shares_of_arrival
from strandline.proposal.lateness import by_sample, fresh_within, window_size
from strandline.proposal.proposal import Proposal
from strandline.proposal.roles import Roles, roles_of
from strandline.proposal.table import Table
from strandline.proposal.times import is_text, time_columns, unread_times
from strandline.visible import number_of

_PART_OF_TIME = re.compile(r"(?i)(^|_)(year|month|week|day|hour|minute|date|dt|ds)$")
_LIKELY_OF_ARRIVAL = 0.5
"""The least share of rows whose partition is the day of arrival, for it to be named."""
_DAYS_OR_MONTHS = r"^\d{4}-\d{2}(-\d{2})?$"


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
