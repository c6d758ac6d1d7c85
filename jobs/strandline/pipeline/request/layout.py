"""The layout of a pipeline's published rows: one window, one key, and rules that may be edited.

With another window or key it is another pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.errors import InputError
from strandline.lake.ledger.state import PipelineState
from strandline.spec import PipelineSpec

_PLACES = {"window": "window", "key": "source.key", "slot": "quality.slot"}


def require_same_layout(spec: PipelineSpec, state: PipelineState, *, recreate: bool) -> None:
    """Refuse to publish with another window or key than the published rows have.

    If a pipeline has got a second source, the names of the key columns are compared.

    Args:
        spec: the pipeline.
        state: the pipeline's state, by its ledger.
        recreate: whether the run replaces everything published; then another key is allowed.

    Raises:
        InputError: the pipeline's file now has another window, key or slot of sessions.
    """
    before = None if recreate else _published_by(state)
    if before is None:
        return
    now, of_one_source = spec.layout, {name: name for name in spec.source.key}
    if spec.has_two_sources and before["key"] == of_one_source:
        now |= {"key": of_one_source}
    other = [name for name in _PLACES if now.get(name) != before.get(name)]
    if other:
        name = other[0]
        raise InputError(
            f"{spec.pipeline}: {_PLACES[name]}",
            f"{json.dumps(now.get(name))} differs from the setting of the published rows, "
            f"{json.dumps(before.get(name))} (times in ms): with another window, key or "
            "quality.slot it is another pipeline",
            "give it a new name, or replace all that it has published: "
            f"strandline advance {spec.pipeline} --to INSTANT --recreate --reason TEXT",
        )


def _published_by(state: PipelineState) -> Mapping[str, Any] | None:
    """The layout of the published rows; None: nothing is published. A revert does not change it."""
    for entry in reversed(state.steps):
        publishes = entry.step in {"publishing", "published"} and entry.layout is not None
        if publishes and not state.has_step(entry.run_id, "dropped"):
            return entry.layout
    return None


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
