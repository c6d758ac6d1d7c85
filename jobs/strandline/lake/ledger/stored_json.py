"""A field of a ledger's step that is stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Json(Generic[T]):
    """A field that is stored as JSON, and parsed at its first use.

    Most steps are read for few fields, and the JSON of audits is long.
    """

    def __init__(self, of: Callable[[Any], T] = lambda parsed: parsed) -> None:
        """A field whose value is made from the parsed JSON."""
        self._of = of

    def __set_name__(self, owner: type, name: str) -> None:
        """The name of the field."""
        self._name = name

    @overload
    def __get__(self, step: None, owner: type) -> None: ...

    @overload
    def __get__(self, step: object, owner: type) -> T | None: ...

    def __get__(self, step: object | None, owner: type) -> T | None:
        """The value; None by default."""
        if step is None:
            return None
        value: T | str | None = vars(step).get(self._name)
        if isinstance(value, str):
            value = vars(step)[self._name] = self._of(json.loads(value))
        return value

    def __set__(self, step: object, value: T | str | None) -> None:
        """Set a value, or its JSON."""
        vars(step)[self._name] = value


def stored(value: Any) -> str:
    """The JSON of a value; a part that JSON does not know is written by `to_json`, or as text."""
    return json.dumps(value, default=_plain, separators=(",", ":"), ensure_ascii=False)


def _plain(part: Any) -> Any:
    return part.to_json() if hasattr(part, "to_json") else str(part)
