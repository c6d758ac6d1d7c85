"""status: how far a pipeline is, by ledger and calendar; no Spark."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from strandline.lake.ledger.ledger import OF_RUNS
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.lacking import days_lacking
from strandline.lake.store.days import Days, read_days, slots_beyond_rows
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import counts_of
from strandline.lake.store.store import Store
from strandline.model.intervals import text_or_none
from strandline.pipeline.request.layout import EditedRules
from strandline.pipeline.views.calendar_rows import rows_on
from strandline.pipeline.views.deep import books_of_all, findings_of_books
from strandline.pipeline.views.runs import run_line
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import shown_days, totals
from strandline.pipeline.views.slots import COUNTS
from strandline.quality.findings.check import in_order, state_line
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec
from strandline.tables import UNFIRED_COLUMN


def status_of(
    spec: PipelineSpec,
    lake: Lake,
    since: date | None = None,
    until: date | None = None,
    *,
    now_ms: int | None = None,
    deep: bool = False,
) -> dict[str, Any]:
    """The state of the pipeline: frontier, last run, slots by state, records by outcome.

    Slots, records and quarantine are of some days (see `shown_days`), `totals` of all.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        since: the first of these days; None: the trailing ones.
        until: the last of them; None: the last there is.
        now_ms: the current time, for missed schedules; None: not checked.
        deep: whether to read all tables, and compare them with each other.

    Raises:
        InputError: nothing has run yet, or the last day is before the first one.
    """
    shown = Shown.of(spec, lake)
    store, state, watermark = shown.store, shown.state, shown.watermark
    days = shown_days(spec, store, since, until)
    books = books_of_all(shown) if deep else None
    findings = in_order([*findings_of_books(books or ()), *shown.findings(now_ms)])
    processed, closed = text_or_none(state.frontier_ms), text_or_none(shown.closed_ms)
    return {
        "pipeline": spec.pipeline,
        "state": state_line(findings),
        "lake": lake.root,
        "frontier": processed,
        "processed_up_to": processed,
        "closed_up_to": closed,
        "first_open": closed,
        "last_run": _last_run(state),
        "notice": shown.notice,
        "findings": [finding.to_json() for finding in findings],
        "books_of_tables": None if books is None else len(books),
        "overlapping": spec.window.overlapping,
        "two_sources": spec.has_two_sources,
        "days": days.named,
        **_of_days(spec, store, days, may_lack=state.may_lack_quarantine(spec.quarantine_days)),
        "totals": totals(spec, store),
        "versions": store.versions(),
        "watermark": None if watermark is None else _watermark(watermark),
        "lacking": _lacking(spec, store),
        **shown.unfinished,
        **_edited(spec, state),
    }


def _last_run(state: PipelineState) -> dict[str, Any]:
    """The line of the last run of windows, see `run_line`."""
    newest = next(step for step in reversed(state.steps) if step.kind in OF_RUNS)
    return run_line(state, state.runs[newest.run_id])


def _edited(spec: PipelineSpec, state: PipelineState) -> dict[str, Any]:
    """Whether the pipeline's file is that of the last run in force, and the keys edited since."""
    run = state.last_by_file
    last = spec.spec_fingerprint if run is None else run.spec_fingerprint
    return {
        "spec_is_published": last == spec.spec_fingerprint,
        "edited_since": EditedRules.of(spec, state).since(last),
    }


def _of_days(spec: PipelineSpec, store: Store, days: Days, *, may_lack: bool) -> dict[str, Any]:
    """The counts of some days: slots by state, records by outcome, quarantine by reason.

    `quarantine_removed`: the number of late and no_window records whose rows an erasure or upkeep
    has removed; `may_lack`: whether one has removed rows.
    """
    slots, only_late, records = _calendar(spec, store, days)
    quarantine = _quarantine(store, days)
    removed = sum(records[name] - quarantine.get(name, 0) for name in ("late", "no_window"))
    return {
        "slots": slots,
        "slots_only_late": only_late,
        "records": records,
        "quarantine": quarantine,
        "quarantine_removed": max(removed, 0) if may_lack else 0,
    }


def _calendar(
    spec: PipelineSpec, store: Store, days: Days
) -> tuple[dict[str, int], int, dict[str, int]]:
    """The number of slots by state and with only late records; of records by outcome."""
    counts = [*COUNTS]
    asked = ["state", "gap", "slots", *counts, *UNFIRED_COLUMN]
    rows = rows_on(spec, store, asked, days)
    if rows is None:
        return {}, 0, dict.fromkeys(counts, 0)
    counts += [name for name in UNFIRED_COLUMN if name in rows.column_names]
    states = pc.if_else(rows["gap"], "gap", rows["state"])
    by_state = counts_of(states)
    if "slots" in rows.column_names:  # a row of gaps may stand for many slots
        by_state = _with_several(by_state, rows["slots"])
    accepted = pc.add(rows["on_time"], rows["late_accepted"])
    not_late = pc.add(accepted, rows["no_window"])
    only_late = pc.and_not(pc.equal(not_late, 0), rows["gap"])
    records = {name: int(pc.sum(rows[name]).as_py() or 0) for name in counts}
    return by_state, int(pc.sum(only_late).as_py() or 0), records


def _with_several(by_state: dict[str, int], slots: pa.ChunkedArray) -> dict[str, int]:
    more = slots_beyond_rows(slots)
    return by_state | {"gap": by_state["gap"] + more} if more else by_state


def _lacking(spec: PipelineSpec, store: Store) -> dict[str, list[dict[str, str]]]:
    """The ranges of windows that were published before the pipeline had a column, by column."""
    names = [*spec.source.key, *spec.contents]
    found = days_lacking(store.table("windows"), names, spec.spec_fingerprint)
    return {
        name: [{"start": str(first), "end": str(end)} for first, end in ranges]
        for name, ranges in found.items()
    }


def _watermark(found: HeldBack) -> dict[str, Any]:
    """The combined watermark and the channel that holds it."""
    combined_ms = found.watermark_ms
    return {
        "combined": text_or_none(combined_ms),
        "at_least": found.at_least,
        "held_by": found.held_by,
        "since": found.since,
        "ahead_ms": found.ahead_ms,
        "behind_ms": found.behind_ms,
        "idle": list(found.idle),
        "arrived_before": found.arrived_before,
        "summary": str(found),
    }


def _quarantine(store: Store, days: Days) -> dict[str, int]:
    rows = read_days(store, "quarantine", ["reason"], days)
    return {} if rows is None else dict(sorted(counts_of(rows["reason"]).items()))
