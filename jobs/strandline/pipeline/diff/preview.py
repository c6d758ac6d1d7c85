"""The preview of a run for whoever approves it: its changes by window, by reason and by day.

It is computed from the diffs after they are staged; a run that publishes at once has none. Its size
is bounded, however much a run changes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from deltalake import DeltaTable

from strandline.lake.publish.apply_diff import without_op
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.publish.batches import ROWS
from strandline.lake.publish.shown_rows import Largest, first_rows, largest_updates
from strandline.lake.publish.staged_diff import Change, counted_by, rows_with
from strandline.lake.publish.staging import Part
from strandline.lake.store.days import rows_by_day
from strandline.lake.store.reads import dataset_of, files_started_in, rows_of, started_in
from strandline.lake.store.schema import arrow_of, fit, schema_of, with_all_columns
from strandline.model.intervals import TimeRange, instant_of, text_of
from strandline.pipeline.request.context import Context
from strandline.tables import QUARANTINE

MOST_DAYS = 10_000
_LONGEST_TEXT = 200
"""The largest number of characters of a shown text."""
_OF_WINDOWS = {INSERT: "added", UPDATE: "changed", DELETE: "removed"}
_OF_QUARANTINE = {INSERT: "gained", UPDATE: "changed", DELETE: "lost"}
_NOT_SHOWN = {"window_date", "window_start", "window_end", "pair_date", "pair_ts", "run_id"}
_BY = {"windows": "records", "pairs": "pair"}
"""The column of a table by which its rows are ranked for the preview."""


def preview_of(
    ctx: Context,
    changes: Sequence[Change],
    within: TimeRange,
    malformed: Part | None,
    most: int,
) -> dict[str, Any]:
    """The preview of a run's diffs, as plain values for `--json`.

    Its fields: `result`: the table of its results, `windows` or `pairs`; then all below is about
    pairs. `windows`: how many windows the run would add, change and remove. `changed_in_values`:
    the number of changed windows that differ in an aggregate or in their number of records; the
    others differ only in state, firings or settings. `shown`: some windows of each kind: the
    changed ones with the largest changes (`Largest`), the others with the most records.
    `not_shown`: the number of other windows by kind. `quarantine`: the number of rows added,
    changed and removed in quarantine, by reason. `days`: the changes of windows and of quarantine
    on the days with most changes: the day of a window's start, of a late record's slot, of a
    malformed record's arrival; null: rows without a day. `other_days`: the number of other days
    with changes, and the sums of their changes. `days_cut`: whether more than `MOST_DAYS` days
    change; the rest are left out.

    Args:
        ctx: the run.
        changes: its diffs.
        within: the range of its windows.
        malformed: a further diff of quarantine, for malformed rows; None: there is none.
        most: the largest number of windows of each kind to show, and of days.
    """
    by_name = {change.target.name: change for change in changes}
    windows, quarantine = by_name[ctx.spec.result], by_name["quarantine"].rows
    shown, in_values = _shown_windows(ctx, windows, within, most)
    days = _Days()
    days.count("windows", windows.rows, windows.target.partition, _OF_WINDOWS)
    if windows.replaces_all:
        days.remove("windows", rows_by_day(ctx.store, windows.target.name))
    in_quarantine = [rows for rows in (quarantine, malformed) if rows is not None]
    for rows in in_quarantine:
        days.count("quarantine", rows, QUARANTINE.partition, _OF_QUARANTINE)
    counts = {how: windows.counts[op] for op, how in _OF_WINDOWS.items()}
    listed = Counter(change["how"] for change in shown)
    return {
        "result": ctx.spec.result,
        "windows": counts,
        "changed_in_values": in_values,
        "shown": shown,
        "not_shown": {how: count - listed[how] for how, count in counts.items()},
        "quarantine": _by_reason(in_quarantine),
        **days.shown(most),
    }


def _by_reason(parts: Iterable[Part]) -> dict[str, Counter[str]]:
    """The number of changed rows of quarantine by kind of change and reason."""
    reasons: dict[str, Counter[str]] = {what: Counter() for what in _OF_QUARANTINE.values()}
    for rows in parts:
        for row in counted_by(rows, ["reason", OP]):
            reasons[_OF_QUARANTINE[row[OP]]][row["reason"]] += row[ROWS]
    return reasons


_Changes: TypeAlias = dict[str, Counter[str]]
"""The number of changed rows of each table, by kind of change."""


@dataclass
class _Days:
    """The number of changes by day, while they are counted."""

    found: dict[date | None, _Changes] = field(default_factory=dict)
    cut: bool = False

    def count(self, table: str, rows: Part, partition: str, words: Mapping[str, str]) -> None:
        """Count the rows of a diff by day; `words`: the kind of change for each operation."""
        groups = counted_by(rows, [partition, OP])
        self._add(table, [(row[partition], words[row[OP]], row[ROWS]) for row in groups])

    def remove(self, table: str, rows: Mapping[date | None, int]) -> None:
        """Count the published rows of each day as removed, as all of them are replaced."""
        removed = _OF_WINDOWS[DELETE]
        self._add(table, [(day, removed, count) for day, count in rows.items()])

    def _add(self, table: str, changes: Sequence[tuple[date | None, str, int]]) -> None:
        """Count changes, each with its day, kind and number, on the first `MOST_DAYS` days."""
        days = sorted({day for day, _, _ in changes}, key=lambda day: day or date.min)
        self.cut |= len(days) > MOST_DAYS
        shown = {*days[:MOST_DAYS]}
        for day, kind, number in changes:
            if day in shown:
                self.found.setdefault(day, _nothing())[table][kind] += number

    def shown(self, most: int) -> dict[str, Any]:
        """The fields of a preview by day: days with most changes, and the sum of the others."""
        rows = {day: sum(map(Counter.total, of.values())) for day, of in self.found.items()}
        by_size = sorted(rows, key=lambda day: -rows[day])
        others, totals = by_size[most:], _nothing()
        for day in others:
            for table, counts in self.found[day].items():
                totals[table].update(counts)
        shown = sorted(by_size[:most], key=lambda day: day or date.max)
        return {
            "days": [
                {"day": None if day is None else day.isoformat(), **self.found[day]}
                for day in shown
            ],
            "other_days": {"days": len(others), **totals},
            "days_cut": self.cut,
        }


def _nothing() -> _Changes:
    return {
        "windows": Counter(dict.fromkeys(_OF_WINDOWS.values(), 0)),
        "quarantine": Counter(dict.fromkeys(_OF_QUARANTINE.values(), 0)),
    }


def _shown_windows(
    ctx: Context, windows: Change, within: TimeRange, most: int
) -> tuple[list[dict[str, Any]], int]:
    """The windows to show, and the number of changed windows that differ in their values.

    Of a change that replaces everything no removed window is shown: it may lack columns of the new.
    """
    shown, in_values, keys = [], 0, _keys_of(windows)
    by = _BY[windows.target.name]
    if windows.counts[UPDATE]:
        largest = _largest(ctx, windows, within, most)
        in_values = largest.in_values
        pairs = zip(largest.before.to_pylist(), largest.after.to_pylist(), strict=True)
        shown += [_change(ctx, UPDATE, before, after) for before, after in pairs]
    for op in (INSERT,) if windows.replaces_all else (INSERT, DELETE):
        if windows.counts[op]:
            rows = first_rows(rows_with(windows.rows, op), by, keys, most).to_pylist()
            sides = ((None, row) if op == INSERT else (row, None) for row in rows)
            shown += [_change(ctx, op, before, after) for before, after in sides]
    return shown, in_values


def _largest(ctx: Context, windows: Change, within: TimeRange, most: int) -> Largest:
    """The windows with the largest changes, with their published rows."""
    target, schema = windows.target, without_op(windows.rows.schema)
    table = ctx.store.table(target.name) or DeltaTable(ctx.store.uri(target.name))
    not_values = {*target.columns, *ctx.spec.source.key} - {_BY[target.name]}
    wanted, files = started_in(target.start, within), files_started_in(target.start, within)
    fitted = fit(schema, schema_of(table), ctx.place(target.name))
    published = map(fitted.of_published, rows_of(dataset_of(table, files), wanted))
    return largest_updates(
        rows_with(windows.rows, UPDATE),
        (with_all_columns(rows, arrow_of(schema)) for rows in published),
        _keys_of(windows),
        [name for name in schema.names if name not in not_values],
        most,
    )


def _keys_of(change: Change) -> list[str]:
    """The columns that identify a row, by their names in the diff."""
    names = {name.lower(): name for name in change.rows.schema.names}
    return [names[key.lower()] for key in change.target.keys]


def _change(
    ctx: Context, op: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> dict[str, Any]:
    """A window, or a pair, that would be added, changed or removed.

    `start` and `end` of a pair are its later event time; `before` is null if it is added, `after`
    if it is removed.
    """
    row = after or before or {}
    names = {name.lower(): name for name in row}  # as the table has them
    keys = {key: names[key.lower()] for key in ctx.spec.source.key}

    def others(side: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        left_out = {*keys.values(), *_NOT_SHOWN}
        return side and {name: _plain(v) for name, v in side.items() if name not in left_out}

    start, end = ("window_start", "window_end") if "window_start" in row else ("pair_ts", "pair_ts")
    return {
        "how": _OF_WINDOWS[op],
        "start": text_of(instant_of(row[start])),
        "end": text_of(instant_of(row[end])),
        "key": {key: _plain(row[name]) for key, name in keys.items()},
        "before": others(before),
        "after": others(after),
    }


def _plain(value: Any) -> Any:
    """A value for JSON; a long one is shortened to the beginning of its text."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            text = value[:_LONGEST_TEXT].hex()
        case str() | Decimal():
            text = str(value)
        case _:
            text = json.dumps(value, default=str, separators=(",", ":"))
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
