"""A preview as text: changes by day, quarantine by reason, and the windows that change most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from strandline.cli.console import escape, plain_table, table
from strandline.tables import WINDOW_COLUMNS
from strandline.visible import number_of

_SHOWN = {"changed": 10, "removed": 5, "added": 5}
"""The number of shown windows of each kind; the JSON document has more."""
_SHOWN_OTHERWISE = 3
"""The number of shown windows that change, if only bookkeeping columns change."""
_DAYS = 20
_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_LONGEST = 40
"""The longest shown value, in characters."""
_BOOKKEEPING = {*WINDOW_COLUMNS} - {"records"}
"""Columns of every window that are no values: shown last."""
_RULES = "spec_fingerprint"
"""The column that each change of rules changes, in every row: shown only if no other changes."""


def diff_table(diff: Mapping[str, Mapping[str, int]]) -> Table:
    """The number of rows that a run inserts, updates and deletes, a line for each table."""
    operations = ("insert", "update", "delete")
    changes = table(*operations, first="table")
    for column in changes.columns[1:]:
        column.justify = "right"
    for name, counts in diff.items():
        changes.add_row(name, *(f"{counts[op]:,}" for op in operations))
    return changes


def parts(preview: Mapping[str, Any] | None) -> Iterator[RenderableType]:
    """The changes of a run as tables and lines; none if it has no preview or changes nothing."""
    if preview is None or not preview["days"]:
        return
    yield _by_day(preview)
    by_reason = (
        f"{what} {', '.join(f'{count:,} {escape(reason)}' for reason, count in counts.items())}"
        for what, counts in preview["quarantine"].items()
        if counts
    )
    yield f"quarantine: {'; '.join(by_reason) or 'unchanged'}"
    changed = preview["windows"]["changed"]
    if changed:
        what = "their records or an aggregate" if _result(preview) == "windows" else "their columns"
        yield (
            f"{_result(preview)} that change: {changed:,}, of these "
            f"{preview['changed_in_values']:,} in {what}; "
            f"{'the largest changes' if preview['changed_in_values'] else 'for example'}:"
        )
    yield from _windows(preview)


def _result(preview: Mapping[str, Any]) -> str:
    """The table of results: `windows`, or of an interval join `pairs`."""
    return str(preview.get("result", "windows"))


def took(before: Mapping[str, Any]) -> str:
    """A line with the time that similar runs took."""
    runs = before["runs"]
    many = "the last run" if runs == 1 else f"the last {runs} runs"
    records, seconds = (_span(before[name]) for name in ("records", "seconds"))
    of = f"{many} of this kind over {records} {'record' if records == '1' else 'records'}"
    return f"{seconds} s: {of}, without the start of the engine"


def _span(least_and_most: Sequence[float]) -> str:
    least, most = (f"{value:,}" for value in least_and_most)
    return least if least == most else f"{least} to {most}"


def _by_day(preview: Mapping[str, Any]) -> Table:
    """A line for each of the days that change most, and a line for all other days."""
    table = plain_table()
    table.add_column("day")
    for name in (f"{_result(preview)} +", "~", "-", "quarantine +", "~", "-"):
        table.add_column(name, justify="right")
    days = preview["days"]
    by_size = sorted(days, key=lambda day: -sum(_counts(day)))
    largest, rest = by_size[:_DAYS], by_size[_DAYS:]
    for day in (day for day in days if day in largest):  # in the order of the days
        table.add_row(day["day"] or "none", *(f"{count:,}" for count in _counts(day)))
    more = len(rest) + preview["other_days"]["days"]
    if more:
        others = [*rest, preview["other_days"]]
        sums = (sum(column) for column in zip(*map(_counts, others), strict=True))
        name = number_of(more, "other day") + (" and more" if preview["days_cut"] else "")
        table.add_row(name, *(f"{count:,}" for count in sums))
    return table


def _counts(day: Mapping[str, Any]) -> list[int]:
    windows, quarantine = day["windows"], day["quarantine"]
    return [
        *(windows[what] for what in ("added", "changed", "removed")),
        *(quarantine[what] for what in ("gained", "changed", "lost")),
    ]


def _windows(preview: Mapping[str, Any]) -> Iterator[RenderableType]:
    in_values = preview["changed_in_values"]
    # windows whose values change come first in `shown`; if there is none, a few examples suffice
    changed = min(_SHOWN["changed"], in_values) if in_values else _SHOWN_OTHERWISE
    most_shown = _SHOWN | {"changed": changed}
    table = plain_table()
    for name in ("", _result(preview).removesuffix("s"), "to"):
        table.add_column(name, no_wrap=True)
    for name in ("key", "what"):
        table.add_column(name, overflow="fold")
    for how, most in most_shown.items():
        shown = [change for change in preview["shown"] if change["how"] == how][:most]
        for change in shown:
            key = ", ".join(_value(value) for value in change["key"].values())
            table.add_row(_SIGNS[how], change["start"], change["end"], key, _what(change))
        if more := preview["windows"][how] - len(shown):
            table.add_row(_SIGNS[how], "", "", "", f"and {more:,} more {how}")
    if table.row_count:
        yield table


def _what(change: Mapping[str, Any]) -> str:
    """The changes of a window, its values first; of an added or removed window its values only."""
    before, after = change["before"], change["after"]
    if before is None or after is None:
        values = {k: v for k, v in (before or after).items() if k not in _BOOKKEEPING}
        return "; ".join(f"{escape(name)} {_value(value)}" for name, value in values.items())
    changed = {name for name in after if before[name] != after[name]}
    shown = changed - {_RULES} or changed
    return "; ".join(
        f"{escape(name)} {_value(before[name])} → {_value(after[name])}"
        for name in sorted(after, key=lambda name: name in _BOOKKEEPING)
        if name in shown
    )


def _value(value: Any) -> str:
    match value:
        case None | bool():
            text = "none" if value is None else str(value).lower()
        case int():
            text = f"{value:,}"
        case float():
            text = f"{value:,.10g}"
        case _:
            text = str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
