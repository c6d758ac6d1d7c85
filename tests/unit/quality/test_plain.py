"""Whatever is plainly right without Great Expectations is right by Great Expectations."""

from __future__ import annotations

import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from joined import JOIN
from lakes import a_spec

from strandline.quality.audit.plain import COMMON_TYPES, are_plain, columns_of
from strandline.quality.audit.run import validate_expectations
from strandline.spec import parse_spec

TABLES = ("windows", "completeness", "pairs")
VALUES = [
    0,
    1,
    0.5,
    -1,
    2,
    1e300,
    10**400,
    float("nan"),
    True,
    None,
    "1",
    "state",
    ["a"],
    [1, 2],
    [],
    [1, "a"],
]
ARGUMENTS = sorted(set().union(*COMMON_TYPES.values(), {"strict_min"}))


def one_of(type_, table="windows", **arguments):
    quality = {"expectations": [{"type": type_, "table": table, **arguments}]}
    if table == "pairs":
        return parse_spec(JOIN | {"quality": quality}, origin="near.yaml")
    return a_spec(quality=quality)


def columns_in(table):
    return columns_of(one_of("expect_table_row_count_to_be_between", table), table)


@st.composite
def declarations(draw):
    type_, table = draw(st.sampled_from(sorted(COMMON_TYPES))), draw(st.sampled_from(TABLES))
    given_ = draw(st.sets(st.sampled_from(ARGUMENTS)))
    columns = st.sampled_from(columns_in(table))
    return one_of(
        type_,
        table,
        **{name: draw(columns if name == "column" else st.sampled_from(VALUES)) for name in given_},
    )


@DEAR
@given(declarations())
def test_what_is_plain_is_accepted_by_great_expectations(spec):
    if are_plain(spec):
        validate_expectations(spec)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("type_", sorted(COMMON_TYPES))
def test_each_common_type_checks_each_table(type_, table):
    values = {"mostly": 0.9, "min_value": 1, "max_value": 2, "value_set": ["a"]}
    values["column"] = columns_in(table)[-1]
    spec = one_of(type_, table, **{name: values[name] for name in COMMON_TYPES[type_]})
    assert are_plain(spec)
    validate_expectations(spec)


@pytest.mark.parametrize(
    "arguments",
    [
        {"type_": "expect_column_values_to_be_betwixt", "column": "state"},
        {"type_": "expect_column_values_to_be_null", "column": "country"},
        {"type_": "expect_column_values_to_be_null", "column": "state", "mostly": 1.1},
        {"type_": "expect_column_values_to_be_between", "column": "state"},
        {"type_": "expect_column_values_to_be_between", "min_value": 1},
        {"type_": "expect_column_values_to_be_between", "column": "state", "max_value": 10**400},
        {"type_": "expect_column_values_to_be_in_set", "column": "state", "least": 1},
        {"type_": "expect_table_row_count_to_be_between", "min_value": 1.5},
    ],
)
def test_what_may_be_wrong_is_left_to_great_expectations(arguments):
    assert not are_plain(one_of(**arguments))
