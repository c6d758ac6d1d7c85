"""The last advice for a pipeline, stored beside its reports for the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from strandline.lake.store.lake import Lake
from strandline.spec.pipeline import PipelineSpec

_FILE = "advice.json"


def keep_advice(spec: PipelineSpec, lake: Lake, advice: Mapping[str, Any]) -> None:
    """Store an advice if the lake is a folder; errors are ignored, as no run depends on it.

    Nothing that a run does goes by it.
    """
    place = _place(spec, lake)
    if place is None or not place.parent.parent.is_dir():
        return
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        beside = place.with_suffix(".new")
        beside.write_text(json.dumps({"rules": spec.spec_fingerprint, **advice}, default=str))
        beside.replace(place)


def kept_advice(spec: PipelineSpec, lake: Lake) -> dict[str, Any] | None:
    """The last advice; None: there is none, or it was made with other settings than the present."""
    place = _place(spec, lake)
    found = None if place is None else document_in(place)
    return None if found is None or found.get("rules") != spec.spec_fingerprint else found


def document_in(file: Path) -> dict[str, Any] | None:
    """The JSON document in a file; None: there is none that can be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _place(spec: PipelineSpec, lake: Lake) -> Path | None:
    if lake.folder is None:
        return None
    return lake.folder / spec.pipeline / "_reports" / _FILE
