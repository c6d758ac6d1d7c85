"""A scheduled run for a midnight before the frontier, answered from the ledger alone.

Such a run comes from clearing an old task, or from Airflow's backfill. Computing it would undo what
later runs, or a person, have published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from strandline.errors import InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import days_named, text_of
from strandline.pipeline.request.begin import begin_run, first_step
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.request.request import Request
from strandline.spec import PipelineSpec

ALREADY_PROCESSED = "already_processed"
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
        ALREADY_PROCESSED,
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
