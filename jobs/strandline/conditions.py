"""Conditions of columns or fields, many as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar


class _Condition(Protocol):
    def __or__(self, other: Self, /) -> Self: ...


C = TypeVar("C", bound=_Condition)
"""A condition of Spark, or of Arrow."""


def any_of(conditions: Iterable[C], none: C) -> C:
    """Whether any of some conditions holds, in pairs of pairs.

    Spark's analyzer ends a chain of some thousand conditions with an overflow of the stack, since
    each of them lies one level deeper than the next one. Arrow takes some 5,000 in either form.

    Args:
        conditions: the conditions.
        none: the result without any.
    """
    level = [*conditions]
    while len(level) > 1:
        pairs = (level[at : at + 2] for at in range(0, len(level), 2))
        level = [pair[0] | pair[1] if pair[1:] else pair[0] for pair in pairs]
    return level[0] if level else none
