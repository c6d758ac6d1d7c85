"""Sums of BIGINT are written so that Sail fails where they overflow, and all else as it was."""

from __future__ import annotations

import pytest

from strandline.sql.checked_sums import with_checked_sums

BIGINTS = {"l", "l + 1", "CAST(i AS BIGINT)"}


@pytest.mark.parametrize(
    ("text", "checked"),
    [
        ("sum(l)", "CAST(sum(CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        ("SUM( l + 1 )/count(*)", "CAST(sum(CAST(l + 1  AS DECIMAL(38, 0))) AS BIGINT)/count(*)"),
        ("sum(DISTINCT l)", "CAST(sum(DISTINCT CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        ("sum(ALL l)", "CAST(sum(CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        (
            "sum(CAST(i AS BIGINT)) FILTER (WHERE (i > 0))",
            "CAST(sum(CAST(CAST(i AS BIGINT) AS DECIMAL(38, 0))) FILTER (WHERE (i > 0)) AS BIGINT)",
        ),
        (
            "sum(l) - sum(i) + sum(l)",
            "CAST(sum(CAST(l AS DECIMAL(38, 0))) AS BIGINT) - sum(i) + "
            "CAST(sum(CAST(l AS DECIMAL(38, 0))) AS BIGINT)",
        ),
        ("builtin.sum(l)", "builtin.sum(l)"),
        ("max(sum) + try_sum(l)", "max(sum) + try_sum(l)"),
        ("max('sum(l)')", "max('sum(l)')"),
    ],
)
def test_a_sum_of_bigint_is_checked_wherever_it_stands(text, checked):
    assert with_checked_sums(text, lambda one: one.strip() in BIGINTS) == checked
