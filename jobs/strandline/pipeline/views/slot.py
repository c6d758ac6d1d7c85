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

from strandline.engine.position.axis import Axis
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.channels import probe_order
from strandline.engine.watermark.crossings import Instants, known_before
from strandline.errors import InputError
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.store.days import PARTITIONS, Days, days_of, facts_of_files
from strandline.lake.store.reads import columns_of, counts_of, in_arrow, scanned, started_in
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import StoredTimeline
from strandline.model.intervals import DAY_MS, TimeRange, day_of, midnight_of, text_of
from strandline.pipeline.views.channels import largest_offer_before
from strandline.pipeline.views.late_of_newer import refused_by
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.slots import Slot, gaps_in_a_row, slots_of
from strandline.spec import PipelineSpec
from strandline.tables import QUARANTINE

_MOST_WINDOWS = 50
_SAMPLES = 5
"""The number of shown rows of quarantine for each reason."""
_BATCH_ROWS = 8_192
_NOT_SHOWN = {"window_start", "window_end", "window_date", "spec_fingerprint", "pair_date"}
_MOST_CHANNELS = 20
_NEVER_MS = 2**62


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
    """The quarantine rows of a slot: see `_quarantine_of`."""
    return _quarantine_of(shown.store, *refused_by(shown.spec, slot.start_ms, slot.end_ms))


def _quarantine_of(store: Store, days: Days, wanted: ds.Expression) -> dict[str, Rows]:
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
    return _quarantine_of(store, Days(day, day), has_day)


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
        if len(kept) < _SAMPLES:
            rows = batch.filter(ds.field("reason") == reason).slice(0, _SAMPLES - len(kept))
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
    days = Days(day_of(slot.start_ms), day_of(max(slot.end_ms - 1, slot.start_ms)))
    dataset, of_days = days_of(table, spec.result, days)
    scanner = scanned(dataset, of_days & rows, names, at_once=_BATCH_ROWS)
    first = scanner.head(_MOST_WINDOWS).to_pylist()
    return Rows(
        tuple(names),
        tuple(tuple(row[name] for name in names) for row in first),
        int(dataset.count_rows(filter=of_days & rows)),
    )


def runs_into(shown: Shown, slot: Slot) -> list[Entry]:
    """The published steps of runs that have updated a slot, the newest first."""
    return [
        step
        for step in reversed(shown.state.published)
        if step.kind not in UPKEEP and step.touched is not None and slot.start_ms in step.touched
    ]


def channels_passed(
    shown: Shown, fires_ms: int, closes_ms: int | None, fired_at_ms: int | None = None
) -> tuple[list[dict[str, Any]], int] | None:
    """The channels by when they passed a window, the last first, and their number.

    Channels that passed it after it had fired, since they joined later, come after the others.

    None: the records of channels alone do not decide when the watermark passes: it follows the
    clock, channels go idle or retire, or there are two inputs or results of another pipeline.

    Args:
        shown: the pipeline.
        fires_ms: the watermark at which the window fires.
        closes_ms: the watermark at which it closes; None: it never does.
        fired_at_ms: when it fired; None: it has not.

    Returns:
        Of each `channel` (empty: the only one) when its own watermark reached the end of the
        window (`fired_ms`), and the end of the allowed lateness (`closed_ms`); None: it has not.
    """
    start_ms = shown.state.clock_start_ms
    if start_ms is None or not _is_decided_by_channels(shown.spec):
        return None
    known = _crossings(shown, Axis.of(shown.spec, start_ms), fires_ms)
    if known is None:
        return None
    crossings, before_ms = known
    thresholds = [fires_ms] if closes_ms is None else [fires_ms, closes_ms]
    by_channel = crossings.seen_from(thresholds)
    found = [
        {"channel": channel, **_passed_at(crossings.axis, visible, before_ms)}
        for channel, visible in zip(crossings.order.channels, by_channel, strict=True)
    ]
    found.sort(key=lambda one: _last_first(one, fired_at_ms))
    return found[:_MOST_CHANNELS], len(found)


def _is_decided_by_channels(spec: PipelineSpec) -> bool:
    """Whether the records of channels alone decide when the watermark advances."""
    by_others = spec.has_two_sources or spec.reads_results_of is not None
    return spec.waits_for_all and not (by_others or spec.source.retired)


def _crossings(shown: Shown, axis: Axis, fires_ms: int) -> tuple[RecordCrossings, int] | None:
    """The channels' crossings since a window's end, and the instant up to which they are known.

    Only files of arrival days are opened on which a channel may have passed the window. None:
    nothing is observed.
    """
    spec, facts = shown.spec, facts_of_files(shown.store, "timeline")
    last = max((day for day in facts.get("day", ()) if day is not None), default=None)
    if last is None:
        return None
    before_ms = midnight_of(last) + DAY_MS
    is_declared = spec.source.declared_channels is not None
    days = Days(_first_day(facts, fires_ms) if is_declared else None)
    table = TimelineTable.open(shown.store, days.rows_of("timeline"))
    timeline = StoredTimeline(table, spec.timeline_fingerprint, before_ms)
    order = probe_order(timeline, spec, axis)
    return RecordCrossings(timeline, spec, axis, order=order), before_ms


def _passed_at(axis: Axis, visible: Instants, before_ms: int) -> dict[str, int | None]:
    known = known_before(visible, before_ms, axis)
    at_ms = [
        axis.event_ms(int(one), 0) if is_known else None
        for one, is_known in zip(visible, known, strict=True)
    ]
    return {"fired_ms": at_ms[0], "closed_ms": at_ms[1] if len(at_ms) > 1 else None}


def _first_day(facts: dict[str, list[Any]], fires_ms: int) -> date | None:
    """The first arrival day to read: earlier arrivals offered no such watermark.

    None: all days, since a clock was once ahead.
    """
    first = day_of(fires_ms)
    is_ahead = largest_offer_before(facts, first) >= fires_ms
    return None if is_ahead else first


def _last_first(one: dict[str, Any], fired_at_ms: int | None) -> tuple[bool, int, int, str]:
    fired_ms, closed_ms = (
        _NEVER_MS if one[edge] is None else one[edge] for edge in ("fired_ms", "closed_ms")
    )
    is_after = fired_at_ms is not None and fired_ms > fired_at_ms
    return is_after, -fired_ms, -closed_ms, one["channel"]
