"""What a pipeline's test computes is what Spark does, for every expression that Spark was asked."""

from __future__ import annotations

import math
from datetime import date, datetime

import pytest
from spark_answers import kept

from strandline.errors import InputError
from strandline.trial.aggregates import aggregate
from strandline.trial.expressions import evaluator
from strandline.trial.values import ThrownError

THROWS = "it throws"


def answers():
    """Spark's answers without a table, one expression each: its text, and the value."""
    for query, answer in kept():
        if not query.rest and len(query.selected) == 1:
            thrown = answer.error is not None or answer.rows is None
            yield query.selected[0], THROWS if thrown else answer.rows[0][0]


def computed(text):
    """The value here; InputError: it is refused."""
    of = evaluator(text, "test")
    try:
        value = of({})
    except ThrownError:
        return THROWS
    return value.isoformat() if isinstance(value, date | datetime) else value


def is_same(mine, of_spark):
    if isinstance(mine, int | float) and not isinstance(mine, bool):
        return math.isclose(mine, float(of_spark), rel_tol=1e-9)
    return type(mine) is type(of_spark) and mine == of_spark


def test_every_expression_that_is_computed_is_as_spark_answers_it():
    known = refused = 0
    differ = {}
    for text, of_spark in answers():
        try:
            mine = computed(text)
        except InputError:
            refused += 1
            continue
        known += 1
        if not is_same(mine, of_spark):
            differ[text] = (mine, of_spark)
    assert differ == {}
    assert known > 100
    assert refused > 100  # what is not known is refused, and not guessed


@pytest.mark.parametrize(
    ("text", "rows", "value"),
    [
        ("count(*)", [1, None, 3], 3),
        ("count(x)", [1, None, 3], 2),
        ("count(DISTINCT x)", [1, 1, None, 3], 2),
        ("sum(x)", [1, None, 3], 4),
        ("sum(x)", [], None),
        ("avg(x)", [1, None, 4], 2.5),
        ("min(x)", [3, None, 1], 1),
        ("max(x)", [], None),
        ("count_if(x > 1)", [1, None, 3], 1),
        ("sum(x) FILTER (WHERE x > 1)", [1, 2, 3], 5),
        ("sum(x) / count(*)", [1, 2], 1.5),
        ("coalesce(sum(x), 0)", [], 0),
        ("CASE WHEN max(x) > 2 THEN 'high' ELSE 'low' END", [1, 3], "high"),
        ("max(x) - min(x)", [4, 1], 3),
        ("max(x + 2147483647)", [1], 2147483648),
        ("max(x + 9223372036854775808)", [1], 2**63 + 1),
        ("max(CAST(x AS TINYINT) + CAST(x AS SMALLINT))", [100], 200),
        ("max(CAST(x AS TINYINT) + 100)", [100], 200),
    ],
)
def test_aggregates_leave_nulls_out_and_may_be_reckoned_with(text, rows, value):
    assert aggregate(text, "test")([{"x": x} for x in rows]) == value


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("percentile(x, 0.5)", "percentile"),
        ("first(x)", "first"),
        ("sum(x) OVER ()", "OVER"),
        ("collect_list(x)", "collect_list"),
        ("sum(x, y)", "sum"),
        ("CAST(x AS DECIMAL(10, 2))", "DECIMAL"),
        ("s.field", "s.field"),
        ("(SELECT 1)", "SELECT"),
    ],
)
def test_what_no_test_computes_is_refused_by_name(text, names):
    with pytest.raises(InputError, match="strandline test does not compute") as refused:
        aggregate(text, "flights: aggregates.n")([{"x": 1, "y": 1}])
    assert names in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        *("sum(x) / 0", "CAST('x' AS INT)", "sum(x) + 'a'"),
        *("2147483647 + 1", "max(CAST(x AS INT) - 1 - 2147483647 - 2)", "65536 * (65536)"),
        *("max(x + 9223372036854775807)", "max(CAST(x AS TINYINT) + CAST(127 AS TINYINT))"),
        *("-2147483648 - 1", "-9223372036854775808 - 1"),
        "max(CAST(x AS SMALLINT) + CAST(32767 AS SMALLINT))",
    ],
)
def test_what_throws_in_spark_throws(text):
    with pytest.raises(ThrownError):
        aggregate(text, "test")([{"x": 1}])
