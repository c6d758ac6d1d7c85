"""What a pipeline remembers, as `status` shows it: what is owed, lost and open, by which rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from strandline.lake.ledger import Entry, frontier, owed_days
from strandline.lake.store import Store, dataset_of
from strandline.lake.timeline import channel_days, read_source
from strandline.lake.timeline_rows import TimelineTable
from strandline.model.intervals import DAY_MS, day_of, instant_of, text_of
from strandline.quality.report.held_back_by import holding
from strandline.spec import PipelineSpec
from strandline.spec.window import Session

_INSTANT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class RulesRange:
    """Neighbouring published slots that were published under the same rules."""

    spec_fingerprint: str
    start_ms: int
    end_ms: int
    slots: int


def remembered(spec: PipelineSpec, store: Store, entries: list[Entry]) -> dict[str, Any]:
    """What the runs before have left for those to come.

    Returns:
        `owed`: the arrival days that are still to be judged again; `lost`: those that were observed
        with more rows than the landing table had at the last run; `first_open`: the first slot that
        is not closed; `rules`: the ranges of slots by the fingerprint that they were published
        under; `open_behind_watermark`: the slots that are open although the watermark at the
        frontier has passed them, which must be none; `sessions_across_rules`: the sessions that
        hang across a border of rules.
    """
    ranges = _ranges_by_rules(store)
    lost = next((entry.lost for entry in reversed(entries) if entry.lost is not None), ())
    opened = next((entry for entry in reversed(entries) if entry.step == "published"), None)
    first_open_ms = None if opened is None else opened.first_open_ms
    return {
        "owed": [day.isoformat() for day in owed_days(entries)],
        "lost": [day.isoformat() for day in lost],
        "first_open": None if first_open_ms is None else text_of(first_open_ms),
        "rules": [
            {
                "spec_fingerprint": one.spec_fingerprint,
                "start": text_of(one.start_ms),
                "end": text_of(one.end_ms),
                "slots": one.slots,
            }
            for one in ranges
        ],
        "open_behind_watermark": _open_behind_watermark(spec, store, frontier(entries)),
        "sessions_across_rules": _across(spec, store, ranges),
    }


def _ranges_by_rules(store: Store) -> list[RulesRange]:
    table = store.table("completeness")
    if table is None:
        return []
    columns = ["slot_start", "slot_end", "spec_fingerprint"]
    slots = sorted(
        dataset_of(table).to_table(columns=columns).to_pylist(),
        key=lambda slot: (slot["slot_start"], slot["slot_end"]),
    )
    ranges = []
    for fingerprint, found in groupby(slots, key=lambda slot: slot["spec_fingerprint"]):
        of_range = list(found)
        start_ms = instant_of(of_range[0]["slot_start"])
        end_ms = max(instant_of(slot["slot_end"]) for slot in of_range)
        ranges.append(RulesRange(str(fingerprint), start_ms, end_ms, len(of_range)))
    return ranges


def _open_behind_watermark(spec: PipelineSpec, store: Store, reached_ms: int | None) -> int:
    """The open slots that the watermark has passed by the days before the frontier."""
    table = store.table("completeness")
    if table is None or reached_ms is None:
        return 0
    timeline = TimelineTable.open(store)
    settled = channel_days(timeline)
    last_day: date = day_of(reached_ms - DAY_MS)
    # a candidate that the last tick of a day has not shown yet may wait beyond the frontier
    settled = settled[settled["arrival_date"] <= last_day].assign(pending_ms=None)
    found = holding(settled, spec, read_source(timeline, before_ms=reached_ms))
    if found is None or found.watermark_ms is None:
        return 0
    passed = pa.scalar((found.watermark_ms + 1) * 1000, _INSTANT)
    behind = (ds.field("state") == "open") & (ds.field("slot_end") <= passed)
    return int(dataset_of(table).count_rows(filter=behind))


def _across(spec: PipelineSpec, store: Store, ranges: list[RulesRange]) -> int:
    """The published sessions that begin under one set of rules and reach into another's slots."""
    table = store.table("windows")
    if table is None or not isinstance(spec.window, Session):
        return 0
    windows, count = dataset_of(table), 0
    for _, later in pairwise(ranges):
        border = pa.scalar(later.start_ms * 1000, _INSTANT)
        across = (ds.field("window_start") < border) & (ds.field("window_end") > border)
        count += int(windows.count_rows(filter=across))
    return count
