"""A pipeline's published rows lie by one window and one key: by others, it is another pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from strandline.errors import InputError
from strandline.lake.state import PipelineState
from strandline.spec import PipelineSpec

_PLACES = {"window": "window", "key": "source.key", "slot": "quality.slot"}


def require_same_layout(spec: PipelineSpec, state: PipelineState, *, recreate: bool) -> None:
    """A run publishes by the window and the key that its pipeline has published by before.

    Where a pipeline with one source has got a second one, the names of the key columns count.

    Args:
        spec: the pipeline.
        state: what is known of it by its ledger.
        recreate: whether the run replaces all that was published, as by another key it may.

    Raises:
        InputError: the pipeline's file says another window, key or slot of sessions by now.
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
            f"{_said(now.get(name))} is not what the pipeline has published by, which is "
            f"{_said(before.get(name))} (times in ms): with another window, key or quality.slot "
            "it is another pipeline",
            "give it a new name, or replace all that it has published: "
            f"strandline advance {spec.pipeline} --to INSTANT --recreate --reason TEXT",
        )


def _published_by(state: PipelineState) -> Mapping[str, Any] | None:
    """What was published last is laid out by; None: nothing is. A revert says nothing of it."""
    for entry in reversed(state.steps):
        publishes = entry.step in {"publishing", "published"} and entry.layout is not None
        if publishes and not state.has_step(entry.run_id, "dropped"):
            return entry.layout
    return None


def _said(value: Any) -> str:
    return json.dumps(value)
