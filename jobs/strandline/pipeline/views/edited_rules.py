"""The rules of a pipeline that were edited since rows were published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.lake.ledger.state import PipelineState
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class EditedRules:
    """The rules of a pipeline beside the rules of its earlier runs.

    They are not known of runs of earlier versions, whose fingerprint covers all rules at once.

    Attributes:
        fingerprint: the fingerprint of the pipeline's rules.
        now: these rules, by their key.
        earlier: the rules of earlier runs by their fingerprint.
    """

    fingerprint: str
    now: Mapping[str, Any]
    earlier: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, spec: PipelineSpec, state: PipelineState) -> EditedRules:
        """The rules of a pipeline, and of the runs in its ledger."""
        layouts = ((step.spec_fingerprint, step.layout or {}) for step in reversed(state.steps))
        earlier = {of: layout["rules"] for of, layout in layouts if of and layout.get("rules")}
        return cls(spec.spec_fingerprint, spec.rules, earlier)

    def since(self, fingerprint: str) -> list[str] | None:
        """The rules that differ from earlier ones, as `["allowed_lateness"]`.

        None: they are not known.
        """
        if fingerprint == self.fingerprint:
            return []
        then, now = self.earlier.get(fingerprint), self.now
        if then is None:
            return None
        return [key for key in {**now, **then} if now.get(key) != then.get(key)]
