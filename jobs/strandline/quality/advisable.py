"""The pipelines for which `strandline advise` has no answer, and why."""

from __future__ import annotations

from strandline.engine.position.grid import WIDEST_MS
from strandline.errors import InputError
from strandline.spec import PipelineSpec

_TRY = "try single settings: strandline plan {pipeline} --start … --end …, with the file edited"


def why_not_advisable(spec: PipelineSpec) -> InputError | None:
    """Why the losses of every setting cannot be counted in one pass; None: they can.

    They cannot for two sources, for results, for windows that are not on a grid or leave gaps,
    without a watermark, or if it is never past a window for good.
    """
    if spec.has_two_sources:
        place, problem = "sources", "advice is for one source; this pipeline joins two"
        way_out = "write a pipeline of the same windows over each source, and ask for its advice"
    elif spec.reads_results_of is not None:
        place, problem = "source.pipeline", f"its watermark is that of {spec.reads_results_of}"
        way_out = f"ask there: strandline advise {spec.reads_results_of}"
    elif spec.window.merging:
        place, way_out = "window", _TRY.format(pipeline=spec.pipeline)
        problem = "a late record of a session may be saved by the session itself"
    elif spec.window.all_time:
        place, problem = "window", "its windows have no end, so no record is late"
        way_out = "no record is lost, so no setting has to be chosen"
    elif spec.window.leaves_gaps:
        place, way_out = "window", _TRY.format(pipeline=spec.pipeline)
        problem = "its windows leave gaps, and records in gaps are counted separately"
    elif spec.watermark.strategy == "none":
        place, problem = "watermark.strategy", "without a watermark no record is late"
        way_out = "choose a strategy, such as bounded_out_of_orderness, and ask again"
    elif spec.total_lateness_ms > WIDEST_MS:
        place, problem = "allowed_lateness", "so long that no window is ever closed"
        way_out = (
            "no record is lost; to see the loss with less, write a smaller setting and ask again"
        )
    else:
        return None
    return InputError(f"{spec.pipeline}: {place}", problem, way_out)
