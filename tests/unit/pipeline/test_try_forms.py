"""The function that gives null where an expression fails, by the expression and the message."""

from __future__ import annotations

import pytest

from strandline.pipeline.request.try_forms import try_form

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
