"""What is known of Spark's functions without Spark is what Spark itself says of each of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from sqlglot import tokenize

from strandline.sql import known_functions as known
from strandline.sql.calls import Sql, read_sql

pytestmark = [pytest.mark.spark, pytest.mark.only_on_spark(reason="Spark's own functions")]

OPERATORS = (
    "!", "!=", "%", "&", "*", "+", "-", "/", "<", "<<", "<=", "<=>", "<>", "=", "==", ">", ">=",
    ">>", ">>>", "^", "|", "||", "~",
)  # fmt: skip
NO_FUNCTIONS_OF_AN_EXPRESSION = {
    **dict.fromkeys(OPERATORS, "an operator"),
    **dict.fromkeys(("between", "case", "in", "when"), "a word of the grammar"),
    **dict.fromkeys(
        ("collations", "python_worker_logs", "range", "sql_keywords"), "a table, in FROM alone"
    ),
    **dict.fromkeys(("table_changes", "table_changes_by_path"), "a table, in FROM alone"),
    **dict.fromkeys(("grouping", "grouping_id"), "only with GROUP BY CUBE and its like"),
    "measure": "only over metric views",
}
"""What SHOW FUNCTIONS lists that no expression of a pipeline can call, and why."""
OF_THE_GRAMMAR = {"timestampadd", "timestampdiff"}
"""What an expression can call and SHOW FUNCTIONS does not list."""
STRICTER_THAN_SPARK = {
    "aes_encrypt": "without a mode it draws its initialisation vector",
}
"""Functions that Spark takes for deterministic, and why they are not."""
UP_TO_TIES = {"max_by", "min_by"}
"""Of records that are equal in what they go by, any one's value: the user names a finer order."""
UNREADABLE = {
    **dict.fromkeys((">>>", "shiftrightunsigned"), "an operator that sqlglot does not know"),
    "bitmap_count": "X '10', with a space, is not read",
}
"""Functions with examples that are not understood without the engine, and why."""
READ_OTHERWISE = {
    "SELECT count(*) FROM VALUES (NULL), (5), (5), (20) AS tab(col)": "rows of NULL are cast first",
    **dict.fromkeys(
        (
            rf"SELECT '\\abc' AS S, S {like} r'\\abc', S {like} '\\\\abc'"
            for like in ("like", "ilike")
        ),
        "S is a column of the same SELECT",
    ),
}
"""Examples whose columns differ, and why that says nothing of an expression of a pipeline."""
CONVERSIONS = (
    "bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint",
    "string", "time", "timestamp", "tinyint",
)  # fmt: skip
OWN_EXAMPLES = {
    **{name: f"SELECT {name}(NULL)" for name in CONVERSIONS},
    "timestampadd": "SELECT timestampadd(HOUR, 1, t) FROM VALUES (DATE'2024-01-01') AS tab(t)",
    "timestampdiff": "SELECT timestampdiff(DAY, t, t) FROM VALUES (DATE'2024-01-01') AS tab(t)",
    "bitmap_count": "SELECT bitmap_count(X'1010')",
}
"""Examples of functions that Spark gives none of, or none that can be compared."""
NOT_COMPARED = {
    **dict.fromkeys(
        ("from_avro", "from_protobuf", "schema_of_avro", "to_avro", "to_protobuf"),
        "a library that is not installed",
    ),
    **dict.fromkeys(("session_window", "window", "window_time"), "an example with GROUP BY"),
    **dict.fromkeys(("variant_explode", "variant_explode_outer"), "an example in FROM"),
    **dict.fromkeys(
        (
            "approx_top_k_combine", "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double",
            "kll_merge_agg_float", "theta_intersection_agg", "theta_union_agg",
            "tuple_intersection_agg_double", "tuple_intersection_agg_integer",
            "tuple_union_agg_double", "tuple_union_agg_integer",
        ),
        "an example over a subquery; below it is called over records in several orders",
    ),
}  # fmt: skip
"""Functions without an example that can be compared, and why."""
CLASSES_OF_CLOCKS = {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"}
EXAMPLE = re.compile(r"> (SELECT .*?);\s*$", re.MULTILINE | re.DOTALL)
AFTER_FROM = {"WHERE", "GROUP_BY", "ORDER_BY", "HAVING", "SORT_BY", "LATERAL", "JOIN"}


@pytest.fixture(scope="module")
def described(spark) -> dict[str, str]:
    """What DESCRIBE FUNCTION EXTENDED says of each function, without a query for each."""
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    catalog, jvm = spark._jsparkSession.sessionState().catalog(), spark._jvm
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    return {name: catalog.lookupFunctionInfo(identifier(name)).getExtended() for name in names}


def test_every_function_of_spark_is_known_or_named_with_a_reason(described):
    unknown = {*described} - known.KNOWN - {*NO_FUNCTIONS_OF_AN_EXPRESSION}
    assert unknown == set(), "Spark has new functions: look at each, and say what it depends on"
    assert known.KNOWN - {*described} == OF_THE_GRAMMAR, "functions that Spark does not have"
    assert not known.KNOWN & {*NO_FUNCTIONS_OF_AN_EXPRESSION}


def test_each_known_function_is_of_one_kind():
    kinds = (
        known.AGGREGATES, known.CHANCE, known.CLOCKS, known.OF_THE_SESSION, known.OTHER_ROWS,
        known.OF_NEIGHBOURS,
    )  # fmt: skip
    assert sum(map(len, kinds)) == len(frozenset().union(*kinds))


def test_whatever_spark_calls_non_deterministic_in_words_is_refused(described):
    words = re.compile(r"non-?deterministic|not deterministic", re.IGNORECASE)
    said = {name for name, text in described.items() if words.search(text)}
    assert {"collect_list", "rand", "listagg"} <= said
    assert said <= known.CHANCE | {*known.ORDER_DEPENDENT} | UP_TO_TIES


# ----------------------------------------------------------- the examples that Spark itself gives


@dataclass(frozen=True)
class Example:
    """A query of Spark's own documentation, and the expressions that it selects."""

    query: str
    selected: list[str]
    from_plain_rows: bool

    @classmethod
    def of(cls, query: str) -> Example:
        tokens = tokenize(query, read="spark")
        depth, cuts, end, plain = 0, [tokens[0].end + 1], len(query), True
        for token, after in zip(tokens[1:], [*tokens[2:], None], strict=True):
            kind = token.token_type.name
            depth += (kind in {"L_PAREN", "L_BRACKET"}) - (kind in {"R_PAREN", "R_BRACKET"})
            if depth == 0 and end == len(query) and kind == "COMMA":
                cuts.append(token.end + 1)
            if depth == 0 and end == len(query) and kind == "FROM":
                end = token.start
                plain = after is not None and after.token_type.name == "VALUES"
            plain &= not (depth == 0 and kind in AFTER_FROM)
        ends = [*(cut - 1 for cut in cuts[1:]), end]
        return cls(query, [query[a:b] for a, b in zip(cuts, ends, strict=True)], plain)


@dataclass(frozen=True)
class Answers:
    """What is asked of the expressions of a query."""

    of_many: bool
    by_chance: bool
    by_clock: bool
    over: bool
    columns: frozenset[str]


def known_of(sqls: list[Sql]) -> Answers:
    calls = [call for sql in sqls for call in sql.calls]
    read = {one.path[0].lower() for sql in sqls for one in sql.reads}
    bare = read & known.WITHOUT_PARENTHESES
    return Answers(
        of_many=any(call.is_aggregate for call in calls) and not any(sql.over for sql in sqls),
        by_chance=any(call.is_of(known.CHANCE) for call in calls),
        by_clock=any(call.is_of(known.CLOCKS) for call in calls) or bool(bare & known.CLOCKS),
        over=any(sql.over for sql in sqls),
        columns=frozenset(read - bare),
    )


def said_by_spark(spark, query: str) -> Answers:
    """The same by the query as Spark has analysed it."""
    plan = spark.sql(query)._jdf.queryExecution().analyzed()
    expressions, kinds, columns = [], set(), set()
    for node in below(plan):
        kinds.add(node.getClass().getSimpleName())
        expressions += [one for top in listed(node.expressions()) for one in below(top)]
        if not node.children().size():
            columns |= {str(one.name()).lower() for one in listed(node.output())}
    classes = {one.getClass().getSimpleName() for one in expressions}
    read = {
        str(one.name()).lower()
        for one in expressions
        if one.getClass().getSimpleName() == "AttributeReference"
    }
    return Answers(
        of_many="Aggregate" in kinds,
        by_chance=any(not one.deterministic() for one in expressions),
        by_clock=bool(classes & CLASSES_OF_CLOCKS),
        over="Window" in kinds,
        columns=frozenset(read & columns),
    )


def below(node):
    yield node
    for child in listed(node.children()):
        yield from below(child)


def listed(sequence) -> list:
    return [sequence.apply(i) for i in range(sequence.size())]


@pytest.fixture(scope="module")
def with_all_types(spark):
    """The session with types that Spark does not have by default: TIME."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


def test_each_example_of_a_function_is_understood_as_spark_analyses_it(described, with_all_types):
    compared, differ, unread = set(), {}, set()
    for name in known.KNOWN | {*described}:
        queries = EXAMPLE.findall(described.get(name, ""))
        for query in [*queries, *([OWN_EXAMPLES[name]] if name in OWN_EXAMPLES else ())]:
            example = Example.of(query)
            sqls = [read_sql(one) for one in example.selected]
            if not all(isinstance(one, Sql) for one in sqls):
                unread.add(name)
                continue
            if not example.from_plain_rows or "(SELECT" in query:
                continue
            try:
                said = said_by_spark(with_all_types, query)
            except AnalysisException:
                continue
            compared.add(name)
            if known_of(sqls) != said:
                differ[query] = (name, known_of(sqls), said)
    assert unread == {*UNREADABLE}
    assert {q: d for q, d in differ.items() if d[0] not in STRICTER_THAN_SPARK} == {
        query: found for query, found in differ.items() if query in READ_OTHERWISE
    }
    assert {*READ_OTHERWISE} <= {*differ}
    assert {found[0] for found in differ.values()} >= {*STRICTER_THAN_SPARK}
    assert known.KNOWN - compared == {*NOT_COMPARED}


# ------------------------------------------------------------- whether the order of records counts

SKETCHES = {
    "hll": "hll_sketch_agg(n)",
    "kll_bigint": "kll_sketch_agg_bigint(n)",
    "kll_double": "kll_sketch_agg_double(x)",
    "kll_float": "kll_sketch_agg_float(CAST(x AS FLOAT))",
    "theta": "theta_sketch_agg(n)",
    "tuple_double": "tuple_sketch_agg_double(n, x)",
    "tuple_integer": "tuple_sketch_agg_integer(n, n)",
    "top": "approx_top_k_accumulate(n, 100)",
    "bits": "bitmap_construct_agg(bitmap_bit_position(k))",
}
OF_TWO = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
    "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip
CALLS = {
    **{name: f"{name}(x, y)" for name in OF_TWO},
    **{name: f"{name}(b)" for name in ("any", "bool_and", "bool_or", "count_if", "every", "some")},
    **{name: f"{name}(v)" for name in ("vector_avg", "vector_sum")},
    **{name: f"{name}(n, x)" for name in ("max_by", "min_by")},
    **{name: f"{name}(s)" for name in ("listagg", "mode", "string_agg")},
    **{name: f"{name}(n)" for name in ("bit_and", "bit_or", "bit_xor")},
    **{name: f"{name}(x, 0.5, 100)" for name in ("approx_percentile", "percentile_approx")},
    **{
        name: f"{name}(0.5) WITHIN GROUP (ORDER BY x)"
        for name in ("percentile_cont", "percentile_disc")
    },
    "approx_top_k": "approx_top_k(n, 5)",
    "percentile": "percentile(x, 0.5)",
    "collect_set": "collect_set(CAST(x * 7 AS INT))",
    "histogram_numeric": "histogram_numeric(n, 5)",
    "count_min_sketch": "count_min_sketch(n, 0.5D, 0.5D, 1)",
    "schema_of_variant_agg": "schema_of_variant_agg(parse_json(j))",
    **{text.partition("(")[0]: text for text in SKETCHES.values()},
}
OVER_SKETCHES = {
    "approx_top_k_combine": "approx_top_k_combine(top)",
    "bitmap_and_agg": "bitmap_and_agg(bits)",
    "bitmap_or_agg": "bitmap_or_agg(bits)",
    "hll_union_agg": "hll_union_agg(hll)",
    **{
        f"kll_merge_agg_{of}": f"kll_merge_agg_{of}(kll_{of})"
        for of in ("bigint", "double", "float")
    },
    **{f"theta_{how}_agg": f"theta_{how}_agg(theta)" for how in ("intersection", "union")},
    **{
        f"tuple_{how}_agg_{of}": f"tuple_{how}_agg_{of}(tuple_{of})"
        for how in ("intersection", "union")
        for of in ("double", "integer")
    },
}
ROWS = """
id % 4999 AS n, CAST((id * 7919 % 20011) / 7 AS DOUBLE) AS x, (id * 31 % 997) / 3 AS y,
id % 5 = 0 AS b, array(CAST(id % 7 / 3 AS FLOAT)) AS v, concat('s', id % 1000) AS s,
concat('{"a', id % 5, '":1}') AS j, id % 8 AS k
"""


def same(one, other) -> bool:
    """Whether two answers are, but for what floating point loses on the way."""
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def answers_in_several_orders(rows, calls, partitions: int) -> dict[str, bool]:
    """Of some aggregates whether they answer the same whatever the order and the partitions."""
    orders = [
        rows.coalesce(1).sortWithinPartitions("k", "n", "x"),
        rows.coalesce(1).sortWithinPartitions(F.desc("k"), F.desc("n"), F.desc("x")),
        rows.repartition(partitions, F.hash("n", "x")).sortWithinPartitions(F.hash("x", "k")),
    ]
    asked = [F.expr(text).alias(name) for name, text in calls.items()]
    first, *others = (one.agg(*asked).first().asDict() for one in orders)
    return {name: all(same(first[name], other[name]) for other in others) for name in calls}


def test_the_aggregates_that_answer_otherwise_in_another_order_are_those_that_are_refused(session):
    rows = session.sql(f"SELECT {ROWS} FROM range(39992)").localCheckpoint()
    others = known.AGGREGATES - {*CALLS} - {*OVER_SKETCHES}
    the_same = answers_in_several_orders(rows, CALLS | {name: f"{name}(x)" for name in others}, 9)
    of_few, of_many = (  # an empty partition would throw: approx_top_k_combine cannot take one
        answers_in_several_orders(sketches_of(rows, by), OVER_SKETCHES, partitions=2)
        for by in ("n % 300", "k")
    )
    the_same |= {name: of_few[name] and of_many[name] for name in OVER_SKETCHES}
    assert {*the_same} == known.AGGREGATES
    change = {name for name, is_same in the_same.items() if not is_same}
    assert change == {*known.ORDER_DEPENDENT} | UP_TO_TIES


def sketches_of(rows, by: str):
    """A sketch of each kind of some groups of records; `k`, `n`, `x` order them."""
    made = rows.groupBy(F.expr(by).alias("k")).agg(
        *(F.expr(text).alias(name) for name, text in SKETCHES.items())
    )
    return made.withColumns({"n": F.col("k"), "x": F.hash("k")}).localCheckpoint()
