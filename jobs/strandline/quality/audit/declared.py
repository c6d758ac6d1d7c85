"""The expectations of a pipeline's file: behind the keys of `quality`, and those it declares.

Importing this module registers those of the keys, which Data Docs need as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from great_expectations.exceptions.exceptions import ExpectationNotFoundError
from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl
from pydantic.v1 import ValidationError

from strandline.errors import InputError
from strandline.quality.audit.plain import columns_of
from strandline.quality.audit.result import AuditResult
from strandline.quality.findings.check import EXPECTATIONS, Check
from strandline.spec import PipelineSpec
from strandline.spec.join import SIDES
from strandline.spec.joined import PAIRS
from strandline.spec.quality import ExpectationSpec


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


_ENGINES = {"windows": "Spark", "completeness": "Pandas", "pairs": "Spark"}
_NOT_ARGUMENTS = {"id", "rendered_content", "result_format", "catch_exceptions", "batch_id"}
_OF_SIDES = tuple(f"{name}_" for name in SIDES)
"""The prefixes of the landing tables' columns in `pairs`, which are unknown before a read."""
_ONE_COLUMN = ("column", "column_A", "column_B")


def declared_expectations(spec: PipelineSpec, table: str) -> list[Expectation]:
    """The declared expectations of a table, in the order of the YAML.

    Raises:
        InputError: a type does not exist or does not apply to its table, or arguments are wrong.
    """
    made = [_made(spec, place, one) for place, one in enumerate(spec.quality.expectations)]
    chosen = zip(spec.quality.expectations, made, strict=True)
    return [expectation for declared, expectation in chosen if declared.table == table]


def _made(spec: PipelineSpec, number: int, declared: ExpectationSpec) -> Expectation:
    place = f"{spec.pipeline}: quality.expectations.{number}"
    try:
        kind = get_expectation_impl(declared.type)
    except ExpectationNotFoundError:
        problem = f"{declared.type} is not an expectation"
        way_out = "take one of Great Expectations, such as expect_column_values_to_be_between"
        raise InputError(place + ".type", problem, way_out) from None
    _check_table(kind, place, declared)
    _check_columns(spec, place, declared)
    unknown = _NOT_ARGUMENTS & declared.arguments.keys()
    if unknown:
        raise InputError(place + "." + min(unknown), "not an argument here", "remove it")
    try:
        return kind(severity=FailureSeverity(declared.severity), **declared.arguments)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in one['loc'] if part != '__root__') or declared.type}: "
            f"{one['msg']}"
            for one in error.errors()
        )
        allowed = ", ".join(_arguments_of(kind))
        raise InputError(place, f"wrong arguments ({problems})", f"it takes {allowed}") from None
    except OverflowError as error:
        raise InputError(place, f"wrong arguments ({error})", "give smaller numbers") from None


def _check_table(kind: type[Expectation], place: str, declared: ExpectationSpec) -> None:
    metadata = kind.schema()["properties"]["metadata"]["properties"]
    # some older expectations do not name theirs; the audit fails if they cannot check a table
    supported = metadata.get("supported_data_sources", {}).get("const")
    if supported is not None and _ENGINES[declared.table] not in supported:
        problem = f"{declared.type} cannot check the table {declared.table}"
        raise InputError(place + ".type", problem, "choose another expectation, or table")


def _check_columns(spec: PipelineSpec, place: str, declared: ExpectationSpec) -> None:
    if declared.type == "expect_column_to_exist":
        return
    columns, known_later = columns_of(spec, declared.table), declared.table == PAIRS
    named: list[tuple[str, Any]] = [
        (argument, declared.arguments[argument])
        for argument in _ONE_COLUMN
        if argument in declared.arguments
    ]
    several = declared.arguments.get("column_list")
    if isinstance(several, list):
        named += [("column_list", name) for name in several]
    for argument, name in named:
        of_a_side = known_later and str(name).startswith(_OF_SIDES)
        if name not in columns and not of_a_side:
            problem = f"{name!r} is not a column of {declared.table}"
            raise InputError(place + "." + argument, problem, f"it has {', '.join(columns)}")


def _arguments_of(kind: type[Expectation]) -> list[str]:
    common = set(Expectation.__fields__) | {"batch_id", "condition_parser"}
    return [name for name in kind.__fields__ if name not in common]
