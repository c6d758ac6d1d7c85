"""A Spark SQL expression is taken to pieces as Spark does it: its calls, its columns, its type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.sql.calls import NotUnderstood, Sql, read_sql


def understood(text: str) -> Sql:
    sql = read_sql(text)
    assert isinstance(sql, Sql), sql
    return sql


def columns(text: str) -> list[str]:
    return [".".join(read.path) for read in understood(text).reads]


def calls(text: str) -> list[str]:
    return [call.name for call in understood(text).calls]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("amount", ["amount"]),
        ("`odd name` + `a``b`", ["odd name", "a`b"]),
        ("`a.b`.c", ["a.b.c"]),
        ("a.b.c.d.e.f", ["a.b.c.d.e.f"]),
        ("a[0].b", ["a"]),
        ("a['k'].b", ["a"]),
        ("max(struct(a, b)).a", ["a", "b"]),
        ("from_json(body, 'x INT').x", ["body"]),
        ("count(*)", []),
        ("count(DISTINCT a, b)", ["a", "b"]),
        ("sum(x) FILTER (WHERE k = 'y')", ["x", "k"]),
        ("listagg(k, ',') WITHIN GROUP (ORDER BY t)", ["k", "t"]),
        ("transform(list, x -> x + b)", ["list", "b"]),
        ("transform(list, X -> x.field + b)", ["list", "b"]),
        ("transform(list, (x, i) -> x * i)", ["list"]),
        ("aggregate(list, 0, (acc, x) -> acc + x)", ["list"]),
        ("transform(list, x -> filter(x.inner, y -> y > x.least + z))", ["list", "z"]),
        ("x::int", ["x"]),
        ("CAST(x AS STRUCT<y: INT>)", ["x"]),
        ("EXTRACT(HOUR FROM t)", ["t"]),
        ("date_part('HOUR', t)", ["t"]),
        ("dateadd(DAY, n, t)", ["n", "t"]),
        ("date_add(t, n)", ["t", "n"]),
        ("timestampdiff(HOUR, a, b)", ["a", "b"]),
        ("t + INTERVAL 1 DAY", ["t"]),
        ("CASE WHEN a > 1 THEN b ELSE c END", ["a", "b", "c"]),
        ("if(a, b, c)", ["a", "b", "c"]),
        ("a BETWEEN b AND c", ["a", "b", "c"]),
        ("a IN (b, 'c')", ["a", "b"]),
        ("a LIKE ANY ('x', b)", ["a", "b"]),
        ("named_struct('x', a).x", ["a"]),
        ("struct(a AS x)", ["a"]),
        ("mask(a, upperChar => b)", ["a", "b"]),
        ("catalog.schema.f(a)", ["a"]),
        ("a -- b", ["a"]),
        ("date", ["date"]),
        ("max(timestamp)", ["timestamp"]),
        ("left + right", ["left", "right"]),
        ("current_date", ["current_date"]),
        ("x IN (SELECT y FROM z)", ["x"]),
        ("sum(a) AS total", ["a"]),
    ],
)
def test_the_columns_that_an_expression_reads_are_those_of_its_records(text, read):
    assert columns(text) == read


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("approx_count_distinct(a)", ["approx_count_distinct"]),
        ("COUNT_IF(a)", ["count_if"]),
        ("to_timestamp(a)", ["to_timestamp"]),
        ("any(a > 1)", ["any"]),
        ("map('a', array(1, 2))", ["map", "array"]),
        ("date(a)", ["date"]),
        ("builtin.rand()", ["rand"]),
        ("system.builtin.rand()", ["rand"]),
        ("catalog.schema.F(a)", ["catalog.schema.f"]),
        ("first(a) IGNORE NULLS", ["first"]),
        ("f(x).y", ["f"]),
        ("TIMESTAMP'now'", ["now"]),
        ("TIMESTAMP'2024-01-01'", []),
        ("x IN (SELECT rand())", []),
    ],
)
def test_a_call_keeps_the_name_that_it_is_written_with(text, called):
    assert calls(text) == called


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("collect_list(a)", True),
        ("array_sort(collect_list(a))", False),
        ("array_sort(collect_list(a) FILTER (WHERE b))", False),
        ("sort_array(array_agg(a), false)", False),
        ("array_sort(transform(collect_list(a), x -> x))", True),
        ("array_sort(any_value(a))", True),
        ("array_sort(collect_list(a), (x, y) -> x.i - y.i)", True),
        ("array_sort(collect_list(a)[0])", True),
        ("array_sort(mode(a))", True),
        ("listagg(a, ',')", True),
        ("listagg(a, ',') WITHIN GROUP (ORDER BY a)", False),
        ("listagg(a) WITHIN GROUP (ORDER BY a) FILTER (WHERE b)", False),
        ("listagg(a) WITHIN GROUP (ORDER BY b)", True),
        ("listagg(concat(a, c)) WITHIN GROUP (ORDER BY a, b)", True),
        ("listagg(a) WITHIN GROUP (ORDER BY b DESC, A)", False),
        ("listagg(CAST(a AS STRING)) WITHIN GROUP (ORDER BY b, a)", True),
        ("listagg(CAST(a AS STRING)) WITHIN GROUP (ORDER BY a, cast(A AS STRING))", False),
        ("listagg(`a`) WITHIN GROUP (ORDER BY a)", False),
        ("listagg(upper(`r`.p)) WITHIN GROUP (ORDER BY UPPER(R.`P`))", False),
        ("listagg(`r.p`) WITHIN GROUP (ORDER BY r.p)", True),
        ("listagg(replace(a, 'X')) WITHIN GROUP (ORDER BY replace(a, 'x'))", True),
        ("string_agg(DISTINCT upper(a), ',') WITHIN GROUP (ORDER BY upper(a))", False),
        ("listagg(DISTINCT a, b) WITHIN GROUP (ORDER BY b)", True),
        ("mode(a)", True),
        ("mode(a, true)", False),
        ("mode(a, false)", True),
        ("mode() WITHIN GROUP (ORDER BY a)", False),
        ("max_by(a, b)", False),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", False),
        ("approx_percentile(a, 0.5)", True),
    ],
)
def test_an_order_that_is_said_makes_an_aggregate_independent_of_that_of_the_records(text, depends):
    assert any(call.depends_on_order for call in understood(text).calls) == depends


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CAST(a AS BIGINT)", "bigint"),
        ("(a::date)", "date"),
        ("CAST(a AS TIMESTAMP_LTZ)", "timestamp"),
        ("CAST(a AS DEC)", "decimal(10,0)"),
        ("CAST(a AS TIME)", "time"),
        ("1L", "bigint"),
        ("1", "int"),
        ("1.5", None),
        ("'x'", "string"),
        ("a > b", "boolean"),
        ("NOT a AND b", "boolean"),
        ("a IS NULL", "boolean"),
        ("a + b", None),
        ("f(a)", None),
        ("a", None),
    ],
)
def test_a_type_is_certain_where_the_outermost_part_says_it(text, kind):
    assert understood(text).certain_type == kind


@pytest.mark.parametrize(
    ("text", "distinct"),
    [
        ("count(DISTINCT k)", True),
        ("count(DISTINCT(k))", True),
        ("avg(ALL k)", False),
        ("sum(a) + count(DISTINCT k)", True),
        ("array_distinct(k)", False),
    ],
)
def test_distinct_is_seen_wherever_it_stands(text, distinct):
    assert understood(text).is_distinct == distinct


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sum(a", "( is not closed"),
        ("sum(a))", "a ) closes nothing"),
        ("a[1", "[ is not closed"),
        ("(a[1)]", "a ) closes nothing"),
        ("it's", "a quote or a comment is not closed"),
        ("`a", "a quote or a comment is not closed"),
    ],
)
def test_what_no_engine_can_parse_is_wrong(text, reason):
    assert read_sql(text) == NotUnderstood(reason, is_wrong=True)


@pytest.mark.parametrize(
    "text", ["a >>> 1", "1 +", "a, b", "SELECT 1", "1 FROM t", "a; b", "DISTINCT a"]
)
def test_what_is_only_not_understood_is_left_to_the_engine(text):
    found = read_sql(text)
    assert isinstance(found, NotUnderstood)
    assert not found.is_wrong
    assert found.reason


@pytest.mark.parametrize(
    ("text", "all_columns"),
    [("count(*)", False), ("count(DISTINCT *)", True), ("max(struct(*))", True), ("max(a)", False)],
)
def test_a_star_reads_all_columns_unless_it_counts_rows(text, all_columns):
    assert understood(text).reads_all == all_columns


WORDS = (
    *("a", "sum", "count", "CASE", "WHEN", "THEN", "END", "CAST", "AS", "INT", "IN", "FILTER"),
    *("WHERE", "OVER", "WITHIN", "GROUP", "ORDER", "BY", "SELECT", "FROM", "INTERVAL", "1", "'x'"),
    *("(", ")", "[", "]", ",", ".", "*", "+", "->", "::", "`b`", "NOT", "DISTINCT", "TIMESTAMP"),
    *(";", "{", "}", ":", "?", "=>", "LIKE", "EXTRACT", "struct", "map", "<", ">", "--", "/*"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=20))
def test_whatever_is_written_there_is_an_answer(text):
    assert isinstance(read_sql(text), Sql | NotUnderstood)


def test_an_expression_may_be_nested_deeply():
    deep = "(" * 3000 + "a" + ")" * 3000
    assert isinstance(read_sql(deep), Sql | NotUnderstood)


@pytest.mark.parametrize("text", ["array(rand(), x)[0]", "(array(rand(), x))[0]"])
def test_what_an_array_is_made_of_is_read_also_where_an_element_of_it_is_taken(text):
    """The parser made an array of the index alone: `rand()` passed for a constant."""
    sql = understood(text)
    assert [call.name for call in sql.calls] == ["array", "rand"]
    assert [read.path for read in sql.reads] == [("x",)]


@pytest.mark.parametrize("name", ["array", "list"])
def test_an_element_of_a_column_that_has_the_name_of_a_type_is_read_of_the_column(name):
    assert [read.path for read in understood(f"{name}[0]").reads] == [(name,)]
