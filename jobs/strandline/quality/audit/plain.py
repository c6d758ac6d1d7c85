"""Declared expectations that are right without a doubt, found without Great Expectations.

Its import takes seconds. Whatever is not found here may be right or wrong: it is for
`validate_expectations`, which asks Great Expectations itself.
"""

from __future__ import annotations

import sys
from typing import Any

from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.spec.quality import ExpectationSpec
from strandline.tables import COMPLETENESS, UNFIRED_COLUMN, WINDOW_COLUMNS

_VALUES, _STATISTIC, _BOUNDS = {"column", "mostly"}, {"column"}, {"min_value", "max_value"}
COMMON_TYPES = {
    "expect_column_values_to_be_between": _VALUES | _BOUNDS,
    "expect_column_values_to_not_be_null": _VALUES,
    "expect_column_values_to_be_null": _VALUES,
    "expect_column_values_to_be_unique": _VALUES,
    "expect_column_values_to_be_in_set": _VALUES | {"value_set"},
    "expect_column_max_to_be_between": _STATISTIC | _BOUNDS,
    "expect_column_mean_to_be_between": _STATISTIC | _BOUNDS,
    "expect_column_min_to_be_between": _STATISTIC | _BOUNDS,
    "expect_column_sum_to_be_between": _STATISTIC | _BOUNDS,
    "expect_table_row_count_to_be_between": _BOUNDS,
}
"""The arguments of common types, of which every table can be checked by each."""
_OPTIONAL = _BOUNDS | {"mostly"}
_ROWS = "expect_table_row_count_to_be_between"


def are_plain(spec: PipelineSpec) -> bool:
    """Whether all expectations that a pipeline declares are right; False: perhaps not."""
    return all(_is_plain(spec, one) for one in spec.quality.expectations)


def columns_of(spec: PipelineSpec, table: str) -> tuple[str, ...]:
    """The columns that an expectation can name; for `pairs` also the landing tables' columns."""
    if table == PAIRS:
        return (*spec.source.key, *spec.tables[PAIRS].columns)
    if table == "completeness":
        unfired = UNFIRED_COLUMN if spec.may_go_unfired else ()
        return (*COMPLETENESS.columns, *unfired)
    return (*spec.source.key, *spec.contents, *WINDOW_COLUMNS)


def _is_plain(spec: PipelineSpec, declared: ExpectationSpec) -> bool:
    taken, given = COMMON_TYPES.get(declared.type), declared.arguments
    if taken is None or not taken - _OPTIONAL <= given.keys() <= taken:
        return False
    if "column" in given and given["column"] not in columns_of(spec, declared.table):
        return False
    bounds = [given[name] for name in ("min_value", "max_value") if name in given]
    numbers = [*bounds, *([given["mostly"]] if "mostly" in given else ())]
    of_kind = int if declared.type == _ROWS else (int, float)
    return (
        all(type(one) in (int, float) and isinstance(one, of_kind) for one in numbers)
        and all(abs(one) <= sys.float_info.max for one in numbers)
        and bounds == sorted(bounds)
        and bool(bounds) == bool(taken & _BOUNDS)
        and 0 <= given.get("mostly", 1) <= 1
        and _is_set(given.get("value_set", [""]))
    )


def _is_set(value: Any) -> bool:
    """Whether a value is a list of texts, or one of whole numbers."""
    return isinstance(value, list) and {*map(type, value)} in ({str}, {int})
