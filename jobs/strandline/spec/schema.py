"""The JSON schema of pipeline files, for completion and checks in editors.

It describes keys, kinds and formats. Rules about several keys, and expressions, are checked only by
`strandline validate`.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from strandline.spec.chained import ChainedSpec
from strandline.spec.join import IntervalJoinSpec, WindowJoinSpec
from strandline.spec.pipeline import PipelineSpec


def json_schema() -> dict[str, Any]:
    """The schema of a pipeline file in draft 7, which all editors support."""
    kinds = (PipelineSpec, ChainedSpec, IntervalJoinSpec, WindowJoinSpec)
    references, definitions = models_json_schema([(kind, "validation") for kind in kinds])
    plain, chained, by_interval, by_window = (references[kind, "validation"] for kind in kinds)
    has_two = {"anyOf": [{"required": ["sources"]}, {"required": ["join"]}]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A pipeline of Strandline",
        "type": "object",
        "if": has_two,
        "then": {"if": _says("join", "interval"), "then": by_interval, "else": by_window},
        "else": {"if": _says("source", "pipeline"), "then": chained, "else": plain},
        **definitions,
    }


def _says(part: str, key: str) -> dict[str, Any]:
    """The schema of a file in which a part has a key."""
    inside = {"type": "object", "required": [key]}
    return {"type": "object", "required": [part], "properties": {part: inside}}
