"""Calendars of slots with given outcomes, written directly into a lake of `many_days`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from strandline.lake.store.store import Store

_INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("slot_date", pa.date32()),
        ("slot_start", _INSTANT),
        ("slot_end", _INSTANT),
        ("state", pa.string()),
        ("gap", pa.bool_()),
        ("fired_at", _INSTANT),
        ("closed_at", _INSTANT),
        *((name, pa.int64()) for name in ("on_time", "late_accepted", "late", "no_window")),
        ("missed_pairs", pa.int64()),
        ("unfired", pa.int64()),
        ("slots", pa.int64()),
        ("channels_heard", pa.list_(pa.string())),
        ("run_id", pa.string()),
        ("spec_fingerprint", pa.string()),
    ]
)
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)


def a_slot(number: int, *, hours: float = 12, **outcome: Any) -> dict[str, Any]:
    """The row of the slot of a number, counted from New Year: closed, with 10 records on time."""
    start = NEW_YEAR + number * timedelta(hours=hours)
    end = start + timedelta(hours=hours)
    counts = dict.fromkeys(("late_accepted", "late", "no_window", "missed_pairs"), 0)
    row = {"slot_date": start.date(), "slot_start": start, "slot_end": end, "gap": False}
    row |= {"state": "closed", "fired_at": end, "closed_at": end, "on_time": 10, "run_id": "r-1"}
    return row | counts | outcome


def write_calendar(store: Store, rows: list[dict[str, Any]]) -> None:
    """The table completeness with just these rows."""
    write_deltalake(
        store.uri("completeness"),
        pa.Table.from_pylist(rows, SCHEMA),
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["slot_date"],
    )
