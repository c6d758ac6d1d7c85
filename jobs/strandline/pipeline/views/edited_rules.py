"""The rules of a pipeline that were edited since rows were published."""

from __future__ import annotations

from strandline.lake.ledger.state import PipelineState
from strandline.spec import PipelineSpec


def edited_since(
    spec: PipelineSpec, state: PipelineState, spec_fingerprint: str
) -> list[str] | None:
    """The rules that differ from earlier ones, as `["allowed_lateness"]`; None: not known.

    They are not known of runs of earlier versions, whose fingerprint covers all rules at once.

    Args:
        spec: the pipeline.
        state: its state, by its ledger.
        spec_fingerprint: the fingerprint of the earlier rules.
    """
    if spec_fingerprint == spec.spec_fingerprint:
        return []
    by_these = (step for step in state.steps if step.spec_fingerprint == spec_fingerprint)
    rules = (step.layout.get("rules") for step in by_these if step.layout is not None)
    then, now = next(filter(None, rules), None), spec.rules
    return None if then is None else [key for key in now | then if now.get(key) != then.get(key)]
