"""What `make demo` has done: read from the lake, so that it says what is there and no more.

python scripts/demo_summary.py before >FILE   # notes what the lake holds
python scripts/demo_summary.py after FILE     # what the runs since then have changed
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import dataset_of
from strandline.model.intervals import datetime_of, instant_of

PIPELINE = "flights"
TABLES = ("landing/flights", *(f"{PIPELINE}/{t}" for t in ("timeline", "windows", "completeness")))
TABLES += (f"{PIPELINE}/quarantine",)
WHY = {
    "late": "landed when its hour was closed: bound 3 h, allowed lateness 2 h",
    "null_event_time": "cancelled: it never departed, so it belongs to no hour",
    "null_arrival": "departed, but never landed where it should: diverted",
}
STATES = {
    "closed": "complete: nothing can change it any more",
    "fired": "published; a late flight may still be added",
    "open": "not published: the watermark has not passed it",
}
Snapshot = dict[str, dict[str, Any]]
out = Console(highlight=False)


def main() -> None:
    """The command line."""
    lake = Lake.at(os.environ.get("STRANDLINE_LAKE", "lake"))
    match sys.argv[1:]:
        case ["before"]:
            print(json.dumps({"position": _position(lake), "tables": _snapshot(lake)}))
        case ["after", file]:
            before = json.loads(Path(file).read_text(encoding="utf-8"))
            _say_what_was_done(lake, before)
            _say_what_is_complete(lake)
            _say_what_is_quarantined(lake)
            _say_where_and_what_next(lake)
        case _:
            sys.exit(__doc__)


def _say_what_was_done(lake: Lake, before: Mapping[str, Any]) -> None:
    table = _table("What was done", "run", "hours of departure", "data cut-off", "changes")
    ends = {"published", "repeated"}
    runs = [e for e in _ledger(lake) if e.position > before["position"] and e.step in ends]
    for entry in runs:
        span = _span(entry.range.start_ms, entry.range.end_ms) if entry.range else ""
        horizon = _hour(entry.horizon_ms) if entry.horizon_ms is not None else ""
        repeated = entry.step == "repeated"
        said = "repeats a run" if repeated else _changes(entry.diff or {})
        table.add_row(entry.kind, span, horizon, said)
    out.print(table)
    then, now = before["tables"], _snapshot(lake)
    files = {name: len({*now[name]["files"]} - {*_in(then, name, "files", [])}) for name in now}
    moved = [name for name in now if now[name]["version"] != _in(then, name, "version", None)]
    changes = sum(sum(ops.values()) for entry in runs for ops in (entry.diff or {}).values())
    if changes or moved or any(files.values()):
        said = ", ".join(f"{name} {count}" for name, count in files.items() if count)
        out.print(f"New data files: {said or 'none'}.")
    else:
        out.print(
            f"[bold green]Nothing has changed.[/] What the {len(runs)} runs were asked for is"
            f" published: a run of the same request, rules and rows says so without Spark, and none"
            f" of the {len(now)} tables has a new version or data file."
        )


def _say_what_is_complete(lake: Lake) -> None:
    counts = {"on time": "on_time", "late, accepted": "late_accepted", "too late": "late"}
    table = _table("Hours of departure by state", "hours of departure", "state", "hours", *counts)
    for state, slots in _stretches(_rows(lake, "completeness")):
        span = _span(instant_of(slots[0]["slot_start"]), instant_of(slots[-1]["slot_end"]))
        sums = (sum(slot[column] for slot in slots) for column in counts.values())
        table.add_row(span, state, *(f"{number:,}" for number in (len(slots), *sums)))
    out.print(table)
    for state, meaning in STATES.items():
        out.print(f"  [dim]{state}: {meaning}[/]")


def _say_what_is_quarantined(lake: Lake) -> None:
    table = _table("What was kept apart, and why", "reason", "flights", "why")
    rows = _rows(lake, "quarantine")
    for reason, count in Counter(row["reason"] for row in rows).most_common():
        table.add_row(reason, f"{count:,}", WHY.get(reason, ""))
    out.print(table)
    late = [row for row in rows if row["reason"] == "late"]
    if late:
        worst = max(late, key=lambda row: row["late_by_ms"])
        minutes = -(-worst["late_by_ms"] // 60_000)
        out.print(
            f"  [dim]The latest: {worst['carrier']} {worst['flight']} from {worst['origin']} to "
            f"{worst['dest']}, departed {worst['departed_at']:%F %H:%M}; {minutes // 60} h "
            f"{minutes % 60} min more of allowed lateness would have saved it.[/]"
        )


def _say_where_and_what_next(lake: Lake) -> None:
    reports = f"{lake.root}/{PIPELINE}/_reports"
    out.print("\n[bold]Where it lies[/]")
    out.print(f"  report     {_short(reports)}/report.html", soft_wrap=True)
    tables = "windows, completeness, quarantine, timeline, runs"
    out.print(f"  tables     {_short(lake.root)}/{PIPELINE}/ ({tables})", soft_wrap=True)
    out.print("\n[bold]What to try next[/]")
    for command, what in {
        "make up": "Airflow's UI on 127.0.0.1; trigger strandline_reprocess and fill in its form",
        f".venv/bin/strandline status {PIPELINE}": "how far it is, in a second",
        f".venv/bin/strandline plan {PIPELINE} --start 2013-07-01 --end 2013-07-02": "a dry run",
        f".venv/bin/strandline advance {PIPELINE} --to 2013-02-01": "two more weeks",
        "make demo": "again: it changes nothing",
    }.items():
        out.print(f"  [cyan]{command}[/]  [dim]{what}[/]", soft_wrap=True)


def _stretches(slots: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Neighbouring slots of the same state; a night without flights does not part them."""
    stretch: list[dict[str, Any]] = []
    for slot in sorted((s for s in slots if not s["gap"]), key=lambda s: s["slot_start"]):
        if stretch and (
            slot["state"] != stretch[-1]["state"]
            or slot["slot_start"] - stretch[-1]["slot_end"] > timedelta(days=1)
        ):
            yield stretch[-1]["state"], stretch
            stretch = []
        stretch.append(slot)
    if stretch:
        yield stretch[-1]["state"], stretch


def _changes(diff: Mapping[str, Mapping[str, int]]) -> str:
    signs = {"insert": "+", "update": "±", "delete": "−"}
    said = [
        f"{table} " + " ".join(f"{signs[op]}{count:,}" for op, count in ops.items() if count)
        for table, ops in diff.items()
        if any(ops.values())
    ]
    return "\n".join(said) or "none"


def _span(start_ms: int, end_ms: int) -> str:
    return f"{_hour(start_ms)} to {_hour(end_ms)}"


def _hour(instant_ms: int) -> str:
    return f"{datetime_of(instant_ms):%F %H:%M}"


def _snapshot(lake: Lake) -> Snapshot:
    """The version of each table, and its data files, which are never written to again."""
    found: Snapshot = {}
    for name in TABLES:
        try:
            table = DeltaTable(lake.resolve(name))
        except TableNotFoundError:
            continue
        found[name] = {"version": table.version(), "files": table.file_uris()}
    return found


def _ledger(lake: Lake) -> list[Entry]:
    return Ledger(lake.pipeline(PIPELINE)).entries()


def _position(lake: Lake) -> int:
    return max((entry.position for entry in _ledger(lake)), default=0)


def _rows(lake: Lake, table: str) -> list[dict[str, Any]]:
    there = lake.pipeline(PIPELINE).table(table)
    return [] if there is None else list(dataset_of(there).to_table().to_pylist())


def _in(snapshot: Snapshot, table: str, what: str, otherwise: Any) -> Any:
    return snapshot.get(table, {}).get(what, otherwise)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    numbers = {"hours", "on time", "late, accepted", "too late", "flights"}
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left")
    return table


def _short(path: str) -> str:
    """A path as seen from where one stands."""
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)


if __name__ == "__main__":
    main()
