"""How an operation is written for Sail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """How an operation is written.

    Attributes:
        whole: with `{0}`, `{1}` … for its operands, and `{filtered}` for the FILTER behind an
            aggregate; None: as it is.
        operands: the forms of its operands, each with `{0}` for the operand as it is.
        around: with `{0}` for the operation with these operands.
    """

    whole: str | None = None
    operands: tuple[str, ...] = ()
    around: str = "{0}"


Types = Sequence[str | None]
"""The types of an operation's operands; None: the engine does not know one."""
AS_IT_IS = Form()
"""The form of an operation that Sail computes as Spark does."""
