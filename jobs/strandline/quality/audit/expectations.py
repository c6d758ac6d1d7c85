"""Strandline's own expectations, as classes of Great Expectations.

Importing this module registers them, which Data Docs need as well. Small tables are pandas frames;
`windows` is a Spark frame, queried in SQL with one Spark job for each expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import pandas as pd
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.core.expect_column_pair_values_to_be_equal import (
    ExpectColumnPairValuesToBeEqual,
)
from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import (
    ExpectCompoundColumnsToBeUnique,
)
from great_expectations.expectations.core.unexpected_rows_expectation import (
    UnexpectedRowsExpectation,
)
from great_expectations.expectations.expectation import Expectation, MulticolumnMapExpectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (  # noqa: E501
    multicolumn_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_map_metric_provider import (  # noqa: E501
    MulticolumnMapMetricProvider,
)

from strandline.spec import PipelineSpec

_ROWS_KEPT = 20
_DOMAIN = ("batch_id", "table", "column_list", "row_condition", "condition_parser", "ignore_row_if")


class ExpectBooksToBalance(ExpectColumnPairValuesToBeEqual):
    """Each book accounts for each of its records exactly once. Table `books`."""

    column_A: str = "total"
    column_B: str = "accounted"
    ignore_row_if: Literal["neither"] = "neither"
    description: str | None = "Every record stands in its book exactly once."


class ExpectTablesToShareNoRecord(ExpectBooksToBalance):
    """Quarantine holds exactly the landed rows that are in no window. Table `quarantine`."""

    description: str | None = "No record is in quarantine and in windows."


class ExpectSlotsOfTheRangeToBePresent(ExpectColumnPairValuesToBeEqual):
    """`completeness` has the slots of the timeline's day map in the range. Table `range`.

    They are the slots of the first and of the last record of each event date, which the day map
    counts independently of the slots.
    """

    column_A: str = "slots_present"
    column_B: str = "slots_expected"
    ignore_row_if: Literal["neither"] = "neither"
    description: str | None = (
        "The slots of the first and last record of each event date are in completeness."
    )


class ExpectLateShareToBeAtMost(ExpectColumnValuesToBeBetween):
    """late / (accepted + late) over the range is at most `max_value`; it holds if both are 0."""

    column: str = "late_share"
    description: str | None = "The share of late records stays below quality.max_late_share."


class ExpectRemovedShareToBeAtMost(ExpectColumnValuesToBeBetween):
    """removed / published windows of the range is at most `max_value`. Table `range`."""

    column: str = "removed_share"
    description: str | None = "The share of windows that go stays below quality.max_removed_share."


class ExpectNoGaps(ExpectColumnValuesToBeBetween):
    """No slot of the range is without any record. Table `range`."""

    column: str = "gaps"
    max_value: float = 0
    description: str | None = "No slot between the first and the last record is empty."


class ExpectSlotsToBeUnique(ExpectCompoundColumnsToBeUnique):
    """No slot occurs twice in `completeness`."""

    column_list: list[str] = ["slot_start", "slot_end"]  # noqa: RUF012 - pydantic copies it
    description: str | None = "No slot has two rows."


class _SlotStatesAgree(MulticolumnMapMetricProvider):
    """Whether the state of a slot agrees with its crossings, row by row."""

    condition_metric_name = "multicolumn_values.slot_states_agree"
    condition_domain_keys = _DOMAIN
    condition_value_keys = ()

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_list: pd.DataFrame, **_: Any) -> pd.Series[bool]:
        state, fired_at, closed_at = (column_list[c] for c in ("state", "fired_at", "closed_at"))
        in_order = [
            pd.isna(fired) or pd.isna(closed) or fired <= closed
            for fired, closed in zip(fired_at, closed_at, strict=True)
        ]
        return (
            state.isin(["open", "fired", "closed"])
            & ((state == "open") == fired_at.isna())
            & ((state == "closed") == closed_at.notna())
            & pd.Series(in_order, index=state.index, dtype=bool)
        )


class ExpectSlotStatesToAgreeWithCrossings(MulticolumnMapExpectation):
    """A slot is open iff it has not fired, closed iff it has closed, and fires before it closes."""

    column_list: list[str] = ["state", "fired_at", "closed_at"]  # noqa: RUF012 - pydantic copies it
    ignore_row_if: Literal["never"] = "never"
    description: str | None = (
        "A slot is open exactly if fired_at is null, closed exactly if closed_at is not, "
        "and fired_at is not after closed_at."
    )
    map_metric = "multicolumn_values.slot_states_agree"


class _FiredInOrder(MulticolumnMapMetricProvider):
    """Whether a slot is fired, or no later slot is fired, row by row."""

    condition_metric_name = "multicolumn_values.fired_in_order"
    condition_domain_keys = _DOMAIN
    condition_value_keys = ()

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_list: pd.DataFrame, **_: Any) -> pd.Series[bool]:
        is_open: pd.Series[bool] = column_list["state"] == "open"
        # the watermark passes the ends of slots in their order, whatever their starts are
        # and what the end of the input has fired says nothing about it
        by_watermark = ~is_open & ~column_list["input_ended"].astype(bool)
        last_fired_end = column_list["slot_end"][by_watermark].max()
        behind: pd.Series[bool] = column_list["slot_end"] <= last_fired_end  # of none fired: no one
        return ~(is_open & behind)


class ExpectNoOpenSlotBeforeAFiredOne(MulticolumnMapExpectation):
    """The watermark has fired every slot that ends before a fired one. Table `completeness`."""

    column_list: list[str] = ["slot_end", "state", "input_ended"]  # noqa: RUF012 - pydantic copies it
    ignore_row_if: Literal["never"] = "never"
    description: str | None = "No open slot stands before a fired one."
    map_metric = "multicolumn_values.fired_in_order"


class _WindowsExpectation(UnexpectedRowsExpectation):
    """A query for offending rows, with their total number in the column `offenders` of each row.

    It takes one Spark job; Great Expectations would count the rows by a second job.
    """

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.table",)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        rows: list[dict[str, Any]] = metrics["unexpected_rows_query.table"]
        return {
            "success": not rows,
            "result": {
                "observed_value": rows[0]["offenders"] if rows else 0,
                "details": {"unexpected_rows": rows},
            },
        }


class ExpectWindowsToBeUnique(_WindowsExpectation):
    """No (key, window) occurs twice in `windows`."""

    description: str | None = "No key has two rows for the same window."


class ExpectWindowStatesToAgreeWithCrossings(_WindowsExpectation):
    """A window is fired or closed, closed iff it has closed, and fires before it closes."""

    description: str | None = (
        "A window is fired or closed, has fired_at, has closed_at exactly if it is closed, "
        "and fired_at is not after closed_at."
    )


class ExpectPairsToBeUnique(_WindowsExpectation):
    """No pair occurs twice in `pairs`."""

    description: str | None = "No pair of records has two rows."


def _copies(identity: str) -> str:
    """A query for the rows that occur more than once."""
    return (
        f"SELECT {identity}, count(*) AS copies, count(*) OVER () AS offenders "
        f"FROM {{batch}} GROUP BY {identity} HAVING count(*) > 1 LIMIT {_ROWS_KEPT}"
    )


def expectations_of_pairs(keys: Sequence[str]) -> list[Expectation]:
    """The expectations of `pairs`; `keys`: the columns that identify its rows."""
    identity = ", ".join(f"`{name}`" for name in keys)
    return [ExpectPairsToBeUnique(unexpected_rows_query=_copies(identity))]


def expectations_of_windows(spec: PipelineSpec) -> list[UnexpectedRowsExpectation]:
    """The expectations of `windows` for every pipeline."""
    identity = ", ".join([*(f"`{name}`" for name in spec.source.key), "window_start", "window_end"])
    return [
        ExpectWindowsToBeUnique(unexpected_rows_query=_copies(identity)),
        ExpectWindowStatesToAgreeWithCrossings(
            unexpected_rows_query=(
                f"SELECT {identity}, state, fired_at, closed_at, count(*) OVER () AS offenders "
                "FROM {batch} WHERE fired_at IS NULL "
                "OR NOT coalesce(state IN ('fired', 'closed'), false) "
                "OR (state = 'closed') <> (closed_at IS NOT NULL) "
                f"OR fired_at > closed_at LIMIT {_ROWS_KEPT}"
            )
        ),
    ]


def expectations_of_completeness() -> list[Expectation]:
    """The expectations of `completeness` for every pipeline."""
    return [
        ExpectSlotsToBeUnique(),
        ExpectSlotStatesToAgreeWithCrossings(),
        ExpectNoOpenSlotBeforeAFiredOne(),
    ]


def expectations_of_range(spec: PipelineSpec) -> list[Expectation]:
    """The expectations of the run's range as a whole: its slots, its late share, its gaps."""
    quality = spec.quality
    expected: list[Expectation] = [ExpectSlotsOfTheRangeToBePresent()]
    if quality.max_late_share is not None:
        expected.append(ExpectLateShareToBeAtMost(max_value=quality.max_late_share))
    if quality.gaps != "allow":
        severity = FailureSeverity.CRITICAL if quality.gaps == "fail" else FailureSeverity.WARNING
        expected.append(ExpectNoGaps(severity=severity))
    return expected
