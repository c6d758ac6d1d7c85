"""What Sail computes otherwise is written so that it computes what Spark does, and nothing else."""

from __future__ import annotations

import pytest
from spark_answers import kept
from sqlglot import exp

from strandline.sql import times_for_sail
from strandline.sql.as_on_spark import as_on_spark
from strandline.sql.as_written import span_of, text_of
from strandline.sql.calls import NotUnderstood
from strandline.sql.column_types import NUMBER
from strandline.sql.operations import has_lambda, operands_of, operations_of, places_of
from strandline.sql.parsing import tree_of

COLUMNS = {
    **{"b": "tinyint", "i": "int", "l": "bigint", "x": "double", "n": "decimal(10,2)"},
    **{
        "s": "string",
        "d": "date",
        "t": "timestamp",
        "a": "array<int>",
        "1": "int",
        "2": "int",
        "l + 1": "bigint",
        "1 / x": "double",
        **{"false": "boolean", "l % i > 1": "boolean", "l % i": "bigint"},
        **{"s IN (1, 2)": "boolean", "i > 2": "boolean"},
        **{
            "true": "boolean",
            "'a'": "string",
            "nullif(s, 'a')": "string",
            "'2024-01-01'": "string",
        },
    },
    **{"transform(a, (x) -> x)[0]": "int", "i + 1": "int", "(l + 1)": "bigint"},
}
"""The types of columns and of parts."""
ONE_NAN = "nanvl((x) + CAST(0 AS DOUBLE), CAST('NaN' AS DOUBLE))"
WHOLE_SUM = "CAST(sum(CAST(l AS DECIMAL(38, 0))) AS BIGINT)"
I_AND_1 = "CAST(CAST(i AS BIGINT) + CAST(1 AS BIGINT) AS INT)"
SECONDS = "((unix_micros(t) + 8000000000000000000) DIV 1000000 - 8000000000000)"
DAY = times_for_sail.DAY.format("s")
L_AND_1 = "CAST(CAST(l AS DECIMAL(20, 0)) + CAST(1 AS DECIMAL(20, 0)) AS BIGINT)"


def written(text: str) -> str:
    return as_on_spark(text, lambda parts: [COLUMNS.get(part) for part in parts])


@pytest.mark.parametrize(
    ("text", "for_sail"),
    [
        ("i + 1", I_AND_1),
        ("b*b", "CAST(CAST(b AS BIGINT) * CAST(b AS BIGINT) AS TINYINT)"),
        ("l + 1", L_AND_1),
        ("i - l", "CAST(CAST(i AS DECIMAL(20, 0)) - CAST(l AS DECIMAL(20, 0)) AS BIGINT)"),
        (
            "(l + 1) * 2 > 2",
            f"(CAST(CAST(({L_AND_1}) AS DECIMAL(20, 0)) * CAST(2 AS DECIMAL(20, 0)) AS BIGINT) "
            "+ CAST(0 AS BIGINT)) > 2",
        ),
        ("NOT l + 1 > 2 OR s = '{0}'", f"NOT ({L_AND_1} + CAST(0 AS BIGINT)) > 2 OR s = '{{0}}'"),
        (
            "i <> 0 AND l % i > 1 AND s = 'a'",
            "(i <> 0 AND CAST(CASE WHEN coalesce(i <> 0, true) THEN CAST(l % i > 1 AND s = 'a' "
            "AS INT) END AS BOOLEAN))",
        ),
        (
            "i IS NULL OR i = 0 OR l % i > 1",
            "(i IS NULL OR i = 0 OR CAST(CASE WHEN NOT coalesce(i IS NULL OR i = 0, false) "
            "THEN CAST(l % i > 1 AS INT) END AS BOOLEAN))",
        ),
        ("i <> 0 AND s LIKE 'a%'", "i <> 0 AND s LIKE 'a%'"),
        (
            "CASE WHEN i = 0 THEN false ELSE l % i > 1 END",
            "CAST(CASE WHEN i = 0 THEN CAST(false AS INT) ELSE CAST(l % i > 1 AS INT) END AS "
            "BOOLEAN)",
        ),
        ("CASE WHEN i = 0 THEN false END", "CASE WHEN i = 0 THEN false END"),
        (
            "d IS NULL OR s > 2",
            "(d IS NULL OR CAST(CASE WHEN NOT coalesce(d IS NULL, false) THEN CAST(s > 2 AS INT) "
            "END AS BOOLEAN))",
        ),
        (
            "i > 2 AND CASE s WHEN 1 THEN true END",
            "(i > 2 AND CAST(CASE WHEN coalesce(i > 2, true) THEN CAST(CAST(CASE s WHEN 1 THEN "
            "CAST(true AS INT) END AS BOOLEAN) AS INT) END AS BOOLEAN))",
        ),
        ("i > 2 AND nullif(s, 'a') > 'a'", "i > 2 AND nullif(s, 'a') > 'a'"),
        ("i > 2 AND d > '2024-01-01'", "i > 2 AND d > '2024-01-01'"),
        ("i > 2 AND trim(s) = 'a'", "i > 2 AND trim(s) = 'a'"),
        (
            "IF(i = 0, false, s IN (1, 2))",
            "CAST(IF(i = 0, CAST(false AS INT), CAST(s IN (1, 2) AS INT)) AS BOOLEAN)",
        ),
        (
            "coalesce(false, l % i > 1)",
            "CAST(coalesce(CAST(false AS INT), CAST(l % i > 1 AS INT)) AS BOOLEAN)",
        ),
        (
            "nvl(l % i > 1, false)",
            "CAST(nvl(CAST(l % i > 1 AS INT), CAST(false AS INT)) AS BOOLEAN)",
        ),
        ("coalesce(i > 2, false)", "coalesce(i > 2, false)"),
        ("coalesce(l % i, l)", "coalesce(l % i, l)"),
        ("CASE WHEN i = 0 THEN l ELSE l / i END", "CASE WHEN i = 0 THEN l ELSE l / i END"),
        ("log(l)", "ln(l)"),
        (
            "CAST(date_trunc('month', d) AS DATE)",
            "CAST(date_trunc('month', CAST(d AS TIMESTAMP)) AS DATE)",
        ),
        ("left(t, 10)", "left(CAST(t AS STRING), 10)"),
        ("substr(t, 1, 10)", "substr(CAST(t AS STRING), 1, 10)"),
        (
            "pmod(x, 10D)",
            "CASE WHEN (x) % (10D) < 0 THEN ((x) % (10D) + (10D)) % (10D) ELSE (x) % (10D) END",
        ),
        ("nvl(d, d)", "coalesce(d, d)"),
        ("CAST(s AS DATE)", f"CAST({DAY} AS DATE)"),
        ("EXTRACT(MONTH FROM s)", f"EXTRACT(MONTH FROM CAST({DAY} AS DATE))"),
        ("EXTRACT(HOUR FROM s)", "EXTRACT(HOUR FROM CAST(s AS TIMESTAMP))"),
        ("d BETWEEN '2024-01-01' AND s", f"d BETWEEN '2024-01-01' AND CAST({DAY} AS DATE)"),
        ("nullif(b, i)", "CASE WHEN b = i THEN NULL ELSE b END"),
        ("nvl2(s, i, l)", "CASE WHEN (s) IS NOT NULL THEN CAST(i AS BIGINT) ELSE l END"),
        (
            "nvl2(i, l % i > 1, false)",
            "CAST(CASE WHEN (i) IS NOT NULL THEN CAST(l % i > 1 AS INT) ELSE CAST(false AS INT) "
            "END AS BOOLEAN)",
        ),
        (
            "decode(i, 1, s, 2, s, s)",
            "CASE WHEN (i) <=> (1) THEN s WHEN (i) <=> (2) THEN s ELSE s END",
        ),
        (
            "try_divide(x, i)",
            "(CAST(x AS DOUBLE) / nullif(CAST(i AS DOUBLE) + 0D, 0D))",
        ),
        ("try_add(i, i)", "try_add(i, i)"),
        ("try_add(b, i)", "TRY_CAST(CAST(b AS BIGINT) + CAST(i AS BIGINT) AS INT)"),
        ("try_multiply(x, x)", "((x) * (x))"),
        (
            "regr_count(x, i) FILTER (WHERE i > 0)",
            "CAST(regr_count(x, i) FILTER (WHERE i > 0) AS BIGINT)",
        ),
        ("-b", "CAST(negative(CAST(b AS BIGINT)) AS TINYINT)"),
        ("abs(l)", "CAST(abs(CAST(l AS DECIMAL(20, 0))) AS BIGINT)"),
        ("filter(a, x -> x + 1)", f"filter(a, x -> {I_AND_1.replace('(i ', '(x ')})"),
        ("x IS DISTINCT FROM 2", f"{ONE_NAN} IS DISTINCT FROM 2"),
        ("x > 2", f"{ONE_NAN} > 2"),
        ("count(DISTINCT x)", f"count(DISTINCT {ONE_NAN})"),
        ("max_by(s, x)", f"max_by(s, {ONE_NAN})"),
        ("max_by(named_struct('p', s), x).p", f"max_by(named_struct('p', s), {ONE_NAN}).p"),
        ("~b", "CAST(-1 - CAST(b AS INT) AS TINYINT)"),
        ("get(a, i)", "get(a, CASE WHEN (i) >= 0 THEN i END)"),
        ("get(a, 0)", "get(a, 0)"),
        ("timestamp(i)", "cast(i AS TIMESTAMP)"),
        ("timestamp(n)", "cast(n AS TIMESTAMP)"),
        ("to_timestamp(i)", "cast(i AS TIMESTAMP)"),
        ("to_timestamp(s)", "to_timestamp(s)"),
        ("to_timestamp(i, 'yyyyMMdd')", "to_timestamp(i, 'yyyyMMdd')"),
        ("try_to_timestamp(s, 'yyyy')", "try_to_timestamp(s, 'yyyy')"),
        (
            "from_utc_timestamp(t, 'MST')",
            "from_utc_timestamp(CASE WHEN (t) < timestamp'2100-01-01 00:00:00' OR month(t) IN (12, "
            "1, 2) THEN t WHEN t IS NOT NULL THEN raise_error('Sail has no from_utc_timestamp() in "
            "summers after 2099') END, CASE 'MST' WHEN 'EST' THEN 'Etc/GMT+5' WHEN 'HST' THEN "
            "'Etc/GMT+10' WHEN 'MST' THEN 'Etc/GMT+7' ELSE 'MST' END)",
        ),
        (
            "date_format(t, 'yyyy')",
            "date_format(CASE WHEN year(t) BETWEEN 1 AND 9999 THEN t WHEN t IS NOT NULL THEN "
            "raise_error('Sail has no date_format() beyond the years 1 to 9999') END, 'yyyy')",
        ),
        ("date_format(t, 'HH')", "date_format(t, 'HH')"),
        ("make_timestamp(i, 1, 1, 0, 0, 0)", "make_timestamp(i, 1, 1, 0, 0, 0)"),
        ("chr(i)", "chr(CASE WHEN (i) > 255 THEN (i) % 256 ELSE i END)"),
        ("chr(65)", "chr(65)"),
        ("round(s)", "(round(s) + CAST(0 AS DOUBLE))"),
        ("trim(BOTH '0' FROM i)", "trim(BOTH '0' FROM CAST(i AS STRING))"),
        (
            "base64(s)",
            r"btrim(regexp_replace(base64(s), '(.{76})(\r\n)?', '$1\r\n'), '\r\n')",
        ),
        (
            "from_json(s, 'p STRING').p",
            r"from_json(CASE WHEN btrim(s, ' \t\r\n') LIKE '{%' AND NOT coalesce(get_json_object"
            r"(s, '$') = btrim(s, ' \t\r\n'), false) THEN raise_error('Sail has no from_json() of "
            r"JSON that is malformed or has text behind it') WHEN btrim(s, ' \t\r\n') <> "
            r"'' THEN s END, 'p STRING').p",
        ),
        ("NOT x IN (2, x)", f"NOT {ONE_NAN} IN (2, {ONE_NAN})"),
        ("CAST(t AS INT)", f"cast({SECONDS} AS INT)"),
        ("s RLIKE 'a.'", r"s RLIKE 'a[^\\n\\r\\x{85}\\x{2028}\\x{2029}]'"),
        ("sum(l)", WHOLE_SUM),
        ("SUM( l )/count(*)", f"{WHOLE_SUM}/count(*)"),
        ("sum(DISTINCT l)", "CAST(sum(DISTINCT CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        ("sum(ALL l)", WHOLE_SUM),
        (
            "sum(l) FILTER (WHERE isnull(l + 1))",
            f"CAST(sum(CAST(l AS DECIMAL(38, 0))) FILTER (WHERE isnull({L_AND_1})) AS BIGINT)",
        ),
        (
            "sum(l + 1) FILTER (WHERE i < 2)",
            f"CAST(sum(CAST(CASE WHEN i < 2 THEN {L_AND_1} END AS DECIMAL(38, 0))) "
            "FILTER (WHERE i < 2) AS BIGINT)",
        ),
        (
            "count(i + 1) FILTER (WHERE s = '{0}')",
            f"count(CASE WHEN s = '{{0}}' THEN {I_AND_1} END) FILTER (WHERE s = '{{0}}')",
        ),
        ("nullif(x, 2)", f"CASE WHEN {ONE_NAN} = 2 THEN NULL ELSE x END"),
        ("CASE l + 1 WHEN 2 THEN 1 END", f"CASE ({L_AND_1} + CAST(0 AS BIGINT)) WHEN 2 THEN 1 END"),
    ],
)  # fmt: skip
def test_an_operation_that_differs_is_written_so_that_it_does_not(text, for_sail):
    assert written(text) == for_sail


@pytest.mark.parametrize(
    "text",
    [
        "x + 1",
        "n - 1",
        "d + i",
        "-1",
        "abs(x)",
        "s || 1 + s",
        "sum(i)",
        "sum(x)",
        "builtin.sum(l)",
        "max(sum) + try_sum(l)",
        "max('sum(l)')",
        "array(l)[0]",
        "year('2024-01-01')",
        "s BETWEEN d AND s",
        "count(DISTINCT d, s)",
        "TIME'10:00'",
        "l +",
    ],
)
def test_all_else_stays_as_it_is(text):
    assert written(text) == text


@pytest.mark.parametrize(
    "text",
    ["round(x, 2)", "CAST(x AS DECIMAL(20, 2))", "CAST(l AS TIMESTAMP)", "x > 2", "nullif(x, 2)"],
)
def test_no_lambda_stands_in_the_form_of_an_operation_on_numbers(text):
    """Sail computes none in a filter of a table, and takes ten times as long for one a row."""
    assert written(text) != text
    assert not has_lambda(written(text))


def test_a_try_cast_of_a_number_that_does_not_fit_gives_null_and_does_not_fail():
    fails = "< 1e20D THEN raise_error('Sail has no DECIMAL(22, 2) of it')"
    assert "raise_error" not in written("TRY_CAST(x AS DECIMAL(18, 2))")
    assert fails in written("TRY_CAST(x AS DECIMAL(22, 2))")


@pytest.mark.parametrize(
    ("text", "for_sail"),
    [
        (
            "sum(CAST(s AS INT)) FILTER (WHERE s <> 'a')",
            "sum(CASE WHEN s <> 'a' THEN CAST(s AS INT) END) FILTER (WHERE s <> 'a')",
        ),
        (
            "bool_or(1 / x > 2D) FILTER (WHERE i > 0)",
            "bool_or(CAST(CASE WHEN i > 0 THEN CAST(nanvl((1 / x) + CAST(0 AS DOUBLE), CAST('NaN' "
            "AS DOUBLE)) > 2D AS INT) END AS BOOLEAN)) FILTER (WHERE i > 0)",
        ),
        (
            "count(nullif(s, 2)) FILTER (WHERE i > 0)",
            "count(CASE WHEN i > 0 THEN nullif(s, 2) END) FILTER (WHERE i > 0)",
        ),
        (
            "listagg(bin(s)) WITHIN GROUP (ORDER BY bin(s), d) FILTER (WHERE i > 0)",
            "listagg(CASE WHEN i > 0 THEN bin(s) END) WITHIN GROUP "
            "(ORDER BY CASE WHEN i > 0 THEN bin(s) END, d) FILTER (WHERE i > 0)",
        ),
        ("sum(x) FILTER (WHERE i > 0)", "sum(x) FILTER (WHERE i > 0)"),
        ("sum(1 / 2) FILTER (WHERE i > 0)", "sum(1 / 2) FILTER (WHERE i > 0)"),
        (
            "sum(DISTINCT CAST(s AS INT)) FILTER (WHERE i > 0)",
            "sum(DISTINCT CAST(s AS INT)) FILTER (WHERE i > 0)",
        ),
    ],
)  # fmt: skip
def test_what_may_fail_inside_of_an_aggregate_is_computed_for_the_rows_of_its_filter(
    text, for_sail
):
    assert written(text) == for_sail


def test_a_column_whose_name_begins_with_a_digit_is_no_number():
    both = as_on_spark("1st > 1.5e3D", lambda parts: ["double"] * len(parts))
    assert both == f"{ONE_NAN.replace('(x)', '(1st)')} > 1.5e3D"
    assert [
        text for text in ("1", "1.", ".5", "1e-5", "2bd", "1st", "1_0") if NUMBER.fullmatch(text)
    ] == [*("1", "1.", ".5", "1e-5", "2bd")]


def test_nested_operations_grow_by_a_factor_and_not_exponentially():
    text = "abs(l + 1)"
    for _ in range(6):
        text = f"abs({text} * {text})"
    assert len(as_on_spark(text, lambda parts: ["bigint"] * len(parts))) < 20 * len(text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("filter(a, v -> v + 1 > 2)", "transform(a, (v) -> v)[0]"),
        (
            "transform(a, (v, n) -> n * 2)",
            "transform(array(0), (n) -> transform(a, (v) -> n)[0])[0]",
        ),
        (
            "aggregate(a, 0L, (v, w) -> v + 1)",
            "transform(a, (w) -> transform(array(0L), (v) -> v)[0])[0]",
        ),
        ("transform(a, v -> exists(a, w -> w - 1 > 2))", "transform(a, (w) -> w)[0]"),
    ],
)  # fmt: skip
def test_the_argument_of_a_lambda_has_the_type_of_an_element(text, asked):
    parts = []
    as_on_spark(text, lambda texts: parts.extend(texts) or [None] * len(texts))
    assert asked in parts


def test_an_expression_that_is_nested_too_deeply_is_not_understood():
    assert len(operations_of(" + ".join(["l"] * 99))) == 98
    found = operations_of(" + ".join(["l"] * 5000))
    assert found == NotUnderstood("it is nested in more than 100 levels", is_wrong=False)


def test_the_place_of_an_operand_is_that_of_its_text():
    checked = 0
    for query, _ in [*kept()][::8]:
        for text in query.selected:
            tree = tree_of(text)
            if not isinstance(tree, exp.Expr):
                continue
            for operand in (one for node in places_of(tree) for one in operands_of(node)):
                if (span := span_of(operand)) and not text.startswith("s LIKE ANY"):
                    assert text[slice(*span)] == text_of(operand)
                    assert tree_of(text[slice(*span)]) == operand
                    checked += 1
    assert checked > 500
