"""Aggregates: whatever the records alone decide is taken, anything else is refused."""

from __future__ import annotations

import pytest

from strandline.engine.aggregates import aggregate_columns
from strandline.errors import InputError
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def landing(spark):
    return spark.sql("SELECT 1L AS value, 'x' AS k, TIMESTAMP '2013-01-05' AS landed_at")


def checked(landing, text: str):
    spec = parse_spec(
        {
            "pipeline": "p",
            "source": {"table": "t", "arrival_time": "landed_at", "event_time": "landed_at"},
            "watermark": {"strategy": "ascending"},
            "window": {"tumbling": "1h"},
            "aggregates": {"total": text},
        },
        origin="p.yaml",
    )
    return landing.agg(aggregate_columns(landing, spec)["total"]).first()[0]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("count(*)", 1),
        ("sum(value) / count(*)", 1.0),
        ("count(DISTINCT k)", 1),
        ("sum(value) FILTER (WHERE k = 'y')", None),
        ("count_if(value > 1)", 0),
        ("percentile(value, 0.5)", 1.0),
        ("min_by(value, landed_at)", 1),
        ("array_sort(collect_list(value))", [1]),
        ("sort_array(collect_list(value), false)", [1]),
        ("array_sort(collect_set(k))", ["x"]),
        ("listagg(k, ',') WITHIN GROUP (ORDER BY k)", "x"),
        ("size(array_sort(collect_set(k)))", 1),
    ],
)
def test_what_the_records_alone_decide_is_taken(landing, text, result):
    assert checked(landing, text) == result


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("first(value)", "min_by(x, arrival)"),
        ("first(value) IGNORE NULLS", "min_by(x, arrival)"),
        ("last_value(value)", "max_by(x, arrival)"),
        ("any_value(value)", "min(x)"),
        ("collect_list(value)", "array_sort(collect_list(x))"),
        ("array_agg(value)", "array_sort(collect_list(x))"),
        ("array_distinct(collect_list(value))", "array_sort(collect_list(x))"),
        ("collect_set(value)", "array_sort(collect_set(x))"),
        ("listagg(k, ',')", "listagg(x) WITHIN GROUP (ORDER BY x)"),
        ("sum(value) + first(value)", "min_by(x, arrival)"),
    ],
)
def test_what_depends_on_the_order_of_records_is_refused(landing, text, way_out):
    with pytest.raises(InputError) as refused:
        checked(landing, text)
    assert refused.value.place == "p: aggregates.total"
    assert repr(text) in refused.value.problem
    assert "depends on the order of the records" in refused.value.problem
    assert refused.value.way_out == f"say which order, for example {way_out}"


@pytest.mark.parametrize(
    "text",
    [
        "max(now())",
        "max(current_timestamp())",
        "max(current_date())",
        "max(localtimestamp())",
        "max(unix_timestamp())",
        "max(curdate())",
        "sum(value) + rand()",
        "max(value) * randn(7)",
        "concat(max(k), uuid())",
        "shuffle(array_sort(collect_list(value)))",
    ],
)
def test_chance_and_the_clock_are_refused(landing, text):
    with pytest.raises(InputError) as refused:
        checked(landing, text)
    assert refused.value.place == "p: aggregates.total"
    assert "is not deterministic" in refused.value.problem
    assert refused.value.way_out == "compute from the record's own columns"


@pytest.mark.parametrize(
    "text",
    [
        "value",
        "nope(value)",
        "sum(nope)",
        "sum(value",
        "sum(rand())",
        "max(value) OVER ()",
        "sum()",
    ],
)
def test_what_is_no_aggregate_is_refused(landing, text):
    with pytest.raises(InputError) as refused:
        checked(landing, text)
    assert refused.value.place == "p: aggregates.total"
    assert refused.value.problem.startswith(repr(text))
    assert refused.value.way_out
