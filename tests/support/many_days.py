"""A lake whose tables hold many days, written directly: no run, no Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import SCHEMA as TIMELINE
from strandline.model.intervals import DAY_MS, TimeRange, midnight_of
from strandline.spec import PipelineSpec

FIRST = date(2013, 1, 1)
SLOTS = 2
"""Slots a day, each with 10 records on time, 1 late but accepted and 1 late."""
_HOURS = 24 // SLOTS
_INSTANT = pa.timestamp("us", tz="UTC")
_LANDING = pa.schema(
    {
        **dict.fromkeys(("arrived_at", "happened_at", "landed_at", "departed_at"), _INSTANT),
        **dict.fromkeys(("device", "source", "origin", "carrier"), pa.string()),
        **dict.fromkeys(("distance", "dep_delay", "air_time"), pa.int64()),
        "arrival_date": pa.date32(),
    }
)
"""The columns of the landing tables of the pipelines `meter` and `flights`."""


def day(number: int) -> date:
    """A day of the lake, the first being 0."""
    return FIRST + timedelta(number)


def a_lake_of(days: int, spec: PipelineSpec, folder: Path, *, observed: int | None = None) -> Lake:
    """The tables of a pipeline after so many days, each of which is a file of each table.

    Args:
        days: of slots; the slot of the last one that ends last is open.
        spec: the pipeline.
        folder: where the lake is to lie.
        observed: the days of arrivals; None: as many.
    """
    lake = Lake.at(str(folder))
    store = lake.pipeline(spec.pipeline)
    slots = [(day(number), slot) for number in range(days) for slot in range(SLOTS)]
    last = slots[-1]
    rows = [_slot_row(spec, *slot, is_open=slot == last) for slot in slots]
    _write(store, "completeness", rows, "slot_date")
    _write(store, "windows", [_window_row(row) for row in rows], "window_date")
    late = [
        {"quarantine_date": row["slot_date"], "slot_start": row["slot_start"]}
        | {"reason": "late", "late_by_ms": 90_000, "missed_windows": 1}
        for row in rows
    ]
    _write(store, "quarantine", late, "quarantine_date")
    arrivals = range(days if observed is None else observed)
    _write_timeline(store, [_channel_row(spec, day(number)) for number in arrivals])
    end_ms = midnight_of(FIRST) + days * DAY_MS
    within, versions = TimeRange(end_ms - DAY_MS, end_ms), store.versions()
    published = Entry("r-1", 1, "published", "advance", within, versions=versions)
    Ledger(store).append(published, datetime(2020, 1, 1, tzinfo=UTC))
    for table in spec.landing_tables:
        write_deltalake(lake.resolve(table), _LANDING.empty_table(), mode="ignore")
    return lake


def without_files_of_other_days(
    lake: Lake, pipeline: str, first: date, last: date, *, observed: date | None = None
) -> int:
    """Take away every data file of another day, so that whoever opens one fails; how many.

    Of the timeline they are left from the day `observed` on.
    """
    assert lake.folder is not None
    gone = 0
    for file in (lake.folder / pipeline).glob("*/*_date=*/*.parquet"):
        is_observed = observed is not None and file.parent.parent.name == "timeline"
        left_from = observed if is_observed else first
        if not left_from <= date.fromisoformat(file.parent.name.partition("=")[2]) <= last:
            file.unlink()
            gone += 1
    return gone


def _slot_row(spec: PipelineSpec, of_day: date, slot: int, *, is_open: bool) -> dict[str, Any]:
    start = datetime(of_day.year, of_day.month, of_day.day, slot * _HOURS, tzinfo=UTC)
    end = start + timedelta(hours=_HOURS)
    passed = None if is_open else end
    return {
        **{"slot_date": of_day, "slot_start": start, "slot_end": end, "gap": False},
        **{"state": "open" if is_open else "closed", "fired_at": passed, "closed_at": passed},
        **{"on_time": 10, "late_accepted": 1, "late": 1, "no_window": 0, "missed_pairs": 0},
        "spec_fingerprint": spec.spec_fingerprint,
    }


def _window_row(slot: dict[str, Any]) -> dict[str, Any]:
    names = {"window_date": "slot_date", "window_start": "slot_start", "window_end": "slot_end"}
    rest = {"device": "d-1", "records": 11, "spec_fingerprint": slot["spec_fingerprint"]}
    return {name: slot[other] for name, other in names.items()} | rest


def _channel_row(spec: PipelineSpec, of_day: date) -> dict[str, Any]:
    return {
        **{"arrival_date": of_day, "kind": "channel", "channel": "a", "records": 24},
        "settled_ms": midnight_of(of_day) + DAY_MS // 2,
        "timeline_fingerprint": spec.timeline_fingerprint,
    }


def _write(store: Store, name: str, rows: list[dict[str, Any]], partition: str) -> None:
    found = pa.Table.from_pylist(rows)
    instants = pa.schema(
        [f.with_type(_INSTANT) if pa.types.is_timestamp(f.type) else f for f in found.schema]
    )
    write_deltalake(store.uri(name), found.cast(instants), partition_by=[partition])


def _write_timeline(store: Store, rows: list[dict[str, Any]]) -> None:
    found = pa.Table.from_pylist(rows, TIMELINE)
    write_deltalake(store.uri("timeline"), found, partition_by=["arrival_date"])
