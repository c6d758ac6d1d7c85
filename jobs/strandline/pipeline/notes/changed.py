"""Notes about changes since earlier runs: of arrival days, by reverts, of results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from itertools import zip_longest

from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.repeated_files import repeated_rows
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.model.command import in_words
from strandline.model.intervals import EVERYTHING, days_named, known_text_of, text_of
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.plan import Plan, notes_of_closures
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec
from strandline.visible import number_of


def of_days_to_come(days: Sequence[date]) -> Iterator[str]:
    """A note about landed rows of arrival days that have not begun."""
    if days:
        yield (
            f"rows have landed of {days_named(days)}, which {'have' if len(days) > 1 else 'has'} "
            "not begun: they are not read yet"
        )


def of_repeated_loads(spec: PipelineSpec, log: LandingLog, days: Collection[date]) -> Iterator[str]:
    """A note about rows of newly observed days that look like a load that was repeated.

    None where duplicates are malformed, or results of another pipeline are read.
    """
    if spec.reads_results_of is not None:
        return
    for name, side in spec.sides.items():
        if side.source.deduplicate is not None:
            continue
        found = repeated_rows(log.of_sides[name], side.source, days)
        if found:
            rows = number_of(sum(found.values()), "row")
            yield (
                f"{rows} of {days_named(sorted(found))} in files of {side.source.table} that have "
                "the size, the number of rows and the column statistics of another file of the "
                "day: if a load was repeated, its records count twice. Compare them, and if their "
                f"rows are the same, {_without_repeated_rows(spec)}"
            )


def _without_repeated_rows(spec: PipelineSpec) -> str:
    """The ways out of a repeated load; two sources cannot be deduplicated."""
    removed = (
        "remove one of both, and let the next run count what is left "
        f"(strandline advance {spec.pipeline} --to INSTANT --accept-loss REASON)"
    )
    if spec.has_two_sources:
        return removed
    return f"{removed}, or name what identifies a record in source.deduplicate"


def of_changed_days(spec: PipelineSpec, observation: Observation, plan: Plan) -> Iterator[str]:
    """Notes about changed days that had been observed, and what the run does about them."""
    status, since_ms = observation.status, plan.scope.older_since_ms
    if recreated := sorted(status.changes.recreated & {*observation.new_days}):
        table = spec.source.table if spec.reads_results_of else "the landing table"
        yield (
            f"{table} was created again (its id is another one): "
            f"{number_of(len(recreated), 'arrival day')} ({days_named(recreated)}) observed again, "
            "and the differences are published"
        )
    if plan.to_recompute:
        what = "left to the next scheduled run"
        if plan.settles:
            what = "recomputed by this run"
        elif plan.missing:
            what = "to recompute once the missing rows have landed again, or are accepted as lost"
        days = days_named(plan.to_recompute)
        yield f"{days} changed after being observed, or landed late: {what}"
    if plan.to_recompute and since_ms is not None:
        yield f"everything that arrived from {text_of(since_ms)} on is evaluated again"
    if accepted := sorted(status.accepted & status.changes.missing):
        yield (
            f"rows of {days_named(accepted)} have disappeared from {spec.input_in_words} since "
            "they were observed: the loss is accepted (--accept-loss), once this run has published"
        )
    elsewhere = sorted(status.missing - set(plan.missing))
    if elsewhere:
        yield (
            f"rows of {days_named(elsewhere)} are missing from {spec.input_in_words} since they "
            "were observed; nothing of this run needs them"
        )


def of_reverts(spec: PipelineSpec, plan: Plan, state: PipelineState) -> Iterator[str]:
    """A note about each reverted run whose windows this run computes again, or leaves reverted."""
    horizon_ms, within = plan.clock.horizon_ms, plan.scope.windows
    for done, back in state.taken_back:
        known_ms = done.horizon_ms
        touched = done.touched or within
        if done.kind == "revert" or known_ms is None or not touched.overlaps(within):
            continue
        if _is_published_again(state, done, back):
            continue
        reverted = f"what run {done.run_id} had published was reverted by run {back.run_id}"
        if known_ms > horizon_ms:
            again = f"strandline advance {spec.pipeline} --to {text_of(known_ms)}"
            yield (
                f"{reverted}, and stays so: this run uses what arrived before "
                f"{text_of(horizon_ms)} alone; {again} computes it again"
            )
        else:
            why = f" ({back.reason})" if back.reason else ""
            yield f"{reverted}{why}: this run computes its windows again"


def of_less_known(plan: Plan, state: PipelineState, known_ms: int | None) -> Iterator[str]:
    """A note if results of `source.pipeline` that this pipeline has used are no longer published.

    A run of that pipeline was reverted, or the pipeline was removed and built again.

    Args:
        plan: the run's plan.
        state: the pipeline's state, by its ledger.
        known_ms: the instant up to which the results are known; None: the source is a landing
            table.
    """
    used_ms = _used_up_to(state)
    horizon_ms = plan.clock.horizon_ms
    if known_ms is not None and used_ms is not None and used_ms > horizon_ms:
        yield (
            f"the last run used results of source.pipeline up to {text_of(used_ms)}, which has "
            f"them up to {known_text_of(horizon_ms)} now: changes by later results are withdrawn"
        )


def _used_up_to(state: PipelineState) -> int | None:
    """The largest horizon of the last scheduled run in force and of later runs by hand.

    None if there is none.
    """
    last = [n for n, run in enumerate(state.in_force) if run.kind == "advance"][-1:] or [0]
    horizons = (run.horizon_ms for run in state.in_force[last[0] :])
    return max((ms for ms in horizons if ms is not None), default=None)


def _is_published_again(state: PipelineState, done: Entry, back: Entry) -> bool:
    """Whether a run in force has published into the range of a run that was reverted before it."""
    since = state.published_into(done.range) if done.range is not None else []
    return any(
        entry.position > back.position and (entry.horizon_ms or 0) >= (done.horizon_ms or 0)
        for entry in since
    )


def of_rebuilt_first(
    spec: PipelineSpec, asked: Sequence[Request], run_ids: Sequence[str], state: PipelineState
) -> Iterator[str]:
    """Notes about closed windows that a scheduled run rebuilds first, as results have changed.

    Args:
        spec: the pipeline.
        asked: the requested run for each range.
        run_ids: the ids of these runs; empty if they are not run.
        state: the pipeline's state before these runs, by its ledger.
    """
    for request, run_id in zip_longest(asked, run_ids):
        if request.range is None:
            continue
        start, end = text_of(request.range.start_ms), text_of(request.range.end_ms)
        for one in state.overridden:
            if one.windows.overlaps(request.range):
                yield _of_overridden(one, request, f"{start} to {end}", spec)
        yield from notes_of_closures(state.closures_in(request.range), request.range)
        is_all = request.range.start_ms == EVERYTHING.start_ms
        rebuilt = f"all windows before {end}" if is_all else f"{start} to {end}"
        if run_id is not None:
            yield f"{request.reason}: run {run_id} has first rebuilt {rebuilt}"
            continue
        yield f"{request.reason}: a run first rebuilds {rebuilt}, as shown first"


def _of_overridden(one: OverriddenRange, request: Request, rebuilt: str, spec: PipelineSpec) -> str:
    """A note about windows published with overridden rules that are rebuilt first.

    By their own rules (the request has them), or by the file's.
    """
    published = (
        f"{request.reason}: windows from {text_of(one.windows.start_ms)} to "
        f"{text_of(one.windows.end_ms)}, published by run {one.run_id} with "
        f"{in_words(one.overrides)}, are recomputed"
    )
    if request.overrides:
        return f"{published} by these rules where they lie within {rebuilt} (overridden: keep)"
    why = spec.why_overridden_is_redone or "they were still open at its data cut-off"
    return f"{published} by the pipeline's file where they lie within {rebuilt} ({why})"
