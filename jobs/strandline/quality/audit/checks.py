"""The expectations behind the keys of `quality`: one row of figures, a column each.

Importing this module registers them, which Data Docs need as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity

from strandline.quality.audit.result import AuditResult
from strandline.quality.findings.check import EXPECTATIONS, Check


class ExpectMalformedShareToBeAtMost(ExpectColumnValuesToBeBetween):
    """The share of the rows of the run's arrival days that are malformed. Table `range`."""

    description: str | None = "The share of malformed rows stays below quality.max_malformed_share."


class ExpectArrivalsToBeFresh(ExpectColumnValuesToBeBetween):
    """How many ms before the horizon the last record arrived. Table `range`."""

    description: str | None = "The last arrival lies within quality.fresh_within of the horizon."


class ExpectVolumeToBeUsual(ExpectColumnValuesToBeBetween):
    """How many arrival days have fewer or more records than their weekday. Table `range`."""

    description: str | None = "Each arrival day has about as many records as its weekday has."


class ExpectNoSilentChannel(ExpectColumnValuesToBeBetween):
    """How many channels no longer speak. Table `range`."""

    description: str | None = "Every channel speaks within quality.silent_after."


class ExpectWatermarkNotToBeAhead(ExpectColumnValuesToBeBetween):
    """How many ms the watermark is ahead of the horizon. Table `range`."""

    description: str | None = "The watermark is not ahead of the horizon."


_KINDS: dict[str, type[ExpectColumnValuesToBeBetween]] = {
    kind.expectation_type: kind
    for kind in (
        ExpectMalformedShareToBeAtMost,
        ExpectArrivalsToBeFresh,
        ExpectVolumeToBeUsual,
        ExpectNoSilentChannel,
        ExpectWatermarkNotToBeAhead,
    )
}


def expectations_of(checks: Sequence[Check]) -> list[Expectation]:
    """The expectation of each check, over the column that holds its value."""
    return [
        _KINDS[EXPECTATIONS[check.name]](
            column=check.column,
            max_value=check.limit,
            severity=FailureSeverity(check.severity),
        )
        for check in checks
    ]


def held(checks: Sequence[Check]) -> Iterator[AuditResult]:
    """The results of the checks that hold, which Great Expectations is not asked about."""
    for check in checks:
        if check.success:
            name = EXPECTATIONS[check.name]
            yield AuditResult(name, "range", check.severity, True, check.sentence)
