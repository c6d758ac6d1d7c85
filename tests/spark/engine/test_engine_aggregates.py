"""Aggregates: whatever the records alone decide is accepted, anything else is refused."""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.errors import PySparkException

from strandline.engine.aggregates import (
    aggregate_columns,
    columns_read,
    in_two_steps,
    not_in_two_steps,
)
from strandline.engine.records.identity import SourceColumns
from strandline.errors import InputError
from strandline.pipeline.request.ask_engine import asked
from strandline.spec import parse_spec
from strandline.sql.by_name_on_sail import BY_NAME
from strandline.sql.on_sail import names_not_on_sail, types_not_on_sail

pytestmark = pytest.mark.spark
SORTED = "array_sort(collect_list(x)), or array_sort(collect_list(struct(y, x)))"


@pytest.fixture(scope="module")
def landing(spark):
    return spark.sql("SELECT 1L AS value, 'x' AS k, TIMESTAMP '2013-01-05' AS landed_at")


def a_spec(text: str):
    return parse_spec(
        {
            "pipeline": "p",
            "source": {"table": "t", "arrival_time": "landed_at", "event_time": "landed_at"},
            "watermark": {"strategy": "ascending"},
            "window": {"tumbling": "1h"},
            "aggregates": {"total": text},
        },
        origin="p.yaml",
    )


def checked(landing, text: str):
    spec = a_spec(text)
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
    ("rows", "corr", "r2"),
    [
        ("(1D, 2D), (2D, 4D), (3D, 5D)", 0.98198, 0.96429),
        ("(1D, 2D)", None, None),
        ("(CAST(NULL AS DOUBLE), 2D)", None, None),
        ("(1D, 2D), (1D, 4D)", None, 1.0),  # all y are equal
        ("(1D, 2D), (4D, 2D)", None, None),  # all x are equal
    ],
)
def test_what_is_to_be_written_for_corr_and_regr_r2_on_sail_runs_for_every_window(
    spark, rows, corr, r2
):
    pairs = spark.sql(f"SELECT * FROM VALUES {rows} AS pairs(y, x)")
    ways_out = [BY_NAME[of][1] for of in ("corr", "regr_r2")]
    for text in ways_out:
        assert [*names_not_on_sail(text), *types_not_on_sail(text, partial(asked, pairs))] == []
    found = [aggregate_columns(pairs, a_spec(text)) for text in ways_out]
    assert [*pairs.agg(*(of["total"] for of in found)).first()] == [
        None if one is None else pytest.approx(one, abs=1e-5) for one in (corr, r2)
    ]


@pytest.mark.parametrize(
    "text", ["sum(l)", "1 + sum(DISTINCT l)", "sum(l) FILTER (WHERE l > 1) / count(*)"]
)
def test_a_sum_that_overflows_fails_on_each_engine(spark, text):
    rows = spark.sql("SELECT 9223372036854775807L - id AS l FROM range(2)")
    spec = a_spec(text)
    with pytest.raises(PySparkException, match=r"(?i)overflow|out of range"):
        rows.agg(aggregate_columns(rows, spec)["total"]).first()
    if (in_steps := in_two_steps(rows, spec)) is not None:
        parts = rows.groupBy("l").agg(*(c.alias(n) for n, c in in_steps["total"].parts.items()))
        with pytest.raises(PySparkException, match=r"(?i)overflow|out of range"):
            parts.agg(in_steps["total"].whole).first()


def test_a_sum_of_int_is_left_to_the_engine(spark):
    rows = spark.sql("SELECT 1 AS i, 1L AS l")
    for text in ("sum(i)", "sum(ALL i)"):
        ((part, column),) = in_two_steps(rows, a_spec(text))["total"].parts.items()
        assert rows.agg(column.alias(part)).dtypes == [(part, "bigint")]


@pytest.mark.only_on_spark(reason="Sail takes such a name for a word without its argument")
@pytest.mark.parametrize("text", ["avg(all)", "sum( ALL )", "avg(ALL all)"])
def test_a_column_may_be_called_all(spark, text):
    rows = spark.sql("SELECT 1L AS all")
    steps = in_two_steps(rows, a_spec(text))["total"]
    parts = rows.agg(*(column.alias(name) for name, column in steps.parts.items()))
    assert parts.agg(steps.whole).first()[0] == 1


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("first(value)", "min_by(x, arrival)"),
        ("first(value) IGNORE NULLS", "min_by(x, arrival)"),
        ("last_value(value)", "max_by(x, arrival)"),
        ("any_value(value)", "min(x)"),
        ("collect_list(value)", SORTED),
        ("array_agg(value)", SORTED),
        ("array_distinct(collect_list(value))", SORTED),
        ("collect_set(value)", "array_sort(collect_set(x))"),
        ("listagg(k, ',')", "listagg(x) WITHIN GROUP (ORDER BY x), or ORDER BY y, x"),
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


@pytest.mark.parametrize(
    ("text", "problem", "way_out"),
    [
        ("count(*)", None, None),
        ("avg(value)", None, None),
        ("max(struct(value, k))", None, None),
        ("sum(value) / count(*)", "not one call", "compute it from them when you read"),
        ("percentile(value, 0.5)", "not one call", "compute it from them when you read"),
        ("count(DISTINCT k)", "needs the single values", "a pipeline of its own"),
        ("count( distinct k)", "needs the single values", "a pipeline of its own"),
        ("count(DISTINCT(k))", "needs the single values", "a pipeline of its own"),
        ("count(DISTINCT\n k)", "needs the single values", "a pipeline of its own"),
        ("avg(DISTINCT(value))", "needs the single values", "a pipeline of its own"),
        ("sum(value >>> 1)", "is not understood here", "write it in other words"),
        ("avg(ALL value)", None, None),
        ("sum( all(value))", None, None),
        ("avg(CAST(value AS DECIMAL(9, 2)))", "gives decimal(", "CAST(value AS DECIMAL(9, 2)) AS"),
    ],
)
def test_what_panes_cannot_put_together_is_told_with_the_way_out(landing, text, problem, way_out):
    problems = not_in_two_steps(landing, a_spec(text))
    assert (in_two_steps(landing, a_spec(text)) is None) == bool(problems)
    assert list(problems) == ([] if problem is None else ["total"])
    for found in problems.values():
        assert repr(text) in found[0]
        assert problem in found[0]
        assert way_out in found[1]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("count(*)", []),
        ("sum(VALUE)", ["value"]),
        ("max(struct(k, value)).k", ["k", "value"]),
        ("sum(value) FILTER (WHERE k = 'x')", ["k", "value"]),
        ("max_by(k, landed_at)", ["k", "landed_at"]),
        ("count(DISTINCT *)", ["k", "landed_at", "value"]),
        ("sum(value >>> 1)", ["k", "landed_at", "value"]),
        ("array_sort(transform(array_sort(collect_list(k)), value -> value))", ["k"]),
    ],
)
def test_only_what_an_aggregate_reads_is_kept_of_a_record(landing, text, read):
    checked(landing, text)
    source = SourceColumns.of(landing)
    assert columns_read(landing, a_spec(text), source) == read
