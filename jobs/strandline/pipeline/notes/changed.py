"""Notes about runs that were reverted, of the pipeline and of its source."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.lake.ledger.ledger import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import known_text_of, text_of
from strandline.pipeline.plan.plan import Plan
from strandline.spec.pipeline import PipelineSpec


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
