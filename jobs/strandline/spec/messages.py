"""The errors of pydantic as lines with place, value and way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import ErrorDetails

_TAGGED = {
    ("watermark",),
    ("watermark", "emit"),
    ("window",),
    ("window", "session"),
    ("trigger",),
    ("evictor",),
    ("sources", "left", "channels"),
    ("sources", "right", "channels"),
    ("sources", "left", "watermark"),
    ("sources", "right", "watermark"),
    ("sources", "left", "watermark", "emit"),
    ("sources", "right", "watermark", "emit"),
    ("source", "channels"),
}
"""The keys with values of several shapes: in pydantic's locations the shape's name follows."""

_OF_A_ZONE = {"timezone", "time_zone", "tz", "zone", "dst"}
"""Keys that users try for windows in local time."""
_NO_ZONE = (
    "windows are aligned to UTC and one fixed offset, as Flink's are, and do not follow summer "
    "time; remove it, and give an offset: {tumbling: 1d, offset: -1h} begins days at 23:00 UTC, "
    "midnight at UTC+1 (the guide, Windows in local time, has what offsets cannot do)"
)

_A_MAP = "not a map of keys; write `name: value` lines below it, or remove it"
_A_LIST = "not a list; write [a, b]"

_PROBLEMS = {
    "dict_type": _A_MAP,
    "model_type": _A_MAP,
    "model_attributes_type": _A_MAP,
    "list_type": _A_LIST,
    "tuple_type": _A_LIST,
    "string_type": "not a text; quote it",
    "bool_type": "not a boolean; write true or false",
    "float_type": "not a number; give one such as 0.02",
    "float_parsing": "not a number; give one such as 0.02",
    "invalid_key": "not a name; quote it",
}


def line_of(origin: str, detail: ErrorDetails) -> str:
    """One error as `file: YAML path: value is problem; way out`."""
    kind, context = detail["type"], detail.get("ctx", {})
    path = _path(detail["loc"])
    value: Any = detail["input"]
    if kind == "located":
        path.append(context["path"])
        value = context["value"]
    place = f"{origin}: {'.'.join(path) or '(top)'}"
    if kind == "missing":
        return f"{place}: missing; add it"
    if kind == "extra_forbidden":
        if path[-1].lower() in _OF_A_ZONE:
            return f"{place}: no such key ({_shown(value)}): {_NO_ZONE}"
        return f"{place}: no such key ({_shown(value)}); check its spelling, or remove it"
    problem = _problem(detail, context)
    if problem.startswith("missing"):
        return f"{place}: {problem}"
    return f"{place}: {_shown(value)} is {problem}"


def _problem(detail: ErrorDetails, context: dict[str, Any]) -> str:
    if detail["type"] in _PROBLEMS:
        return _PROBLEMS[detail["type"]]
    match detail["type"]:
        case "literal_error":
            return f"not a choice here; write {context['expected']}"
        case "greater_than_equal":
            return f"too small; give at least {context['ge']:g}"
        case "less_than_equal":
            return f"too large; give at most {context['le']:g}"
    return str(detail["msg"]).removeprefix("Value error, ")


def _path(location: Sequence[int | str]) -> list[str]:
    """The YAML path of pydantic's location, without the names of shapes and marks of keys."""
    path: list[str] = []
    of_a_shape: tuple[str, ...] = ()
    for part in location:
        place = tuple(path)
        if place in _TAGGED and place != of_a_shape:
            of_a_shape = place
        elif part != "[key]":
            name = str(part)
            path.append(name if name.isprintable() else repr(name)[1:-1])
    return path


def _shown(value: Any) -> str:
    """A value in a form like YAML; a long value is shortened."""
    plain = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return plain[value]
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
