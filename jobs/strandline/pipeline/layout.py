"""A pipeline's published rows lie by one window and one key: by others, it is another pipeline."""

from __future__ import annotations

import json
from typing import Any

from strandline.errors import InputError
from strandline.lake.ledger import Entry
from strandline.spec import PipelineSpec
from strandline.spec.joined import TwoSourcesSpec

_PLACES = {"window": "window", "key": "source.key", "slot": "quality.slot"}


def require_same_layout(spec: PipelineSpec, entries: list[Entry], *, recreate: bool) -> None:
    """A run publishes by the window and the key that its pipeline has published by before.

    Of a ledger that did not keep these, or that of both sources of a join, the names of the key
    columns count.

    Args:
        spec: the pipeline.
        entries: its ledger.
        recreate: whether the run replaces all that was published, as by another key it may.

    Raises:
        InputError: the pipeline's file says another window, key or slot of sessions by now.
    """
    before = None if recreate else _published_by(entries)
    if before is None:
        return
    now, names = spec.layout, [*spec.source.key]
    if "window" not in before:
        now = {"key": sorted(names)}
    elif isinstance(spec, TwoSourcesSpec) and before["key"] == {name: name for name in names}:
        now |= {"key": before["key"]}
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


def _published_by(entries: list[Entry]) -> dict[str, Any] | None:
    """What was published last is laid out by; None: nothing is, or the ledger does not tell."""
    dropped = {entry.run_id for entry in entries if entry.step == "dropped"}
    for entry in reversed(entries):
        if entry.step not in {"publishing", "published"} or entry.run_id in dropped:
            continue
        if entry.layout is not None:
            return dict(entry.layout)
        if entry.publish is not None:
            return {"key": sorted(entry.publish["key"])}
    return None


def _said(value: Any) -> str:
    return json.dumps(value)
