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
    reports = lake.reports(spec.pipeline)
    if reports is None or not reports.parent.is_dir():
        return
    with suppress(OSError):
        reports.mkdir(exist_ok=True)
        place = reports / _FILE
        beside = place.with_suffix(".new")
        beside.write_text(json.dumps({"rules": spec.spec_fingerprint, **advice}, default=str))
        beside.replace(place)


def kept_advice(spec: PipelineSpec, lake: Lake) -> dict[str, Any] | None:
    """The last advice; None: there is none, or it was made with other settings than the present."""
    reports = lake.reports(spec.pipeline)
    found = None if reports is None else document_in(reports / _FILE)
    return None if found is None or found.get("rules") != spec.spec_fingerprint else found


def document_in(file: Path) -> dict[str, Any] | None:
    """The JSON document in a file; None: there is none that can be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
