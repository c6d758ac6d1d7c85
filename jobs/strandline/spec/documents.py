"""YAML documents read with limits, and the errors in them as lines with place and way out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic_core import ErrorDetails
from yaml.composer import Composer

from strandline.errors import InputError

_MOST_BYTES = 256 * 2**10
_MOST_LEVELS = 40
_MOST_NODES = 20_000
"""The largest number of values in a document; values repeated by an alias count again."""
_MOST_BITS = 128
_NOT_DECIMAL = re.compile(r"[-+]?0[0-9A-Za-z_]|.*:|(?![-+]?[0-9]{1,3}(_[0-9]{3})+$).*_")
"""Whole numbers of YAML 1.1 that are not decimal as written: `010`, `0x1F`, `1:30`, `1_1`.

Thousands may be set apart: `1_000` is a number."""
_BOOLEAN, _TEXT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"


class _Loader(Composer, yaml.CSafeLoader):
    """A YAML loader with limits; a text that only looks like a date (2013-13-01) stays a text.

    libyaml parses, as PyYAML's own parser takes ten times as long; its nodes are composed here.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self._level = self._nodes = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count levels and values while reading, and refuse a document beyond the limits."""
        is_alias = self.check_event(yaml.AliasEvent)
        mark: Any = self.peek_event().start_mark  # type: ignore[union-attr]
        before = self._nodes
        self._level += 1
        if self._level > _MOST_LEVELS:
            _refuse(f"nested deeper than {_MOST_LEVELS} levels", mark)
        node = super().compose_node(parent, index)
        self._level -= 1
        if is_alias and id(node) not in self._sizes:
            _refuse("an alias inside the value that it repeats", mark)
        self._nodes += self._sizes[id(node)] if is_alias else 1
        if self._nodes > _MOST_NODES:
            _refuse(f"more than {_MOST_NODES:,} values, with those that aliases repeat", mark)
        self._sizes.setdefault(id(node), self._nodes - before)
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        """A text without lone surrogates, which could not be written again."""
        text = super().construct_scalar(node)
        if any("\ud800" <= character <= "\udfff" for character in str(text)):
            _refuse("half of a character (a surrogate)", node.start_mark)
        return str(text)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> Any:
        """A whole number of limited length; other forms of YAML 1.1 (010, 1:30, 1_1) are text.

        YAML 1.1 would make another number of them than the written one, such as 8, 90 and 11.
        """
        if _NOT_DECIMAL.match(node.value):
            return self.construct_scalar(node)
        number = super().construct_yaml_int(node)
        if number.bit_length() > _MOST_BITS:
            _refuse(f"a number of more than {_MOST_BITS} bits", node.start_mark)
        return int(number)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A map; a key `on` is the text, as in YAML 1.2, and not the boolean of YAML 1.1."""
        for key_node, _ in node.value:
            if key_node.value == "on" and key_node.tag == _BOOLEAN:
                key_node.tag = _TEXT
        return super().construct_mapping(node, deep)

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> Any:
        """A date or an instant; else the unchanged text, which is validated later."""
        try:
            return super().construct_yaml_timestamp(node)
        except (ValueError, OverflowError):
            return self.construct_scalar(node)


class _UniqueKeyLoader(_Loader):
    """A YAML loader that refuses duplicate keys, of which PyYAML silently uses the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A map without duplicate keys."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                _refuse(f"{key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


for _loader in (_Loader, _UniqueKeyLoader):
    for _kind in ("int", "timestamp"):
        _loader.add_constructor(
            f"tag:yaml.org,2002:{_kind}", getattr(_loader, f"construct_yaml_{_kind}")
        )


def read_document(path: Path, *, unique_keys: bool = True) -> Any:
    """The value of a YAML file.

    Args:
        path: the file.
        unique_keys: whether duplicate keys are refused; else the last one counts.

    Raises:
        InputError: the file cannot be read, is not YAML, or exceeds the limits of size and depth.
    """
    try:
        with path.open("rb") as file:
            written = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(
            path.name, f"cannot be read ({error.strerror})", "check the path"
        ) from None
    return document_of(written, origin=path.name, unique_keys=unique_keys)


def document_of(written: bytes, *, origin: str, unique_keys: bool = True) -> Any:
    """The value of a YAML document; see `read_document`. Errors name `origin`."""
    if len(written) > _MOST_BYTES:
        raise InputError(origin, f"larger than {_MOST_BYTES:,} bytes", "no pipeline is")
    loader = _UniqueKeyLoader if unique_keys else _Loader
    try:
        return yaml.load(written.decode("utf-8"), Loader=loader)
    except Exception as error:  # noqa: BLE001 - on odd scalars PyYAML throws what Python throws
        raise InputError(origin, f"not YAML: {_mistake_in(error)}", "correct it there") from None


def _refuse(problem: str, mark: yaml.Mark) -> None:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _mistake_in(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return str(error)
    return f"a value is not valid for its type ({type(error).__name__}: {error})"


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
