"""Descriptions in the JSON schema of pipeline files, taken from the models' docstrings."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from strandline.tables import MALFORMED_REASONS

_ATTRIBUTES = re.compile(r"\n\s*Attributes:\n")
_ONE = re.compile(r"^ {4}(\w+): ", re.MULTILINE)

LENGTH = r"\s*-?[0-9]+(ms|s|m|h|d)\s*"
"""Pattern of a whole number with a unit of time."""
DURATION = {"type": "string", "pattern": f"^{LENGTH}$", "examples": ["200ms", "5m", "1h"]}
"""Schema of a duration."""
LATENESS = DURATION | {"pattern": f"^{LENGTH.replace('-?', '')}$"}
"""Schema of a duration of zero or more."""
TWO_BOUNDS = {"type": "array", "items": DURATION, "minItems": 2, "maxItems": 2}
"""Schema of the bounds of an interval join."""
LIMIT = {"anyOf": [{"enum": ["default", None]}, LATENESS]}
"""Schema of a limit as a duration: `default` is chosen by the program, null means no limit."""
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
SHARES = {
    "anyOf": [
        {"enum": ["default", None]},
        _SHARE,
        {
            "type": "object",
            "additionalProperties": _SHARE,
            "propertyNames": {"enum": [*MALFORMED_REASONS]},
        },
    ]
}
"""Schema of the largest malformed share: of all rows, or by reason."""
SETTINGS = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
"""Schema of Spark's settings."""
TEXT: dict[str, Any] = {"type": ["string", "integer"]}
"""Schema of a text; whole numbers need no quotes."""
EXPRESSION = {"type": ["string", "integer"], "pattern": r"\S"}
"""Schema of a column's name, or of a Spark SQL expression."""
INSTANT = {"type": "string", "pattern": r"^\s*[0-9]{4}-", "examples": ["2013-01-15T06:00:00Z"]}
"""Schema of an ISO-8601 instant or date."""
KEY = {
    "anyOf": [
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "object", "additionalProperties": EXPRESSION},
    ]
}
"""Schema of a list of columns, or of a map of names to expressions."""
COLUMNS = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": TEXT, "minItems": 1}],
}
"""Schema of a list of columns; a single column needs no list."""
CHANNELS = {
    "anyOf": [
        {"enum": ["discovered", None]},
        {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
    ]
}
"""Schema of the channels of a source."""
SIZE = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]+\s*([kKmMgGtT]?[bB])?\s*$"},
    ]
}
"""Schema of a number of bytes."""


def at_least(least: int) -> dict[str, Any]:
    """Schema of a whole number with a minimum."""
    return {"type": "integer", "minimum": least}


def text(pattern: str) -> dict[str, Any]:
    """Schema of a text that matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^({pattern})$"}


def with_descriptions(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Write the docstring of a model, and the descriptions of its fields, into its schema.

    A field is described in the section `Attributes:` of the model, or of a base class.
    """
    first = model.__doc__ or ""
    schema["description"] = _lines_joined(_ATTRIBUTES.split(first)[0])
    schema.pop("title", None)
    described = _attributes_of(model)
    for name, field in model.model_fields.items():
        property_schema = schema["properties"][field.alias or name]
        property_schema.pop("title", None)
        if text_of_field := described.get(name.removesuffix("_")):
            property_schema["description"] = text_of_field
        is_duration = property_schema.get("type") == "string" and field.annotation is int
        if is_duration and "default" in property_schema:
            property_schema["default"] = f"{field.default}ms"


def _attributes_of(model: type[BaseModel]) -> dict[str, str]:
    """The texts of the sections `Attributes:` of a model and its base classes."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        _, *sections = _ATTRIBUTES.split(vars(one).get("__doc__") or "")
        for section in sections:
            _, *parts = _ONE.split("\n".join(_unindented(section)))
            found |= dict(zip(parts[::2], map(_lines_joined, parts[1::2]), strict=True))
    return found


def _unindented(section: str) -> list[str]:
    """The lines of a section, with each name indented by four spaces."""
    lines = section.rstrip().splitlines()
    depth = len(lines[0]) - len(lines[0].lstrip())
    return [f"    {line[depth:]}" for line in lines]


def _lines_joined(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text.strip())
