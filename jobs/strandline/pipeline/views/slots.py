"""The slots of a pipeline's calendar: their states, and their records by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from strandline.engine.position.grid import Grid
from strandline.lake.store.days import Days, days_of
from strandline.lake.store.reads import columns_of, in_arrow, scanned
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    TimeRange,
    instant_of,
    text_of,
    text_or_none,
)
from strandline.pipeline.views.calendar_rows import MANY, gaps_on
from strandline.pipeline.views.late_of_newer import LateOfNewer
from strandline.pipeline.views.read_pipeline import ReadPipeline

COUNTS = ("on_time", "late_accepted", "late", "no_window", "missed_pairs")
_BASE = ("slot_start", "slot_end", "state", "gap", "fired_at", "closed_at", "run_id")
_LATER = ("unfired", "slots", "channels_heard", "spec_fingerprint")
"""Columns that are missing in tables of earlier versions, or of other windows."""
_BATCH_ROWS = 8_192
_REFUSING = ("late", "no_window", "missed_pairs", "unfired")


def accepted_share(accepted: int, refused: int) -> float | None:
    """The share of accepted records, from 0 to 1; None: there is no record."""
    known = accepted + refused
    return accepted / known if known else None


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of the calendar: a window over all keys.

    Attributes:
        start_ms: its start.
        end_ms: its end, exclusive.
        state: `open`, `fired`, `closed`, or `gap` for one without a record.
        slots: the number of slots in this row; more than one only for consecutive gaps.
        fired_at_ms: when the watermark reached its end; None: not yet.
        closed_at_ms: when it was closed to late records; None: not yet.
        counts: the number of its records by outcome.
        channels: the channels with a record in it; None: not recorded.
        run_id: the run that has changed its row last.
        spec_fingerprint: the fingerprint of the settings that it was published with.
        late_of_newer: the number of late records in it that `counts` of a newer window has.
        late_at_least: whether there may be more of these, whose rows of quarantine are removed.
    """

    start_ms: int
    end_ms: int
    state: str
    slots: int
    fired_at_ms: int | None
    closed_at_ms: int | None
    counts: dict[str, int]
    channels: tuple[str, ...] | None
    run_id: str | None
    spec_fingerprint: str | None
    late_of_newer: int = 0
    late_at_least: bool = False

    @property
    def accepted(self) -> int:
        """The number of records in its windows."""
        return self.counts["on_time"] + self.counts["late_accepted"]

    @property
    def late(self) -> int:
        """The number of records in it that no window accepted."""
        return self.counts["late"] + self.late_of_newer

    @property
    def refused(self) -> int:
        """The number of records that its windows refused, or that lie between it and the next."""
        return self.late + self.counts["missed_pairs"] + self.counts["no_window"]

    @property
    def share(self) -> float | None:
        """The share of its records that windows accepted; None: it has no record."""
        return accepted_share(self.accepted, self.refused)

    @property
    def within(self) -> TimeRange:
        """The range from its start to its end."""
        return TimeRange(self.start_ms, self.end_ms)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        share = self.share
        return {
            "slot_start": text_of(self.start_ms),
            "slot_end": text_of(self.end_ms),
            "state": self.state,
            "slots": self.slots,
            "share": None if share is None else round(share, 6),
            "fired_at": text_or_none(self.fired_at_ms),
            "closed_at": text_or_none(self.closed_at_ms),
            **self.counts,
            "late_of_newer": self.late_of_newer,
            "late_at_least": self.late_at_least,
        }


def slots_of(
    read: ReadPipeline,
    days: Days,
    wanted: ds.Expression | None = None,
    *,
    incomplete: bool = False,
    part_ms: int | None = None,
) -> Iterator[Slot]:
    """The slots of some days, in the order of their days, batch by batch.

    Args:
        read: the pipeline.
        days: the days of the slots' starts.
        wanted: a further condition; None: none.
        incomplete: whether to select only slots that are not closed or have refused a record, and
            `wanted` ones.
        part_ms: the length of the stretches into which rows for many gaps are divided.
    """
    table = read.store.table("completeness")
    if table is None:
        return
    existing = columns_of(table).names
    names = [name for name in (*_BASE, *COUNTS, *_LATER) if name in existing]
    dataset, rows = days_of(table, "completeness", days)
    late = LateOfNewer.of(read, days)
    if incomplete:
        lacking = _incomplete(existing) if late is None else _incomplete(existing) | late.windows
        wanted = lacking if wanted is None else wanted | lacking
    if wanted is not None:
        rows &= wanted
    if "slots" in existing:  # whatever is wanted: gaps are incomplete, and few such rows exist
        yield from map(
            _slot, gaps_on(read.spec, read.store, names, days.within, part_ms).to_pylist()
        )
        rows &= ds.field("slots").is_null() | ~MANY
    for slots in _read(scanned(dataset, rows, names, at_once=_BATCH_ROWS)):
        yield from slots if late is None else _with_late(slots, late)


def gaps_in_a_row(read: ReadPipeline, within: TimeRange) -> Iterator[Slot]:
    """The parts of rows for many gaps whose slots lie in a range.

    If the range is a cumulative window, the windows that start with it are parts of their own.
    """
    names, grid = [*_BASE, *COUNTS, *_LATER], Grid.of(read.spec)
    last_ms = grid.starts_of(within.end_ms) if grid.cumulative else within.end_ms - grid.size_ms
    starts = TimeRange(within.start_ms, last_ms + 1)
    is_window = grid.cumulative and last_ms == within.start_ms
    part_ms = grid.step_ms if is_window else None
    yield from map(_slot, gaps_on(read.spec, read.store, names, starts, part_ms).to_pylist())


def _read(rows: ds.Scanner) -> Iterator[list[Slot]]:
    for batch in rows.to_batches():
        yield [*map(_slot, batch.to_pylist())]


def _with_late(slots: Sequence[Slot], late: LateOfNewer) -> Iterator[Slot]:
    """The slots with the late records that a newer window counts; not for a row of many gaps."""
    edges = np.array([(one.start_ms, one.end_ms) for one in slots]).reshape(-1, 2).T
    counts, are_least = late.counts(*edges).tolist(), late.are_least(*edges).tolist()
    for slot, count, is_least in zip(slots, counts, are_least, strict=True):
        is_one = slot.slots == 1
        yield replace(slot, late_of_newer=count, late_at_least=is_least) if is_one else slot


def shares_instants_with(within: TimeRange) -> ds.Expression:
    """The slots that share an instant with a range."""
    first = in_arrow(within.start_ms)
    end = in_arrow(min(within.end_ms, END_OF_INSTANTS_MS - 1))
    return (ds.field("slot_end") > first) & (ds.field("slot_start") < end)


def _incomplete(there: list[str]) -> ds.Expression:
    """The slots that are not closed, are gaps, or have refused or dropped a record."""
    rows = (ds.field("state") != "closed") | ds.field("gap")
    for name in _REFUSING:
        if name in there:
            rows |= ds.field(name) > 0
    return rows


def _slot(row: dict[str, Any]) -> Slot:
    channels = row.get("channels_heard")
    counts = {name: row[name] or 0 for name in COUNTS}
    if row.get("unfired"):
        counts["unfired"] = row["unfired"]
    return Slot(
        instant_of(row["slot_start"]),
        instant_of(row["slot_end"]),
        "gap" if row["gap"] else row["state"],
        row.get("slots") or 1,
        None if row["fired_at"] is None else instant_of(row["fired_at"]),
        None if row["closed_at"] is None else instant_of(row["closed_at"]),
        counts,
        None if channels is None else tuple(channels),
        row.get("run_id"),
        row.get("spec_fingerprint"),
    )
