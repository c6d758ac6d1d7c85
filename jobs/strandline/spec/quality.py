"""The key `quality`: the rules that a run must meet before it is published."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from strandline.spec import described
from strandline.spec.values import Length, SpecModel, parse_length, refuse_at, text_like
from strandline.tables import MALFORMED_REASONS

DEFAULT: Literal["default"] = "default"
"""The value of a limit that the program chooses; `null` means no limit."""
_Default: TypeAlias = Literal["default"]
Severity: TypeAlias = Literal["allow", "warn", "fail"]


_expectation = text_like(
    re.compile(r"expect_[a-z0-9_]+"),
    "not an expectation; name one such as expect_column_values_to_not_be_null",
)


class ExpectationSpec(BaseModel):
    """An expectation of Great Expectations; keys without a field here are its arguments."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    type: Annotated[str, BeforeValidator(_expectation)]
    table: Literal["windows", "completeness", "pairs"] = "windows"
    severity: Literal["critical", "warning", "info"] = "critical"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the expectation."""
        return dict(self.model_extra or {})


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        msg = "not a share; give a number from 0 to 1"
        raise ValueError(msg)
    return float(value)


def _malformed_share(value: Any) -> Any:
    """A share of all rows, or a share for each of some reasons."""
    if value is None or value == DEFAULT:
        return value
    if not isinstance(value, dict):
        return _share(value)
    for reason, share in value.items():
        if reason not in MALFORMED_REASONS:
            problem = f"not a reason; it is one of {', '.join(MALFORMED_REASONS)}"
            refuse_at(str(reason), reason, problem)
        try:
            _share(share)
        except ValueError as error:
            refuse_at(str(reason), share, str(error))
    return {reason: float(share) for reason, share in value.items()}


def _length_or_default(value: Any) -> Any:
    return value if value is None or value == DEFAULT else parse_length(value)


_Limit = Annotated[
    int | _Default | None, BeforeValidator(_length_or_default), WithJsonSchema(described.LIMIT)
]


class Quality(SpecModel):
    """The quality rules for the data of a run, and the pipeline's own expectations.

    Attributes:
        max_late_share: the largest share of a run's records that may be late; null: no limit.
        gaps: the treatment of empty slots between others: allow, warn or fail.
        slot: the length of the calendar's slots, if it does not follow from the windows.
        expectations: any expectations of Great Expectations, each a map with its `type`.
        max_removed_share: the largest share of the published windows of a range that a run may
            remove without `--allow-removals`; null: no limit.
        max_malformed_share: the largest share of malformed rows on a run's arrival days; or a share
            for each of some reasons.
        fresh_within: the longest time, in ms, from the last arrival to the horizon.
        volume: the treatment of arrival days with far fewer or more records than usual.
        silent_after: the longest time, in ms, from a channel's last arrival to the horizon.
        watermark_ahead: the treatment of a watermark ahead of the horizon.
        events_of_1970: the treatment of channels whose last arrival day has events of early 1970
            alone, as of seconds that are read as milliseconds.
    """

    max_late_share: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    max_removed_share: Annotated[float, Field(ge=0, le=1, strict=False)] | None = 0.2
    max_malformed_share: Annotated[
        float | dict[str, float] | _Default | None,
        BeforeValidator(_malformed_share),
        WithJsonSchema(described.SHARES),
    ] = DEFAULT
    gaps: Severity = "warn"
    fresh_within: _Limit = DEFAULT
    volume: Severity = "warn"
    silent_after: _Limit = DEFAULT
    watermark_ahead: Severity = "warn"
    events_of_1970: Severity = "warn"
    slot: Length | None = None
    expectations: Annotated[tuple[ExpectationSpec, ...], Field(strict=False)] = ()

    @property
    def session_slot(self) -> int:
        """The slot of the calendar in ms for sessions; an hour if none is given."""
        return self.slot or 3_600_000
