"""The expectations behind the keys of `quality`: one row of figures, a column each.

Importing this module registers them, which Data Docs need as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl

from strandline.quality.audit.result import AuditResult
from strandline.quality.findings.check import EXPECTATIONS, Check


class ExpectMalformedShareToBeAtMost(ExpectColumnValuesToBeBetween):
    """The share of malformed rows among the rows of the run's arrival days. Table `range`."""

    description: str | None = "The share of malformed rows stays below quality.max_malformed_share."


class ExpectArrivalsToBeFresh(ExpectColumnValuesToBeBetween):
    """The time in ms from the last arrival to the horizon. Table `range`."""

    description: str | None = (
        "The last arrival lies within quality.fresh_within of the data cut-off."
    )


class ExpectVolumeToBeUsual(ExpectColumnValuesToBeBetween):
    """The number of arrival days with fewer or more records than is usual. Table `range`."""

    description: str | None = "Each arrival day has about as many records as its weekday has."


class ExpectNoSilentChannel(ExpectColumnValuesToBeBetween):
    """The number of silent channels. Table `range`."""

    description: str | None = "Every channel speaks within quality.silent_after."


class ExpectWatermarkNotToBeAhead(ExpectColumnValuesToBeBetween):
    """The time in ms by which the watermark is ahead of the horizon. Table `range`."""

    description: str | None = "The watermark is not ahead of the data cut-off."


class ExpectNoEventsAtTheEpoch(ExpectColumnValuesToBeBetween):
    """The number of channels with events of early 1970 alone. Table `range`."""

    description: str | None = "No channel has events of early 1970 alone."


def expectations_of(checks: Sequence[Check]) -> list[Expectation]:
    """The expectation of each check, over the column that holds its value."""
    return [_expectation_of(check) for check in checks]


def _expectation_of(check: Check) -> Expectation:
    limit: dict[str, Any] = {"column": check.column, "max_value": check.limit}
    kind = get_expectation_impl(EXPECTATIONS[check.name])
    return kind(severity=FailureSeverity(check.severity), **limit)


def results_of_passed(checks: Sequence[Check]) -> Iterator[AuditResult]:
    """The results of the checks that hold, which are not evaluated by Great Expectations."""
    for check in checks:
        if check.success:
            name = EXPECTATIONS[check.name]
            yield AuditResult(name, "range", check.severity, True, check.sentence)
