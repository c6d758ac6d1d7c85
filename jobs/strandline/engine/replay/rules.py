"""The trigger and the evictor of a pipeline, in the form that a replay uses."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.replay.operator_io import EndedRange, Rules
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Continuous, Count, Delta


def rules_of(spec: PipelineSpec, closures: Iterable[EndedRange] = ()) -> Rules:
    """The rules of a pipeline's windows; `closures`: see `Rules`."""
    trigger, evictor = spec.fires_by, spec.evicts_by
    return Rules(
        at_end=trigger.fires_at_end,
        interval_ms=trigger.continuous if isinstance(trigger, Continuous) else None,
        count=trigger.count if isinstance(trigger, Count) else None,
        delta=trigger.delta if isinstance(trigger, Delta) else None,
        purging=trigger.purging,
        last=evictor.count if isinstance(evictor, CountEvictor) else None,
        newest_ms=evictor.reach_ms if isinstance(evictor, TimeEvictor) else None,
        near=evictor.delta if isinstance(evictor, DeltaEvictor) else None,
        after=evictor is not None and evictor.after,
        merging=spec.window.merging,
        allowed_lateness_ms=spec.allowed_lateness if spec.window.merging else 0,
        closures=tuple(closures),
    )
