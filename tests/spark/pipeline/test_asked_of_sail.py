"""Sail is asked of a pipeline's expressions before it observes by them."""

from __future__ import annotations

import re

import pytest
from engines import ENGINE
from lakes import Line, a_record, a_spec, land
from pyspark.sql import types as T
from replayed import assert_told_by_replay, published

from strandline.engine.records.expressions import column_and_type
from strandline.errors import InputError
from strandline.lake.landing.open_landing import open_landing
from strandline.pipeline.request.ask_engine import require_all_expressions

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(ENGINE != "sail", reason="with ENGINE=sail"),
]
ONE = {"source__channels": ["a"]}


@pytest.fixture(scope="module")
def one_row(spark, tmp_path_factory) -> Line:
    """A lake where one record has landed; not to be changed."""
    line = Line(spark, tmp_path_factory.mktemp("one row"), a_spec(**ONE))
    land(line.folder, [a_record("1 10:00", "1 09:00")])
    return line


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("aggregates__total", "sum(CASE WHEN amount > 1 THEN 1 ELSE 2.5 END)", "CASE: Sail takes"),
        ("aggregates__total", "max_by(amount, struct(amount))", "max_by(): Sail orders nulls"),
        ("aggregates__total", "map('a', max(amount) / 2)", "Sail may miss changes of map<"),
        ("source__where", "amount * 1e0 > 0.5", ">: Sail makes DECIMAL of DOUBLE"),
        (
            "source__valid",
            "zip_with(array(amount), array(1), (x, y) -> x > y)[0]",
            "is not supported",
        ),
        ("aggregates__total", "max(vector_norm(array(CAST(amount AS FLOAT))))", "is not supported"),
        ("source__valid", "1 / 0 > amount", "fails before it is given a row (divide by zero"),
        ("aggregates__total", "max(upper(device, 1))", "is refused by Sail for its columns or ty"),
        ("source__where", "array_position(array(amount * 1D), 2D) > 0", "computes no x -> … here"),
        ("source__arrival_time", "transform(array(arrived_at), v -> v)[0]", "computes no x -> …"),
        ("source__channel", "transform(array(device), v -> v)[0]", "computes no x -> … here"),
    ],
)
def test_what_sail_computes_otherwise_is_refused(one_row, path, text, problem):
    spec = a_spec(**ONE, **{path: text})
    with pytest.raises(InputError, match=r"--engine spark|try_divide") as caught:
        require_all_expressions(open_landing(one_row.spark, one_row.lake, spec))
    assert caught.value.place == f"meter: {path.replace('__', '.')}"
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("total", "way_out"),
    [
        ("max(IF(amount = 7, double('NaN'), double(amount)))", "abs(x) < double('Infinity')), or"),
        ("max(CAST(IF(amount = 7, 1e20D, 1D) AS DECIMAL(28, 6)))", "FILTER (WHERE abs(x) < 1e16D)"),
        ("max(CAST(IF(amount = 7, 1e300D, 1D) AS DECIMAL(28, 6)))", "use try_cast()"),
        ("max(amount * 2000000000000000000 * length(unhex('FF')))", "try_multiply()"),
        ("sum(CAST(amount AS INT) * 400000000) FILTER (WHERE amount > 2)", "try_multiply()"),
        ("max(abs(IF(amount = 7, -9223372036854775807, 0) - 1))", "CASE WHEN … END"),
    ],
)
def test_a_value_that_sail_would_compute_otherwise_is_named(spark, tmp_path, total, way_out):
    land(tmp_path, [a_record("1 10:00", "1 10:00", amount=amount) for amount in (3, 7, 2)])
    line = Line(spark, tmp_path, a_spec(**ONE, aggregates__total=total))
    with pytest.raises(InputError, match=re.escape(way_out)) as failed:
        line.advance("2")
    assert failed.value.place == "meter: aggregates.total"
    assert "fails on amount = 7 (" in failed.value.problem


def test_what_is_written_for_sail_also_filters_the_landing_table(spark, tmp_path):
    rows = [
        a_record(f"{day} 10:0{n}", f"{day} 09:0{n}", amount=n) for day in (1, 2) for n in (1, 5)
    ]
    land(tmp_path, rows)
    written = {
        "source__where": "round(amount * 1D, 2) > 2D AND CAST(amount * 1D AS DECIMAL(10, 2)) > 2",
        "source__arrival_time": "CAST(unix_seconds(arrived_at) + amount - amount AS TIMESTAMP)",
        "source__event_time": "timestamp_millis(unix_millis(happened_at) + amount - amount)",
        "aggregates__mean": "avg(amount) FILTER (WHERE abs(amount * 1D) < double('Infinity'))",
    }
    line = Line(spark, tmp_path, a_spec(**ONE, **written))
    line.advance("3")
    chosen = [row for row in rows if row["amount"] > 2]
    assert published(line)["windows"]
    assert_told_by_replay(line, chosen, "3")


def test_an_expression_is_computed_for_no_row_that_a_condition_before_it_excludes(spark, tmp_path):
    """Sail computes both sides of AND, and what stands behind `where`: such runs once failed."""
    land(tmp_path, [a_record("1 10:00", "1 10:00", amount=amount) for amount in (0, 1, 2, 3, 7)])
    guarded = "count_if(amount > 1 AND 10 / (amount - 1) > 2)"
    cast = "count(*) FILTER (WHERE device <> 'd1' AND device > 2)"
    line = Line(
        spark,
        tmp_path,
        a_spec(
            **ONE,
            source__where="amount <> 0",
            source__valid="amount IS NOT NULL AND 10 % amount < 3",
            source__key={"k": "12 DIV amount"},
            source__sequence="12 DIV amount",
            watermark__emit="per_record",
            aggregates={"n": "count(*)", "more": guarded, "none": cast},
        ),
    )
    assert line.backfill("1", "2", close=True).status == "published"
    rows = [tuple(row[name] for name in ("k", "n", "more", "none")) for row in line.rows("windows")]
    assert sorted(rows) == [(4, 1, 1, 0), (6, 1, 1, 0), (12, 1, 0, 0)]
    assert [row["reason"] for row in line.rows("quarantine")] == ["invalid"]


def test_behind_a_where_of_many_terms_an_expression_is_written_for_sail(spark, tmp_path):
    """Inside of one CASE both were nested too deeply to be written; Sail's own round gives 1.0."""
    land(tmp_path, [a_record("1 10:00", "1 10:00", amount=1005)])
    where = " OR ".join(f"amount = {n}" for n in range(909, 1006))
    key = {"k": "round(CAST(amount AS DOUBLE) / 1000, 2)", "more": "100 DIV (amount - 1000)"}
    line = Line(spark, tmp_path, a_spec(**ONE, source__where=where, source__key=key))
    assert line.backfill("1", "2", close=True).status == "published"
    assert [(row["k"], row["more"]) for row in line.rows("windows")] == [(1.01, 20)]


def test_a_key_with_floating_point_inside_of_an_array_is_refused_before_anything_is_observed(
    spark, tmp_path
):
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    key = {"k": "array(CAST(amount AS DOUBLE))"}
    line = Line(spark, tmp_path, a_spec(**ONE, source__key=key))
    with pytest.raises(InputError, match=r"key.k: is array<double>, in which Sail .* two values"):
        line.backfill("1", "2")
    assert not (line.root / "timeline").exists()


def test_the_types_of_all_aggregates_are_one_question_and_the_columns_another(
    spark, tmp_path, monkeypatch
):
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    more = {"aggregates__most": "max(position)", "aggregates__devices": "count(device)"}
    line = Line(spark, tmp_path, a_spec(**ONE, **more))
    landing = open_landing(spark, line.lake, line.spec)
    asked = schemas_asked(spark, monkeypatch)
    require_all_expressions(landing)
    assert len(asked) == 2


def test_the_type_of_an_expression_over_the_same_columns_is_asked_once(spark, monkeypatch):
    asked = schemas_asked(spark, monkeypatch)
    for _ in range(3):
        rows = spark.createDataFrame([("a", 1)], "name string, of_one_test bigint")
        assert column_and_type(rows, "timestamp_millis(of_one_test)", "")[1] == T.TimestampType()
    assert len(asked) == 3 + 1  # the columns of each, and the expression


def test_a_run_asks_for_no_schema_of_rows_that_it_has_staged(spark, tmp_path, monkeypatch):
    times = [("1 10:00", "1 09:00"), ("1 20:00", "1 20:00"), ("1 21:00", "1 09:00")]
    land(tmp_path, [a_record(*of_one) for of_one in times])  # the last is late
    line = Line(spark, tmp_path, a_spec(**ONE))
    asked = schemas_asked(spark, monkeypatch)
    line.advance("2")
    assert not [plan for plan in asked if "run_id" in str(plan)]


def schemas_asked(spark, monkeypatch) -> list:
    """The plans whose schema Sail is asked for from now on."""
    asked, ask = [], spark.client.schema
    monkeypatch.setattr(spark.client, "schema", lambda plan: asked.append(plan) or ask(plan))
    return asked
