"""Notes about windows that are rebuilt ahead of a scheduled run, as results have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import EVERYTHING, text_of
from strandline.model.overrides import in_words
from strandline.pipeline.plan.plan import notes_of_closures
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec


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
