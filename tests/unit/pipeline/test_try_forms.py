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
