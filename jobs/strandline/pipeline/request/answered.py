"""Requests that the ledger answers without a run, and without Spark.

A scheduled run for a midnight before the frontier comes from clearing an old task, or from
Airflow's backfill. Computing it would undo what later runs, or a person, have published. A run that
could change nothing repeats a published one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from strandline.errors import InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.publications import earlier_of
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.store import PUBLISHED, Store
from strandline.model.intervals import days_named, text_of
from strandline.pipeline.request.begin import begin_run, first_step
from strandline.pipeline.request.driver import program
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request, of_overrides
from strandline.quality.findings.check import findings_in
from strandline.quality.findings.freshness import fresh_within_ms
from strandline.spec import PipelineSpec

_ALREADY_PROCESSED = "already_processed"
"""The status of the outcome, and the name of the step in the ledger."""


def already_processed(spec: PipelineSpec, opened: OpenedLog, request: Request) -> Outcome | None:
    """The outcome of a scheduled run for a midnight before the frontier; None: it is not before it.

    Nothing is computed, and nothing but the ledger is written; a dry run writes nothing.

    Args:
        spec: the pipeline.
        opened: the log of its landing table, and its ledger.
        request: the requested run.
    """
    if request.kind != "advance":
        return None
    known_until_ms, ledger = opened.known_until_ms, opened.ledger
    request = request.ready(spec.source.ready_after).known(known_until_ms)
    state = ledger.state()
    require_no_earlier_recreation(request, state, known_until_ms)
    reached_ms = state.frontier_within(known_until_ms)
    if reached_ms is None or request.until_ms >= reached_ms or request.recreate:
        return None
    notes = [
        f"already processed up to {text_of(reached_ms)}; nothing is computed. To compute older "
        f"windows again, reprocess their range: strandline backfill {spec.pipeline} --start … "
        "--end …",
        *_to_recompute(spec, opened.log, state, reached_ms),
    ]
    step = first_step(
        spec,
        request,
        _ALREADY_PROCESSED,
        horizon_ms=request.until_ms,
        message="; ".join(notes),
    )
    run = begin_run(ledger, step, request.run_key, dry_run=request.dry_run)
    return replace(
        Outcome.of(spec.pipeline, run),
        dry_run=request.dry_run,
        frontier_ms=reached_ms,
        notes=[*request.notes, *notes],
    )


def require_no_earlier_recreation(
    request: Request, state: PipelineState, known_until_ms: int | None
) -> None:
    """Refuse a scheduled run with `--recreate` that ends before the published frontier.

    Args:
        request: the requested run.
        state: the pipeline's state, by its ledger.
        known_until_ms: see `frontier_within`.

    Raises:
        InputError: it would end earlier, and the windows after its end would be removed.
    """
    reached_ms = state.frontier_within(known_until_ms)
    recreates = request.kind == "advance" and request.recreate
    if not recreates or reached_ms is None or request.until_ms >= reached_ms:
        return
    raise InputError(
        "--recreate",
        f"all is processed up to {text_of(reached_ms)}, and this run would end at "
        f"{text_of(request.until_ms)}: the windows after that would go",
        f"give --to {text_of(reached_ms)}, or a later instant",
    )


def _to_recompute(
    spec: PipelineSpec, log: LandingLog | None, state: PipelineState, reached_ms: int
) -> Sequence[str]:
    """Why a run to the frontier would recompute something; empty: it would not."""
    if unfinished := state.unfinished:
        what = f"run {unfinished.run_id} has begun to publish and not ended"
    elif days := state.days_to_recompute:
        what = f"{days_named(days)} changed or landed late"
    elif (changed := _changed_in_landing(spec, log, state, reached_ms)) is not None:
        named = days_named(changed) if changed else "processed days"
        what = f"rows of {named} have changed in {spec.input_in_words}"
    else:
        return ()
    heals = f"strandline advance {spec.pipeline} --to {text_of(reached_ms)}"
    return (f"to be recomputed: {what}; {heals} does it",)


def _changed_in_landing(
    spec: PipelineSpec, log: LandingLog | None, state: PipelineState, reached_ms: int
) -> Sequence[date] | None:
    """The processed days whose rows may have changed since the run of the frontier read them.

    None if no row has changed; empty if it is not known which rows have.
    """
    read = [run for run in state.in_force if run.completes_ms == reached_ms]
    if log is None or not read or read[-1].landing_version is None:
        return None
    if log.has_rows_read_by(read[-1], spec.source.arrival_date, reached_ms):
        return None
    return log.days_with_other_files(read[-1], spec.source.arrival_date, reached_ms)


def request_fingerprint(spec: PipelineSpec, request: Request, input_id: str) -> str:
    """A hash of everything that decides what a run publishes, except the rows and earlier runs.

    It covers the request; the pipeline's file except `schedule`, `spark`, `engine` and
    `quarantine_days`, but with the limit of freshness that a schedule implies; the landing table's
    id; and the program. Two runs with one fingerprint over the same rows publish the same.

    Args:
        spec: the pipeline.
        request: the requested run.
        input_id: the id of the landing table, or of results (`LandingLog.input_id`).
    """
    within = request.range
    decides = {
        "kind": request.kind,
        "range": None if within is None else [within.start_ms, within.end_ms],
        "to": None if request.to_ms is None else request.until_ms,
        "as_of": request.as_of_ms,
        "close": request.close,
        "reopen": request.reopen,
        "accept_loss": request.accept_loss is not None,
        "file": spec.model_dump(mode="json", exclude={"schedule", "spark", "quarantine_days"}),
        "fresh_within": fresh_within_ms(spec.quality.fresh_within, spec.cron),
        "rules": [spec.spec_fingerprint, spec.timeline_fingerprint],
        "landing": input_id,
        "program": program(),
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


def run_repeated(spec: PipelineSpec, opened: OpenedLog, request: Request) -> Entry | None:
    """The published run that a request would only repeat; None: it may change something.

    None also where this is not certain, as with a landing table of a catalog.

    Args:
        spec: the pipeline.
        opened: the log of its landing table, and its ledger.
        request: the requested run.
    """
    log, state = opened.log, opened.ledger.state()
    if request.dry_run or request.recreate or log is None:
        return None
    asked = request_fingerprint(spec, request, log.input_id)
    last = next((e for e in reversed(state.published) if e.request_fingerprint == asked), None)
    if last is None or state.unfinished or state.days_to_recompute:
        return None
    since = [entry for entry in state.published if entry.position > last.position]
    closed_since = any(entry.closed or entry.reopened for entry in since)
    if closed_since or state.published_since(replace(last, base=last.position)):
        return None
    if earlier_of(state.frontier_ms, last.frontier_ms) != last.frontier_ms:
        return None  # a revert, or a run with an earlier data cut-off, has moved it back since
    unwritten = _are_as_published(opened.ledger.store, state)
    return last if unwritten and _same_input(spec, request, log, last) else None


def repeat(spec: PipelineSpec, opened: OpenedLog, request: Request) -> Outcome | None:
    """Write a ledger step that names the run which a request repeats; None: there is none.

    Nothing is computed, and nothing but the ledger is written.
    """
    request = request.ready(spec.source.ready_after).known(opened.known_until_ms)
    last, ledger = run_repeated(spec, opened, request), opened.ledger
    if last is None:
        return None
    step = first_step(
        spec,
        request,
        "repeated",
        range=last.range,
        horizon_ms=last.horizon_ms,
        landing_version=last.landing_version,
        landing_id=last.landing_id,
        base=last.position,
        overrides=request.overrides or None,
        message=f"run {last.run_id} has published the same result",
        request_fingerprint=last.request_fingerprint,
    )
    named = begin_run(ledger, step, request.run_key)
    return replace(
        Outcome.of(spec.pipeline, named),
        frontier_ms=ledger.state().frontier_ms,
        versions=ledger.store.versions(),
        notes=[
            *request.notes,
            *of_overrides(request.overrides, spec),
            f"nothing can change: run {last.run_id} has published exactly this, from the same rows "
            "by the same rules; --force computes it again",
        ],
        findings_before=findings_in(last.audit or (), last.run_id),
        repeats=last.run_id,
    )


def _are_as_published(store: Store, state: PipelineState) -> bool:
    """Whether the published tables are at the versions that the ledger recorded."""
    then = state.versions or {}
    return all(store.version(name) == then.get(name) for name in PUBLISHED)


def _same_input(spec: PipelineSpec, request: Request, log: LandingLog, last: Entry) -> bool:
    """Whether the landing still has the rows that a run has read, up to its horizon."""
    if last.horizon_ms is None:
        return False
    # by hand the last arrival of all decides what the horizon is
    by_arrivals = request.kind == "backfill" and request.as_of_ms is None
    known_before_ms = None if by_arrivals else last.horizon_ms
    return log.has_rows_read_by(last, spec.source.arrival_date, known_before_ms)
