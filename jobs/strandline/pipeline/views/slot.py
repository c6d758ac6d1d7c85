"""One slot of the calendar: its windows, channels, refused records and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from strandline.errors import InputError
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.store.days import PARTITIONS, Days, days_of
from strandline.lake.store.reads import columns_of, counts_of, in_arrow, scanned, started_in
from strandline.lake.store.store import Store
from strandline.model.intervals import TimeRange, day_of, text_of
from strandline.pipeline.views.late_of_newer import refused_by
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.slots import Slot, gaps_in_a_row, slots_of
from strandline.tables import QUARANTINE

MOST_WINDOWS = 50
SAMPLES = 5
"""The number of shown rows of quarantine for each reason."""
_BATCH_ROWS = 8_192
_NOT_SHOWN = {"window_start", "window_end", "window_date", "spec_fingerprint", "pair_date"}


class NoSlotError(InputError):
    """A slot that the calendar does not have."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        """Name the slot by its edges, in ms."""
        place = f"{text_of(start_ms)} to {text_of(end_ms)}"
        super().__init__(place, "no slot of the calendar", "choose one in the calendar")


@dataclass(frozen=True)
class Rows:
    """Some rows of a table.

    Attributes:
        columns: their names.
        rows: the values of each.
        total: how many rows there are.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int


def slot_at(shown: Shown, start_ms: int, end_ms: int) -> Slot:
    """The slot with a start and an end, or the gaps in a row between the two.

    Raises:
        NoSlotError: the calendar has no such slot.
    """
    within, day = TimeRange(start_ms, end_ms), day_of(start_ms)
    at_start = started_in("slot_start", TimeRange(start_ms, start_ms + 1))
    of_day = slots_of(shown, Days(day, day), at_start)
    for slot in chain(of_day, gaps_in_a_row(shown, within)):
        if slot.within == within:
            return slot
    raise NoSlotError(start_ms, end_ms)


def refused_at(shown: Shown, slot: Slot) -> dict[str, Rows]:
    """The quarantine rows of a slot: see `quarantine_of`."""
    return quarantine_of(shown.store, *refused_by(shown.spec, slot.start_ms, slot.end_ms))


def quarantine_of(store: Store, days: Days, wanted: ds.Expression) -> dict[str, Rows]:
    """The number of quarantine rows by reason, the most frequent first, and samples of them.

    Args:
        store: the pipeline's tables.
        days: the days of the slots of late rows, and of the arrivals of malformed ones.
        wanted: a further condition.
    """
    table = store.table(QUARANTINE.name)
    if table is None:
        return {}
    names = _of_source(columns_of(table))
    dataset, of_days = days_of(table, QUARANTINE.name, days)
    counts, samples = Counter[str](), dict[str, list[tuple[Any, ...]]]()
    rows = scanned(dataset, of_days & wanted, ["reason", *names], at_once=_BATCH_ROWS)
    for batch in rows.to_batches():
        _count(batch, names, counts, samples)
    return {
        reason: Rows(tuple(names), tuple(samples[reason]), count)
        for reason, count in counts.most_common()
    }


def malformed_and_late(store: Store, day: date) -> dict[str, Rows]:
    """The quarantine rows of a day: late rows by their slots, malformed ones by arrival."""
    has_day = ds.field(PARTITIONS[QUARANTINE.name]).is_valid()
    return quarantine_of(store, Days(day, day), has_day)


def _count(
    batch: pa.RecordBatch,
    names: Sequence[str],
    counts: Counter[str],
    samples: dict[str, list[tuple[Any, ...]]],
) -> None:
    """Count some rows by reason, and keep the first of each."""
    for reason, count in counts_of(batch["reason"]).items():
        counts[reason] += count
        kept = samples.setdefault(reason, [])
        if len(kept) < SAMPLES:
            rows = batch.filter(ds.field("reason") == reason).slice(0, SAMPLES - len(kept))
            kept += (tuple(row[name] for name in names) for row in rows.to_pylist())


def _of_source(schema: pa.Schema) -> list[str]:
    """The columns of the landing rows, after the column of the lateness."""
    ours = {name for name in QUARANTINE.columns if name not in {"late_by_ms", "watermark_ms"}}
    ahead = [name for name in ("late_by_ms", "watermark_ms") if name in schema.names]
    return [*ahead, *(n for n in schema.names if n not in ours and n not in ahead)]


def results_of(shown: Shown, slot: Slot) -> Rows:
    """The windows of a slot; the sessions that start in it; or the pairs of an interval join."""
    spec = shown.spec
    published, table = spec.tables[spec.result], shown.store.table(spec.result)
    if table is None:
        return Rows((), (), 0)
    rows = started_in(published.start, slot.within)
    if spec.result == "windows" and not spec.window.merging:
        rows &= ds.field("window_start") == in_arrow(slot.start_ms)
        rows &= ds.field("window_end") == in_arrow(slot.end_ms)
    names = [name for name in columns_of(table).names if name not in _NOT_SHOWN]
    if spec.window.merging:
        names = ["window_start", "window_end", *names]
    days = Days(day_of(slot.start_ms), _last_day(slot))
    dataset, of_days = days_of(table, spec.result, days)
    scanner = scanned(dataset, of_days & rows, names, at_once=_BATCH_ROWS)
    first = scanner.head(MOST_WINDOWS).to_pylist()
    return Rows(
        tuple(names),
        tuple(tuple(row[name] for name in names) for row in first),
        int(dataset.count_rows(filter=of_days & rows)),
    )


def _last_day(slot: Slot) -> date:
    return day_of(max(slot.end_ms - 1, slot.start_ms))


def runs_into(shown: Shown, slot: Slot) -> list[Entry]:
    """The published steps of runs that have updated a slot, the newest first."""
    return [
        step
        for step in reversed(shown.state.published)
        if step.kind not in UPKEEP and step.touched is not None and slot.start_ms in step.touched
    ]
