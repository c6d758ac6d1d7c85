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
from rich.console import Console
from rich.table import Table

from strandline.lake.ledger import Entry, Ledger
from strandline.lake.store import Lake, rows_of
from strandline.model.intervals import text_of

PIPELINE = "flights"
TABLES = ("landing/flights", *(f"{PIPELINE}/{t}" for t in ("timeline", "windows", "completeness")))
TABLES += (f"{PIPELINE}/quarantine",)
WHY = {
    "late": "landed when its hour was closed already: a longer flight than 3 h + 2 h allow for",
    "null_event_time": "cancelled: it never departed, so it belongs to no hour",
    "null_arrival": "it departed, but never landed where it should: diverted",
}
STATES = {
    "closed": "complete: nothing can change it any more",
    "fired": "published; a late flight may still be added",
    "open": "the watermark has not passed it: not published",
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
    table = _table("What was done", "run", "windows that start in", "knows arrivals before", "diff")
    runs = [e for e in _ledger(lake) if e.position > before["position"] and e.diff is not None]
    runs = [entry for entry in runs if entry.step == "published"]
    for entry in runs:
        within = entry.range
        span = f"{text_of(within.start_ms)} … {text_of(within.end_ms)}" if within else "–"
        horizon = text_of(entry.horizon_ms) if entry.horizon_ms is not None else "–"
        table.add_row(entry.kind, span, horizon, _diff(entry.diff or {}))
    out.print(table)
    now, then = _snapshot(lake), before["tables"]
    new = {
        name: len(set(now[name]["files"]) - set(then.get(name, {}).get("files", [])))
        for name in now
    }
    moved = [name for name in now if now[name]["version"] != then.get(name, {}).get("version")]
    changes = sum(sum(counts.values()) for entry in runs for counts in (entry.diff or {}).values())
    if not changes and not moved and not any(new.values()):
        out.print(
            "[bold green]Nothing has changed.[/] The runs computed again exactly what is published:"
            f" every diff is empty, and none of the {len(now)} tables has a new version or file."
        )
    else:
        files = ", ".join(f"{name} {count}" for name, count in new.items() if count)
        out.print(f"New data files: {files or 'none'}.")


def _say_what_is_complete(lake: Lake) -> None:
    table = _table("Which hours are complete", "hours of departure", "state", "hours", "on time")
    for name in ("late, accepted", "too late"):
        table.add_column(name, justify="right")
    for state, slots in _stretches(_rows(lake, "completeness")):
        span = f"{slots[0]['slot_start']:%F %H:%M} … {slots[-1]['slot_end']:%F %H:%M}"
        sums = (sum(slot[n] for slot in slots) for n in ("on_time", "late_accepted", "late"))
        table.add_row(
            span, f"{state}: {STATES[state]}", f"{len(slots):,}", *(f"{s:,}" for s in sums)
        )
    out.print(table)


def _say_what_is_quarantined(lake: Lake) -> None:
    table = _table("What was kept apart, and why", "reason", "flights", "why")
    rows = _rows(lake, "quarantine")
    for reason, count in Counter(row["reason"] for row in rows).most_common():
        table.add_row(reason, f"{count:,}", WHY.get(reason, ""))
    out.print(table)
    late = [row for row in rows if row["reason"] == "late"]
    if late:
        worst = max(late, key=lambda row: row["late_by_ms"])
        by = timedelta(milliseconds=worst["late_by_ms"])
        out.print(
            f"The latest of them: {worst['carrier']} {worst['flight']} from {worst['origin']} to "
            f"{worst['dest']}, departed {worst['departed_at']:%F %H:%M}; {by} more allowed "
            "lateness would have saved it."
        )


def _say_where_and_what_next(lake: Lake) -> None:
    reports = f"{lake.root}/{PIPELINE}/_reports"
    out.print("\n[bold]Where it lies[/]")
    out.print(f"  report     {_short(reports)}/report.html", soft_wrap=True)
    out.print(f"  Data Docs  {_short(reports)}/data_docs/index.html", soft_wrap=True)
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


def _diff(diff: Mapping[str, Mapping[str, int]]) -> str:
    said = [
        f"{table}: " + ", ".join(f"{n:,} {op}" for op, n in counts.items() if n)
        for table, counts in diff.items()
        if any(counts.values())
    ]
    return "\n".join(said) or "empty"


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
    return rows_of(lake.pipeline(PIPELINE).table(table))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for name in columns:
        table.add_column(
            name, justify="right" if name in {"hours", "on time", "flights"} else "left"
        )
    return table


def _short(path: str) -> str:
    """A path as seen from where one stands."""
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)


if __name__ == "__main__":
    main()
