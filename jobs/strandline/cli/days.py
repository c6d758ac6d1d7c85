"""The days that a command shows, by --since and --until, and the lines that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any

import typer

from strandline.cli.console import escape
from strandline.errors import InputError
from strandline.model.intervals import days_named
from strandline.visible import number_of

Since = Annotated[
    str | None, typer.Option(metavar="DATE", help="First day shown. [89 days before the last]")
]
Until = Annotated[
    str | None, typer.Option(metavar="DATE", help="Last day shown. [the last there is]")
]


def asked_days(since: str | None, until: str | None) -> dict[str, date | None]:
    """The days of --since and --until; None for an option that is not given.

    Raises:
        InputError: a text is not a day, or the last day is before the first.
    """
    first, last = _day("--since", since), _day("--until", until)
    if first is not None and last is not None and first > last:
        problem = f"{first} is after --until {last}"
        raise InputError("--since", problem, "give the earlier day first")
    return {"since": first, "until": last}


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(
            option, f"{text!r} is not a date", "write one such as 2013-01-15"
        ) from None


def shown(days: Mapping[str, str | None]) -> str:
    """A line with the shown days, and the option that shows others."""
    first, last = days["since"], days["until"]
    which = _from_to(first, last or "the last") if first or last else "all days"
    return f"{which}; --since and --until show others"


def in_all(totals: Mapping[str, Any]) -> str:
    """A line with the totals over all days."""
    if not totals["slots"]:
        return "no slot yet"
    result = "pairs" if "pairs" in totals else "windows"
    return (
        f"{number_of(totals['slots'], 'slot')}, {number_of(totals[result], result[:-1])}, "
        f"{number_of(totals['quarantine'], 'record')} in quarantine, "
        f"{_from_to(totals['first_day'], totals['last_day'])}"
    )


def unfinished(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of a status with days to recompute, and with days of missing rows: label, text."""
    which = " that needs no missing rows" if found["lost"] else ""
    if days := found["owed"]:
        does_it = f"changed or landed late; the next scheduled run{which} does it"
        yield "to recompute", f"{days_named(days)}: {does_it}"
    upstream = found["upstream"] or {"changed": ()}
    if changed := upstream["changed"]:
        does_it = "changed since they were used; the next scheduled run does it"
        of_days = f"results of {escape(upstream['pipeline'])} of {days_named(changed)}"
        yield "to recompute", f"{of_days}: {does_it}"
    if lost := found["lost"]:
        stay = "in the landing table; windows made of them stay as published"
        yield "rows missing", f"{days_named(lost)}: {stay}"


def _from_to(first: str | None, last: str) -> str:
    """Some days by the first and the last one; of a single day its name."""
    if first == last:
        return f"of {last}"
    return f"from {first} to {last}" if first else f"to {last}"


def quarantine(counts: str, removed: int) -> str:
    """The rows in quarantine by reason, and the number of the removed ones."""
    if not removed:
        return counts
    rows = number_of(removed, "late or no_window row")
    return f"{counts}; {rows} removed by an erasure or quarantine_days"
