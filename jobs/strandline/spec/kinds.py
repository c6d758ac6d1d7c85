"""Values of several kinds, each written as a map whose first key is its kind: `{tumbling: 1h}`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strandline.spec.values import SpecModel


class Empty(SpecModel):
    """`{}`: a kind without keys of its own."""


def kind_among(kinds: Sequence[str]) -> Callable[[Any], str | None]:
    """The kind of a raw or parsed value among some kinds; None if it is none of them."""

    def kind(value: Any) -> str | None:
        keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", ())
        # a kind that is a word of Python's own is a field with an underscore
        return next((name for name in kinds if name in keys or f"{name}_" in keys), None)

    return kind


def checked_kind(what: str, kinds: Sequence[str]) -> Callable[[Any], Any]:
    """A validator that a value has one of some kinds.

    Raises:
        ValueError: it has another kind; the message names the allowed kinds.
    """
    kind = kind_among(kinds)

    def checked(value: Any) -> Any:
        if kind(value) is None:
            msg = f"not a kind of {what}; the first key is one of {', '.join(kinds)}"
            raise ValueError(msg)
        return value

    return checked
