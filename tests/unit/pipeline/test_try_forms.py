"""The function that gives null where an expression fails, by the expression and the message."""

from __future__ import annotations

import pytest

from strandline.pipeline.request import thrown
from strandline.pipeline.request.try_forms import (
    failing_part,
    fails_on_spark_too,
    has_condition,
    is_on_sail,
    try_form,
)

BY_ZERO = "[DIVIDE_BY_ZERO] Division by zero."


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a / b", "try_divide()"),
        ("a div b", "try_divide()"),
        ("a % b", "try_mod()"),
        ("mod(a, b)", "try_mod()"),
        ("sum(a) / (n % 2)", "try_divide()"),
    ],
)
def test_a_division_by_zero_is_mended_by_the_function_of_its_operator(text, form):
    assert try_form(text, BY_ZERO) == form


@pytest.mark.parametrize(
    ("text", "problem", "form"),
    [
        ("element_at(a, CAST(n AS INT))", "element_at: the index 0 is invalid", "try_element_at()"),
        (
            "make_timestamp(2024, CAST(n AS INT), 1, 0, 0, 0)",
            "invalid input for Spark `make_timestamp_ntz`: month=0",
            "try_make_timestamp()",
        ),
        ("sum(CAST(n AS INT))", "Can't cast value 99999999999 to type Int32", "try_cast()"),
    ],
)
def test_of_several_functions_the_one_that_the_engine_names_is_replaced(text, problem, form):
    assert try_form(text, problem) == form


@pytest.mark.parametrize(
    ("text", "failing", "part", "form"),
    [
        ("sum(a * b)", "a * b", "x * y", "try_multiply()"),
        ("sum(a * b + c)", "a * b + c", "x + y", "try_add()"),
        ("sum(a + b) * 2", "a + b", "x + y", "try_add()"),
        ("sum(CAST(a AS BIGINT) - b)", "none of them", "sum()", "try_sum()"),
        ("sum(CAST(a AS INT) * b)", "CAST(a AS INT)", "cast(x)", "try_cast()"),
        ("sum(a)", "none of them", "sum()", "try_sum()"),
        ("sum(a * b) FILTER (WHERE k)", "CASE WHEN k THEN a * b END", "x * y", "try_multiply()"),
        ("sum(a) FILTER (WHERE b * c > 1)", "b * c", "x * y", "try_multiply()"),
        ("max(coalesce(l, 10 / i) * 3)", "coalesce(l, 10 / i) * 3", "x * y", "try_multiply()"),
        ("max(coalesce(a * b, c))", "a * b", "x * y", "try_multiply()"),
        ("a - b + CASE WHEN c > 0 THEN a / c END", "a - b", "x - y", "try_subtract()"),
    ],
)
def test_the_operation_that_overflows_is_named_and_not_the_aggregate_around_it(
    text, failing, part, form
):
    overflow = "Cast error: value of 9223372036854775808 is out of range Int64"
    assert failing_part(text, overflow, lambda one: one == failing) == part
    assert try_form(part, overflow) == form


@pytest.mark.parametrize(
    ("text", "failing", "form"),
    [
        (
            "to_timestamp(ts, 'yyyy-MM-dd') + INTERVAL 1 HOUR",
            "to_timestamp(ts, 'yyyy-MM-dd')",
            "try_to_timestamp()",
        ),
        ("max(element_at(a, 3) * 2)", "element_at(a, 3)", "try_element_at()"),
        ("max(a[3] * 2)", "a[3]", "get()"),
        ("to_date(ts) - to_date(other)", "to_date(ts)", "try_to_date()"),
        ("sum(MOD(a, b) * 2)", "MOD(a, b)", "try_mod()"),
        ("CAST(url_decode(a) AS INT)", "url_decode(a)", "CASE WHEN … END around it"),
        ("max(IF(ok, to_date(ts), day) + 1)", "IF(ok, to_date(ts), day)", "try_to_date()"),
        ("NOT (ok AND to_date(ts) > day)", "ok AND to_date(ts) > day", "try_to_date()"),
        ("size(filter(a, x -> x % 2 = 0)) + 1", "filter(a, x -> x % 2 = 0)", "try_mod()"),
        ("max(timestamp_millis(a + 0))", "a + 0", "try_add()"),
        (
            "max(timestamp_millis(a + 0))",
            "timestamp_millis(a + 0)",
            "timestamp_millis(CASE WHEN a + 0 BETWEEN -62135596800000 AND 253402300799000 "
            "THEN a + 0 END)",
        ),
    ],
)
def test_a_function_that_fails_is_named_and_not_the_operation_around_it(text, failing, form):
    problem = "invalid input"
    # what is around a part that fails, fails too
    assert try_form(failing_part(text, problem, lambda one: failing in one), problem) == form


@pytest.mark.parametrize(
    "choice",
    [
        *("coalesce(day, to_date(ts))", "nvl2(day, 1, to_date(ts))"),
        *("decode(kind, 'a', to_date(ts), day)", "elt(n, day, to_date(ts))"),
    ],
)
def test_a_part_that_is_computed_for_some_rows_only_is_not_asked_alone(choice):
    part = failing_part(f"max({choice})", "invalid input", lambda one: "to_date" in one)
    assert part == choice
    assert try_form(part, "invalid input") == "try_to_date()"


def test_where_no_part_fails_alone_the_message_tells_which_function_of_the_whole_text_does():
    guard = "make_timestamp(y, 13, 1, 0, 0, 0) > t"
    text = f"max(to_date(t) + 1) - min(to_date(t) + 1) FILTER (WHERE {guard})"
    problem = "invalid input for `make_timestamp_ntz`: month=13"
    assert failing_part(text, problem, lambda _: False) == text
    assert try_form(text, problem) == "try_make_timestamp()"


@pytest.mark.parametrize(
    ("problem", "wanted", "way_out"),
    [
        (
            "Sail has no from_json() of JSON that is malformed or has text behind it",
            "any",
            "give --engine spark",
        ),
        (
            "Sail has no from_json() of JSON that is malformed or has text behind it",
            "aggregate",
            "give --engine spark",
        ),
        ("Sail has no date_format() beyond the years 1 to 9999", "any", "give --engine spark"),
        (
            "Sail has no max() of it",
            "aggregate",
            "leave such values out, as by FILTER (WHERE abs(x) < double('Infinity')), or give "
            "--engine spark",
        ),
        (
            "Sail has no DECIMAL of it",
            "any",
            "give CASE WHEN abs(x) < 1e16D THEN … END, or give --engine spark",
        ),
    ],
)
def test_a_value_that_sail_has_not_has_a_way_out_of_its_kind(problem, wanted, way_out):
    assert thrown.way_out_of("f(x)", problem, on_spark=True, wanted=wanted) == way_out


@pytest.mark.parametrize(
    ("problem", "fails"),
    [
        ("timestamp_millis overflows", True),
        ("Division by zero", True),
        ("Remainder by zero", True),
        ("[INVALID_ARRAY_INDEX] The index 9 is out of bounds. The array has 2 elements.", True),
        ("element_at: the index is out of bounds", True),
        ("Cast error: value of 10580370436854775807 is out of range Int64", True),
        ("Cast error: Can't cast value 1356998400000000000 to type Int32", True),
        ("invalid timestamp: x", True),
        ('The value \'x\' of the type "STRING" cannot be cast to "DATE" because', True),
        ("Cast error: Cannot cast string 'x' to value of Float64 type", True),
        # texts with digits or spaces: Spark takes more of them
        ("invalid timestamp: 2013-1", False),
        ("Cast error: Cannot cast string ' 1' to value of Int32 type", False),
        ("Cast error: Cannot cast value 'y' to value of Boolean type", False),
        ("expected numeric datetime field at byte offset 0", False),
    ],
)
def test_spark_is_no_way_out_of_a_failure_that_it_shares_with_sail(problem, fails):
    assert fails_on_spark_too(problem) == fails


@pytest.mark.parametrize(
    ("text", "problem", "on_sail"),
    [
        ("cast(x)", "Cannot cast string 'x' to value of Int32 type", True),
        ("cast(x)", 'The value \'x\' of the type "STRING" cannot be cast to "DATE" because', True),
        ("x / y", "Division by zero", True),
        ("cast(x)", "Cannot cast string 'x' to value of Decimal128(10, 2) type", False),
        ("cast(x)", "Cannot cast string 'x' to value of Float64 type", False),
        ("to_date(x)", "invalid timestamp: x", False),
        ("parse_json(x)", "invalid JSON", False),
    ],
)
def test_spark_stays_a_way_out_where_sail_does_not_take_the_function_that_gives_null(
    text, problem, on_sail
):
    assert is_on_sail(try_form(text, problem), problem) == on_sail


@pytest.mark.parametrize(
    ("text", "has_one"),
    [
        ("timestamp_millis(a)", False),
        ("sum(a / b) * 2", False),
        ("IF(b > 0, a / b, 0)", True),
        ("b > 0 AND a / b > 2", True),
        ("coalesce(a, 1 / b)", True),
        ("nvl2(a, 1, 1 / b)", True),
        ("decode(a, 1, 1 / b, 2)", True),
        ("elt(a, 1 / b, 2)", True),
        ("decode(a, 'UTF-8')", True),  # of bytes: one too many is no harm
        ("sum(a / b) FILTER (WHERE b > 0)", True),
    ],
)
def test_an_expression_has_a_condition_if_it_computes_a_part_for_some_rows(text, has_one):
    assert has_condition(text) == has_one
