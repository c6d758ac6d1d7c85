"""The parts of a run and of a status as commands print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strandline.cli.console import escape
from strandline.model.intervals import EVERYTHING, days_named, text_of
from strandline.quality import progress
from strandline.visible import number_of

_COLOURS = {"critical": "red", "warning": "yellow"}


def windows(start: str, end: str) -> tuple[str, str]:
    """The range of the windows that a run has computed."""
    if start == end:
        return "windows", "none"
    return "windows from", f"{first_window(start)} to {end}"


def first_window(start: str) -> str:
    """The start of a run's windows; `the first one` for a run over all windows."""
    return "the first one" if start == text_of(EVERYTHING.start_ms) else start


def cutoff(horizon: str | None) -> str:
    """The data cut-off of a run; the first instant if nothing has arrived, and none was given."""
    return progress.cutoff(horizon, lambda instant: instant or "not known")


def changes(run: Mapping[str, Any]) -> str:
    """The number of rows in a run's diff; `–` if the run has no diff."""
    if run["diff"] is None:
        return "–"
    rows = number_of(sum(sum(counts.values()) for counts in run["diff"].values()), "row")
    return {True: rows, False: f"{rows}, not published", None: f"{rows} planned"}[
        run["diff_published"]
    ]


def state(run: Mapping[str, Any]) -> str:
    """The state of a run; an unfinished run of another host may still be running."""
    if run["status"] != "unknown":
        return str(run["status"]) + (", reverted" if run["reverted_by"] else "")
    if run["step_of_later_version"]:
        return f"not known: its last step, {escape(run['step'])}, is of a later version"
    return f"running or dead on {escape(run['host'] or 'a host not noted')} since {run['started']}"


def edited(before: str, of: Mapping[str, Any]) -> str:
    """The rules that were edited, after the words `before`; nothing if none is known."""
    return before + escape(", ".join(of["edited_since"])) if of["edited_since"] else ""


def engine(run: Mapping[str, Any]) -> str:
    """The engine of a run; nothing for a run of an earlier version, which did not record it."""
    return f" on {run['engine']} {run['engine_version']}" if run["engine"] else ""


def shown_days(days: Mapping[str, str | None]) -> str:
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


def quarantined(counts: str, removed: int) -> str:
    """The rows in quarantine by reason, and the number of the removed ones."""
    if not removed:
        return counts
    rows = number_of(removed, "late or no_window row")
    return f"{counts}; {rows} removed by an erasure or quarantine_days"


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each finding, with rich's markup."""
    for one in findings:
        colour = _COLOURS.get(one["severity"], "dim")
        yield f"[{colour}]{one['severity']}[/] {escape(one['name'])}: {escape(one['sentence'])}\n"


def findings_of_status(found: Mapping[str, Any]) -> Iterator[str]:
    """The findings of a status, after the notes on its tables; with --deep, also their books."""
    if found["notice"]:
        yield f"note: {escape(found['notice'])}\n"
    yield from finding_lines(found["findings"])
    books = found["books_of_tables"]
    if books and not any(one["name"] == "tables" for one in found["findings"]):
        yield f"tables: {books:,} of {books:,} books over them balance\n"


def failed_expectations(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The expectations that a run fails, and the number that it meets."""
    failed = [result for result in results if not result["success"]]
    for one in failed:
        name = f"{escape(one['expectation'])} on {one['table']}"
        yield f"[yellow]{one['severity']}[/] {name}: {escape(one['figures'])}\n"
    if results:
        yield f"audit: {len(results) - len(failed)} of {len(results)} expectations met\n"
