"""Guesses of the event time and the arrival time among time columns, by names and order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.errors import InputError
from strandline.model.intervals import DAY_MS
from strandline.proposal.guess import Certainty, Guess
from strandline.proposal.times import NONE_MS, Millis, TimeColumn

_OF_ARRIVAL = re.compile(
    r"arriv|land(ed|ing)|ingest|insert|load|receiv|recv|process|written|stored|kafka|append|etl|sync"
    r"|logged|server|export|upload",
    re.IGNORECASE,
)
_OF_EVENT = re.compile(
    r"event|happen|occur|start|depart|pickup|click|order|sent|device|client|measure|observ|record"
    r"|trip|sale|transact|visit|created",
    re.IGNORECASE,
)
_OF_TIME = re.compile(
    r"(^|_)(ts|time|timestamp|datetime|date|at|epoch|ms)($|_)|[a-z](At|Time|Ts)$|time|date",
    re.IGNORECASE,
)
_MOSTLY = 0.9
"""The smallest share of rows whose arrival time must not be before the event time."""


@dataclass(frozen=True)
class Roles:
    """The time columns of a record.

    Attributes:
        event: the event time.
        arrival: the arrival time in the table; None: no column has it.
        guesses: the guesses behind them.
        problems: sentences about problems, each with what to do.
    """

    event: TimeColumn
    arrival: TimeColumn | None
    guesses: tuple[Guess, ...]
    problems: tuple[str, ...]


def roles_of(
    times: Sequence[TimeColumn],
    columns: Sequence[str],
    partitions: Sequence[str],
    unread: Sequence[str] = (),
) -> Roles:
    """The event time and the arrival time among some columns.

    Args:
        times: the columns that can be read as times.
        columns: all columns, for an error.
        partitions: the partition columns of the table, which are not instants.
        unread: sentences about columns that look like times and cannot be proposed.

    Raises:
        InputError: no column can be read as a time.
    """
    candidates = _candidates([one for one in times if one.name not in partitions])
    if not candidates:
        sentences = [f"no column reads as a time; there are {', '.join(columns)}.", *unread]
        raise InputError(
            "--from",
            " ".join(sentences).removesuffix("."),
            "land one: a timestamp, an ISO-8601 text, or a number since 1970 "
            "(docs/landing-contract.md)",
        )
    event, arrival = _best(candidates)
    of_event = _guess("source.event_time", event, _certainty_of_event(event, candidates))
    of_arrival, problems = _arrival(event, arrival)
    problems = [*unread, *_problems_of(event), *problems]
    return Roles(event, arrival, (of_event, of_arrival), tuple(problems))


def _candidates(times: Sequence[TimeColumn]) -> Sequence[TimeColumn]:
    """The columns that are times by their type or name; all of them if there is none."""
    likely = [
        one
        for one in times
        if not one.is_number or any(_hint(one, of) for of in (_OF_TIME, _OF_EVENT, _OF_ARRIVAL))
    ]
    return likely or times


def _arrival(event: TimeColumn, arrival: TimeColumn | None) -> tuple[Guess, list[str]]:
    """The guess of the arrival time, and sentences about its problems; None: no column has it."""
    key = "source.arrival_time"
    if arrival is None:
        why = "no column says when a record reached the table"
        without = (
            "No lateness can be known without an arrival time: each record is taken to arrive "
            "when it happens, so none is ever late. Land the time at which a record reached the "
            "table in a column of its own (docs/landing-contract.md), and name it here."
        )
        return Guess(key, event.expression, Certainty.TODO, why), [without]
    share = _share(event, arrival, np.greater_equal)
    certainty = _certainty_of_arrival(event, arrival, share)
    why = f"{share:.1%} of the sample arrive after {event.name}"
    problems = _problems_of(arrival)
    if share < _MOSTLY:
        problems.append(
            f"{1 - share:.0%} of the records would arrive before they happened: "
            f"{arrival.name} may not be the arrival. Look at some rows."
        )
    return _guess(key, arrival, certainty, why), problems


def _best(times: Sequence[TimeColumn]) -> tuple[TimeColumn, TimeColumn | None]:
    """The pair of columns with the best score, or the only column."""
    pairs = [(event, arrival) for event in times for arrival in times if event is not arrival]
    scored = [(_score(event, arrival), event, arrival) for event, arrival in pairs]
    best = max(scored, key=lambda one: one[0], default=None)
    if best is not None and best[0] > 0:
        return best[1], best[2]
    alone = max(
        times, key=lambda one: (_hint(one, _OF_EVENT) - _hint(one, _OF_ARRIVAL), -one.unit_ms)
    )
    return alone, None


def _score(event: TimeColumn, arrival: TimeColumn) -> float:
    """The score of two columns as event time and arrival time; 0 or less: they do not fit."""
    share = _share(event, arrival, np.greater_equal)
    # a date is no instant of arrival, unless the events are dates too, and its name says so
    is_date = arrival.unit_ms == DAY_MS
    is_same = _share(event, arrival, np.equal) == 1
    is_date_of_arrival = event.unit_ms == DAY_MS and _hint(arrival, _OF_ARRIVAL)
    if share < 0.5 or (is_date and not is_date_of_arrival) or is_same:
        return 0
    named = 3 * (_hint(event, _OF_EVENT) + _hint(arrival, _OF_ARRIVAL))
    crossed = 3 * (_hint(event, _OF_ARRIVAL) + 0.5 * _hint(arrival, _OF_EVENT))
    # the finer of several is the time itself; the others are parts of it
    coarse = np.log10(event.unit_ms) / 10
    later = _share(event, arrival, np.greater) / 2
    return float(2 * share + named - crossed - coarse + later)


def distance_of_times(event: TimeColumn, arrival: TimeColumn) -> Millis:
    """The time in ms from event to arrival, for rows with both times."""
    both = (event.values_ms != NONE_MS) & (arrival.values_ms != NONE_MS)
    distance_ms: Millis = arrival.values_ms[both] - event.values_ms[both]
    return distance_ms


def _share(event: TimeColumn, arrival: TimeColumn, compared: np.ufunc) -> float:
    """The share of rows whose time from event to arrival compares so with 0; of no row 0."""
    distance_ms = distance_of_times(event, arrival)
    return float(compared(distance_ms, 0).mean()) if len(distance_ms) else 0.0


def _hint(time: TimeColumn, words: re.Pattern[str]) -> bool:
    return words.search(time.name) is not None


def _certainty_of_event(event: TimeColumn, times: Sequence[TimeColumn]) -> Certainty:
    if event.is_ambiguous:
        return Certainty.TODO
    if _hint(event, _OF_EVENT) and not event.is_number:
        return Certainty.SURE
    named = event.is_number and _OF_TIME.search(event.name) is None
    return Certainty.GUESS if named or len(times) > 2 else Certainty.LIKELY


def _certainty_of_arrival(event: TimeColumn, arrival: TimeColumn, share: float) -> Certainty:
    if arrival.is_ambiguous:
        return Certainty.TODO
    if share < _MOSTLY:
        return Certainty.GUESS
    named = _hint(arrival, _OF_ARRIVAL)
    return (
        Certainty.SURE
        if named and not _hint(event, _OF_ARRIVAL)
        else Certainty.LIKELY
        if share > 0.99
        else Certainty.GUESS
    )


def _guess(what: str, time: TimeColumn, certainty: Certainty, more: str = "") -> Guess:
    return Guess(what, time.expression, certainty, "; ".join(filter(None, [time.said, more])))


def _problems_of(time: TimeColumn) -> list[str]:
    problems = []
    if time.is_ambiguous:
        problems.append(
            f"No value of {time.name} shows which number is the day and which the "
            "month (none is above 12). Ask who writes it, and correct the pattern."
        )
    if time.unit_ms == DAY_MS:
        problems.append(
            f"{time.name} has no time of day: windows shorter than a day make no sense."
        )
    unknown = (time.values_ms == NONE_MS).mean()
    if unknown > 0.001:
        problems.append(
            f"{unknown:.1%} of the sample have no {time.name}: these rows are "
            "malformed, and go to quarantine."
        )
    return problems
