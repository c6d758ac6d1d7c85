"""Older slots with new late records: combines their published counts with the run's counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.engine.kind import kind_of
from strandline.engine.position.grid import Grid
from strandline.lake.publish.pieces_by_key import in_pieces
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import (
    dataset_of,
    files_started_in,
    rows_in_days,
    rows_of,
    started_in,
)
from strandline.lake.store.schema import arrow_schema
from strandline.model.intervals import TimeRange, day_of, instant_of
from strandline.pipeline.plan.counts import COUNTS, accepted_by_window, refused_by_newest
from strandline.pipeline.plan.late_records import LateRecords
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import Accepted
from strandline.tables import COMPLETENESS, QUARANTINE

_REFUSAL_KEY = ["record_id", "slot_start"]
_REFUSAL = [*_REFUSAL_KEY, "reason"]
_TYPES = arrow_schema({name: QUARANTINE.columns[name] for name in _REFUSAL})


def published_before(ctx: Context, older: pd.DataFrame, grid: Grid) -> dict[int, Accepted]:
    """The number of records that older windows accepted: they were final and published before."""
    if ctx.store.table(ctx.spec.result) is None:
        return {}
    windows_count = not kind_of(ctx.spec).cross_slots and ctx.spec.windows_count_all
    accepted = _accepted_by_windows(ctx, older, grid) if windows_count else {}
    if windows_count and grid.one_window_each:
        return accepted
    id_ = f"slot_{grid.id_edge}"
    slots = {instant_of(slot[id_]): slot for slot in published_slots(ctx, older)}
    if not windows_count:
        return {id_: _accepted_in(slot) for id_, slot in slots.items()}
    return accepted | {
        id_: replace(accepted.get(id_, Accepted()), missed_pairs=slot["missed_pairs"])
        for id_, slot in slots.items()
    }


def _accepted_by_windows(ctx: Context, older: pd.DataFrame, grid: Grid) -> dict[int, Accepted]:
    """The number of records in the published windows of some slots."""
    table = ctx.store.table("windows")
    if table is None:
        return {}
    id_ = f"window_{grid.id_edge}"
    within, files = _starting("window_start", older)
    return accepted_by_window(rows_of(dataset_of(table, files), within, [id_, *COUNTS]), id_)


def refused_in_all(
    ctx: Context, evaluated_again: TimeRange, grid: Grid, older: pd.DataFrame, staged: Part
) -> Counter[tuple[int, str]]:
    """The number of records refused by older slots, in this run or before; each counts once.

    Args:
        ctx: the run.
        evaluated_again: the range of arrivals that this run evaluates.
        grid: the grid of the windows.
        older: the slots.
        staged: the late records that the run has staged.
    """
    table = ctx.store.table(QUARANTINE.name)
    if table is None:
        return Counter()
    before = LateRecords(_span_of(older), evaluated_again, outside=True).rows(ctx, table, _REFUSAL)
    every = staged.rows(columns=_REFUSAL)
    if (first := next(before, None)) is not None:
        every = _each_once(chain(every, [first], before))
    refused = refused_by_newest(every, grid)
    wanted = set(older["window_id"].tolist())
    return Counter({key: n for key, n in refused.items() if key[0] in wanted})


def _each_once(refusals: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of refused records without repetitions, in pieces that fit into memory.

    A record may be in quarantine and staged again.
    """
    pieces = in_pieces([(rows.cast(_TYPES) for rows in refusals)], _REFUSAL_KEY)
    for (rows,) in pieces:
        once = rows.group_by(_REFUSAL_KEY).aggregate([("reason", "min")])
        yield once.rename_columns(_REFUSAL)


def _accepted_in(slot: dict[str, Any]) -> Accepted:
    """The number of records accepted into a published slot."""
    every = slot["on_time"] + slot["late_accepted"]
    counts = (slot["late_accepted"], every, slot["missed_pairs"])
    return Accepted(every, *counts, unfired=slot.get("unfired") or 0)


def published_slots(ctx: Context, older: pd.DataFrame) -> list[dict[str, Any]]:
    """The published calendar rows from the first to the last of some slots."""
    table = ctx.store.table(COMPLETENESS.name)
    if table is None:
        return []
    within, files = _starting("slot_start", older)
    rows: list[dict[str, Any]] = dataset_of(table, files).to_table(filter=within).to_pylist()
    return rows


def closed_before(ctx: Context, older: pd.DataFrame) -> pd.DataFrame:
    """Older slots as the rules of their time have closed them, with these rules' fingerprints.

    Rules that were edited since close no slot again: its windows stay as they are published.
    """
    then = _closed_by_other_rules(ctx, older)
    kept = older.reset_index(drop=True).astype({"state": str})
    kept["spec_fingerprint"] = ctx.spec.spec_fingerprint
    slots = [*zip(kept["slot_ms"].tolist(), kept["slot_end_ms"].tolist(), strict=True)]
    places = [place for place, slot in enumerate(slots) if slot in then]
    if places:
        rows = [then[slots[place]] for place in places]
        kept.loc[places, "state"] = [row["state"] for row in rows]
        kept.loc[places, "fire_at_ms"] = [instant_of(row["fired_at"]) for row in rows]
        kept.loc[places, "close_at_ms"] = [instant_of(row["closed_at"]) for row in rows]
        kept.loc[places, "spec_fingerprint"] = [row["spec_fingerprint"] for row in rows]
    return kept


def _closed_by_other_rules(
    ctx: Context, older: pd.DataFrame
) -> dict[tuple[int, int], dict[str, Any]]:
    """The published rows of older slots that other rules have closed, by start and end in ms."""
    present = ctx.spec.spec_fingerprint
    if all(run.spec_fingerprint == present for run in ctx.ledger.state().published):
        return {}
    table = ctx.store.table(COMPLETENESS.name)
    if table is None:
        return {}
    days = {day_of(start_ms) for start_ms in older["slot_ms"].tolist()}
    by_other_rules = pc.field("spec_fingerprint") != present
    closed = by_other_rules & (pc.field("state") == "closed")
    return {
        (instant_of(row["slot_start"]), instant_of(row["slot_end"])): row
        for rows in rows_in_days(table, COMPLETENESS.partition, days)
        for row in rows.filter(closed).to_pylist()
    }


def _starting(name: str, older: pd.DataFrame) -> tuple[ds.Expression, str]:
    """The filters for published rows, and their files, from the first to the last of some slots."""
    within = _span_of(older)
    return started_in(name, within), files_started_in(name, within)


def _span_of(older: pd.DataFrame) -> TimeRange:
    """The range from the start of the first slot up to and including the start of the last one."""
    return TimeRange(int(older["slot_ms"].min()), int(older["slot_ms"].max()) + 1)
