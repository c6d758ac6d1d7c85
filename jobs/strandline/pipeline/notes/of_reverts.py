"""Notes about runs that were reverted, of the pipeline and of its source."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.lake.ledger.ledger import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import text_of
from strandline.pipeline.plan.plan import Plan
from strandline.spec.pipeline import PipelineSpec


def of_reverts(spec: PipelineSpec, plan: Plan, state: PipelineState) -> Iterator[str]:
    """Notes about reverted runs over slots of the range, computed again or left as they are."""
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
            yield f"{reverted}{why}: this run computes it again"


def of_less_known(plan: Plan, state: PipelineState, known_ms: int | None) -> Iterator[str]:
    """A note if a revert of the other pipeline withdrew results that this one has used.

    Args:
        plan: the run's plan.
        state: the pipeline's state, by its ledger.
        known_ms: the instant up to which the results are known; None: the source is a landing
            table.
    """
    if known_ms is not None and state.has_later_horizon(plan.clock.horizon_ms):
        yield (
            "source.pipeline was reverted to an earlier horizon than this pipeline has published "
            f"by: changes by results after {text_of(plan.clock.horizon_ms)} are withdrawn"
        )


def _is_published_again(state: PipelineState, done: Entry, back: Entry) -> bool:
    """Whether a run in force has published into the range of a run that was reverted before it."""
    since = state.published_into(done.range) if done.range is not None else []
    return any(
        entry.position > back.position and (entry.horizon_ms or 0) >= (done.horizon_ms or 0)
        for entry in since
    )
