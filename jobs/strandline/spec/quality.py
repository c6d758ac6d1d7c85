"""What a run must satisfy before anything is published."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from strandline.spec.values import Length, SpecModel


def _expectation(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"expect_[a-z0-9_]+", value):
        msg = "not an expectation; name one such as expect_column_values_to_not_be_null"
        raise ValueError(msg)
    return value


class ExpectationSpec(BaseModel):
    """One Great Expectations expectation; what is not named here are its own arguments."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    type: Annotated[str, BeforeValidator(_expectation)]
    table: Literal["windows", "completeness", "pairs"] = "windows"
    severity: Literal["critical", "warning", "info"] = "critical"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the expectation itself."""
        return dict(self.model_extra or {})


class Quality(SpecModel):
    """The judgement: late share, gaps, and the pipeline's own expectations.

    `max_removed_share`: the most of the published windows of a range that a run may remove without
    being told to; null: any.
    """

    max_late_share: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    max_removed_share: Annotated[float, Field(ge=0, le=1, strict=False)] | None = 0.2
    gaps: Literal["allow", "warn", "fail"] = "warn"
    slot: Length | None = None
    expectations: Annotated[tuple[ExpectationSpec, ...], Field(strict=False)] = ()

    @property
    def session_slot(self) -> int:
        """The slot of the calendar in ms for sessions; an hour if none is given."""
        return self.slot or 3_600_000
