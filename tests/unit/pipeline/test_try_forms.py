"""The function that gives null where an expression fails, by the expression and the message."""

from __future__ import annotations

import pytest

from strandline.pipeline.request.try_forms import failing_part, try_form

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
        ("sum(a)", "none of them", "sum(a)", "try_sum()"),
        ("a - b + CASE WHEN c > 0 THEN a / c END", "a - b", "x - y", "try_subtract()"),
    ],
)
def test_the_operation_that_overflows_is_named_and_not_the_aggregate_around_it(
    text, failing, part, form
):
    assert failing_part(text, lambda one: one == failing) == part
    assert try_form(part, "Can't cast value 2147483648 to type Int32") == form
