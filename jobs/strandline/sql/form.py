"""How an operation is written for Sail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.sql.column_types import NOT_ON_SAIL


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


def checked(is_known: str, problem: str) -> str:
    """The form of an operand that fails where Sail has another result than Spark.

    Args:
        is_known: the condition, of `{0}`, that Sail has the same result.
        problem: the result that Sail does not have.
    """
    fails = f"raise_error('{NOT_ON_SAIL}{problem}')"
    return f"CASE WHEN {is_known} THEN {{0}} WHEN {{0}} IS NOT NULL THEN {fails} END"


def first_as(form: str, types: Types) -> Form:
    """An operation whose first operand has another form."""
    return Form(operands=(form, *("{0}" for _ in types[1:])))
