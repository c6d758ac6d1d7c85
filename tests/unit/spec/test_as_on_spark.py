"""What Sail computes otherwise is written so that it does not, and all else stays as it is."""

from __future__ import annotations

import pytest

from strandline.sql.as_on_spark import as_on_spark
from strandline.sql.ties import with_decided_ties

TYPES = {
    **{"i": "int", "j": "int", "b": "tinyint", "l": "bigint", "x": "double", "f": "float"},
    **{"n": "decimal(10,2)", "s": "string", "t": "timestamp", "d": "date", "m": "map<int,int>"},
    **{
        "a": "array<int>",
        "((a)[0])": "int",
        "(0)": "int",
        "xs": "array<double>",
        "r": "struct<p:bigint>",
    },
    **{"1": "int", "0": "int", "1.5": "decimal(2,1)", "CAST(1.5 AS DOUBLE)": "double"},
    "l + 1": "bigint",
}
"""Of the columns and the parts of expressions below."""
ONE_X = "NANVL(x + CAST(0 AS DOUBLE), CAST('NaN' AS DOUBLE))"
MICROS = "UNIX_MICROS(CAST(t AS TIMESTAMP))"
WIDE = "AS DECIMAL(20, 0))"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("l + 1", f"CAST(CAST(l {WIDE} + CAST(1 {WIDE} AS BIGINT)"),
        ("i * j", "CAST(CAST(i AS BIGINT) * CAST(j AS BIGINT) AS INT)"),
        ("b - b", "CAST(CAST(b AS BIGINT) - CAST(b AS BIGINT) AS TINYINT)"),
        ("~b", "CAST(~(b) AS TINYINT)"),
        (
            "transform(a, (v, k) -> v + k)",
            "TRANSFORM(a, (v, k) -> CAST(CAST(v AS BIGINT) + CAST(k AS BIGINT) AS INT))",
        ),
        ("sum(l)", "CAST(SUM(CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        ("sum(ALL l)", "CAST(SUM(CAST(l AS DECIMAL(38, 0))) AS BIGINT)"),
        (
            "sum(DISTINCT l) FILTER (WHERE i > 0)",
            "CAST(SUM(DISTINCT CAST(l AS DECIMAL(38, 0))) FILTER(WHERE i > 0) AS BIGINT)",
        ),
        (
            "max(x)",
            "CASE WHEN BOOL_OR(ISNAN(x)) THEN CAST('NaN' AS DOUBLE) "
            "WHEN BOOL_AND(x = CAST('-Infinity' AS DOUBLE)) THEN CAST('-Infinity' AS DOUBLE) "
            "ELSE MAX(CASE WHEN NOT ISNAN(x) THEN x END) END",
        ),
        ("x > 1.5D", f"{ONE_X} > CAST(1.5 AS DOUBLE)"),
        (r"s RLIKE 'a[.$]\\.'", r"s RLIKE 'a[.$]\\.'"),
        ("s RLIKE 'a.c'", r"s RLIKE 'a[^\\n\\r\\x{85}\\x{2028}\\x{2029}]c'"),
        ("count(DISTINCT x, i)", f"COUNT(DISTINCT {ONE_X}, i)"),
        (
            "unix_millis(t)",
            f"CAST(({MICROS} - PMOD({MICROS}, 1000)) DIV 1000 AS BIGINT)",
        ),
        (
            "CAST(t AS INT)",
            f"CAST(({MICROS} - PMOD({MICROS}, 1000000)) DIV 1000000 AS INT)",
        ),
        (
            "timestamp_millis(l)",
            "CASE WHEN l BETWEEN -9223372036854775 AND 9223372036854775 THEN TIMESTAMP_MILLIS(l) "
            "WHEN NOT l IS NULL "
            "THEN RAISE_ERROR('[ARITHMETIC_OVERFLOW] timestamp_millis() overflows') END",
        ),
        ("datediff(DAY, t, d)", "(TIMESTAMPDIFF(HOUR, t, d) DIV 24)"),
    ],
)
def test_what_sail_computes_otherwise_is_written_otherwise(text, written):
    assert as_on_spark(text, TYPES.get).upper() == written.upper()


@pytest.mark.parametrize(
    "text",
    [
        "sum(i)", "max(i)", "-l", "abs(l)", "round(x)", "CAST(s AS INT)", "median(i)", "i > 1",
        "x + 1", "n * 1.5", "-x", "-1", "d + 1", "s || 'a'",
        "CAST(t AS DATE)", "builtin.sum(l)", "max(sum)", "max('sum(l)')", "it's", "max_by(m, t)",
    ],
)  # fmt: skip
def test_all_else_stays_as_it_is(text):
    assert as_on_spark(text, TYPES.get) == text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("max_by(i, t)", "CASE WHEN NOT t IS NULL THEN STRUCT(NOT t IS NULL, t, NOT i IS NULL, i)"),
        (
            "min_by(s, r) FILTER (WHERE i > 0)",
            "CASE WHEN NOT r IS NULL THEN STRUCT(NOT r IS NULL, NOT (r).`p` IS NULL, (r).`p`, "
            "NOT s IS NULL, s)",
        ),
    ],
)
def test_of_records_with_equal_keys_the_values_decide_on_each_engine(text, key):
    for write in (as_on_spark, with_decided_ties):
        assert key in write(text, TYPES.get)
