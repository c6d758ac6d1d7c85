"""Guesses of channel, key and aggregates, by names, numbers of values and order of records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from strandline.proposal.guess import Certainty, Guess
from strandline.proposal.times import NONE_MS, Millis, is_text, quoted
from strandline.spec.pipeline import OWN_PREFIX, RESULT_COLUMNS

_OF_KEY = re.compile(
    r"origin|carrier|station|sensor|device|shop|store|region|country|city|kind|type|categor"
    r"|ticker|symbol|product|route|line|vendor|channel|source|status|code|name|id$",
    re.IGNORECASE,
)
_OF_CHANNEL = re.compile(
    r"partition|channel|shard|source|origin|station|site|host|gateway|region|device", re.IGNORECASE
)
_TO_SUM = re.compile(
    r"amount|total|price|fare|quantity|qty|count|distance|volume|sales|bytes|revenue"
    r"|miles|precip|cost|units",
    re.IGNORECASE,
)
_NO_MEASURE = re.compile(
    r"(^|_)(id|no|nr|num|number|year|month|day|hour|minute|zip|postal|code|lat|lon|lng|"
    r"latitude|longitude|flight|time|seq|sequence|offset|index)($|_)|time$|^column_",
    re.IGNORECASE,
)
_DECIMAL_COMMA, _NOT_THOUSANDS = r"^[+-]?\d+(,\d+)?$", r",(\d{1,2}|\d{4,})$"
"""A number as text with a decimal comma, and one whose comma does not separate thousands."""
_MOST_CHANNELS, _MOST_KEYS = 32, 200
_BETTER = 0.5
"""The factor by which the disorder within channels must be below that of all records, for a channel
to be proposed."""


@dataclass(frozen=True)
class Columns:
    """The proposal for columns that are not times.

    Attributes:
        channel: the column of the source partitions; None: there is a single partition.
        key: key columns by name, with their expressions.
        aggregates: aggregates by name, with their expressions.
        guesses: the guesses behind them.
    """

    channel: str | None
    key: dict[str, str]
    aggregates: dict[str, str]
    guesses: tuple[Guess, ...]


def columns_of(
    sample: pa.Table, event_ms: Millis, arrival_ms: Millis | None, times: Sequence[str]
) -> Columns:
    """The columns to propose as channel and as key, and the aggregates.

    Args:
        sample: some rows.
        event_ms: their event times.
        arrival_ms: their arrival times; None: not known.
        times: the names of the columns that are times.
    """
    few = dict(_groups(sample, times))
    channel, of_channel = _channel(sample, few, event_ms, arrival_ms)
    key, of_key = _key(few, channel)
    aggregates, of_aggregates = _aggregates(sample, [*times, *few], reserved=key)
    return Columns(channel, key, aggregates, (of_channel, of_key, of_aggregates))


def _groups(sample: pa.Table, times: Sequence[str]) -> Iterable[tuple[str, int]]:
    """The columns with few values and no nulls, with their number of values."""
    for field in sample.schema:
        kind = field.type
        text = is_text(kind)
        if field.name in times or not (text or types.is_integer(kind) or types.is_boolean(kind)):
            continue
        column = sample.column(field.name)
        if _has_decimal_commas(column):
            continue
        values = pc.count_distinct(column).as_py()
        named = text or _OF_KEY.search(field.name) or _OF_CHANNEL.search(field.name)
        if named and not column.null_count and 1 < values <= min(_MOST_KEYS, len(column) // 4):
            yield field.name, values


def _channel(
    sample: pa.Table, few: dict[str, int], event_ms: Millis, arrival_ms: Millis | None
) -> tuple[str | None, Guess]:
    def none(why: str) -> tuple[None, Guess]:
        return None, Guess("source.channel", "null", Certainty.LIKELY, why)

    if arrival_ms is None:
        return none("without an arrival time channels make no difference")
    over_all = disorder_of(event_ms, arrival_ms, None)
    best: tuple[float, str] | None = None
    for name, values in few.items():
        if values <= _MOST_CHANNELS and _OF_CHANNEL.search(name):
            codes = sample.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
            within = disorder_of(event_ms, arrival_ms, codes.indices.to_numpy())
            share = float(np.quantile(within, 0.99)) / max(1.0, float(np.quantile(over_all, 0.99)))
            if best is None or share < best[0]:
                best = share, name
    if best is None:
        return none("no column looks like a source partition; records share one watermark")
    share, name = best
    if share > _BETTER:
        return none(f"records are as much out of order within each {name} as over the whole table")
    why = f"the disorder within each {name} is {share:.0%} of the disorder over the whole table"
    return name, Guess("source.channel", name, Certainty.GUESS, why)


def disorder_of(event_ms: Millis, arrival_ms: Millis, codes: Any | None) -> Millis:
    """The delay, in ms, of each record's event time to the largest earlier one, by arrival."""
    known = (event_ms != NONE_MS) & (arrival_ms != NONE_MS)
    groups = np.zeros(len(event_ms), np.int64) if codes is None else codes
    found = [np.zeros(1, np.int64)]
    for group in np.unique(groups[known]):
        of_group = known & (groups == group)
        order = np.lexsort((event_ms[of_group], arrival_ms[of_group]))
        events = event_ms[of_group][order]
        found.append(np.maximum.accumulate(events) - events)
    return np.concatenate(found)


def _key(few: dict[str, int], channel: str | None) -> tuple[dict[str, str], Guess]:
    ranked = sorted(
        (name for name in few if name != channel),
        key=lambda name: (_OF_KEY.search(name) is None, few[name] > 50, -few[name]),
    )
    chosen = ([channel] if channel else []) + ranked[:1]
    if not chosen:
        guess = Guess(
            "source.key", "[]", Certainty.LIKELY, "no column with few values in every row"
        )
        return {}, guess
    names = _names(chosen, reserved=())
    why = "; ".join(f"{name} has {few[name]} values in the sample" for name in chosen)
    others = [name for name in few if name not in chosen]
    why += f"; others with few: {', '.join(others[:4])}" if others else ""
    return names, Guess("source.key", ", ".join(chosen), Certainty.GUESS, why)


def _aggregates(
    sample: pa.Table, not_of: Iterable[str], reserved: Iterable[str]
) -> tuple[dict[str, str], Guess]:
    count = {"rows": "count(*)"}
    out = set(not_of)
    measures = [
        field.name
        for field in sample.schema
        if (
            types.is_floating(field.type)
            or types.is_integer(field.type)
            or types.is_decimal(field.type)
            or _has_decimal_commas(sample.column(field.name))
        )
        and field.name not in out
        and not _NO_MEASURE.search(field.name)
        and sample.column(field.name).null_count < len(sample)
    ]
    if not measures:
        return count, Guess("aggregates", "count(*)", Certainty.SURE, "no column is a measure")
    name = next((one for one in measures if _TO_SUM.search(one)), measures[0])
    function = "sum" if _TO_SUM.search(name) else "avg"
    own = next(iter(_names([f"{function}_{name}"], reserved=[*reserved, "rows"])))
    number, why = quoted(name), f"{name} is a number; sum or avg by its name"
    if types.is_decimal(sample.schema.field(name).type) and function == "avg":
        number = f"CAST({number} AS DOUBLE)"  # of DECIMAL Sail makes other digits
    if _has_decimal_commas(sample.column(name)):
        number = f"CAST(replace({number}, ',', '.') AS DOUBLE)"
        why = f"{name} is a text, a number with a decimal comma; sum or avg by its name"
    aggregates = count | {own: f"{function}({number})"}
    return aggregates, Guess("aggregates", f"count(*), {function}({name})", Certainty.GUESS, why)


def _has_decimal_commas(column: pa.ChunkedArray) -> bool:
    """Whether a column's texts are numbers with decimal commas, none of them thousands."""
    known = column.drop_null()
    if not len(known) or not is_text(known.type):
        return False
    return bool(
        pc.all(pc.match_substring_regex(known, _DECIMAL_COMMA)).as_py()
        and pc.any(pc.match_substring_regex(known, _NOT_THOUSANDS)).as_py()
    )


def _names(columns: Sequence[str], reserved: Iterable[str]) -> dict[str, str]:
    """Legal names of result columns, with the columns they are made from."""
    found: dict[str, str] = {}
    used = {*RESULT_COLUMNS, *(name.lower() for name in reserved)}
    for column in columns:
        name = re.sub(r"\W+", "_", column, flags=re.ASCII).strip("_") or "key"
        name = name if not name[0].isdigit() else f"_{name}"
        while name.lower() in used or name.lower().startswith(OWN_PREFIX):
            name = f"{name}_"
        used.add(name.lower())
        found[name[:120]] = column
    return found
