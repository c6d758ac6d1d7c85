"""What expressions answer is what Spark answers, on each engine, or it is refused by name there.

Spark's answers are kept in tests/expressions/spark.json: of all that the documentation of its
functions gives as examples, and of hard rows. KEEP=1 writes them again, on Spark.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from deltalake import write_deltalake
from engines import ENGINE
from expressions_on_sail import AT_THE_ENDS, FAIL_ON_SAIL, REFUSED_WIDELY
from spark_answers import (
    EXAMPLE,
    TABLES,
    Answer,
    Asked,
    Query,
    answer,
    answers,
    keep,
    kept,
    register,
    together,
)

from strandline.pipeline.request.ask_engine import asked
from strandline.sql import known_functions as known
from strandline.sql.as_on_spark import as_on_spark
from strandline.sql.by_name_on_sail import BY_NAME, is_compared
from strandline.sql.calls import NotUnderstood, read_sql
from strandline.sql.differences import AS_IT_IS
from strandline.sql.on_sail import names_not_on_sail, types_not_on_sail
from strandline.sql.operations import Operation, operations_of
from strandline.sql.written_for_sail import RULES, form_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
only_on_spark = pytest.mark.only_on_spark(reason="what is kept are its own answers")
on_sail = pytest.mark.skipif(ENGINE != "sail", reason="Sail's answers: with ENGINE=sail")
ONE_IN = 8
ROWS_OF_A_TABLE = re.compile(r"FROM (numbers|texts|times|nested)")
AT_ONCE = 16
"""So many queries Spark is asked as one; Sail answers some otherwise beside others than alone."""
ALL_OF_THEM = bool(os.environ.get("ALL_GOLDENS") or os.environ.get("KEEP"))
"""They change with a version of Spark and with what is kept: `make test-spark` asks all."""
FAILS_BEFORE_THE_FILTER = "SELECT sum(l * 2) FILTER (WHERE l + 1 > 0) FROM numbers WHERE id > 3"
"""Written for Sail, Spark computes what is summed of records that do not pass the filter, too."""
BY_CHANCE = {
    "SELECT percentile(d, 0.5), median(d) FROM numbers",
    "SELECT percentile(f, 0.5), median(f) FROM numbers",
}
"""What Sail by itself answers at random, at times as Spark does: of numbers beside a NaN."""
OF_AN_OFFSET = "SELECT id, to_utc_timestamp(t,z) FROM times"
"""One of its zones is +02:00, and Sail knows none by its offset."""
NOT_KEPT = (
    known.CHANCE, known.CLOCKS, known.OF_NEIGHBOURS, known.OF_THE_SESSION, known.OTHER_ROWS,
)  # fmt: skip
"""What no expression of a pipeline may call, on any engine."""
TAKEN_ON_SAIL = {
    name
    for name in (known.KNOWN - {*known.ORDER_DEPENDENT, *BY_NAME} - known.CONVERSIONS).difference(
        *NOT_KEPT
    )
    if is_compared(name) and name not in {"and", "not", "or", "raise_error", "substr"}
}
"""The functions that are not refused on Sail by their name alone."""


@pytest.fixture(scope="module")
def tables(session, tmp_path_factory):
    """A session that knows the tables of the queries."""
    register(session, tmp_path_factory.mktemp("tables"))
    return session


def is_for_pipelines(query: Query) -> bool:
    """Whether a pipeline's file may say what a query selects, for all that is known."""
    for text in query.selected:
        sql = read_sql(text)
        if isinstance(sql, NotUnderstood):
            continue
        if sql.over or sql.asks_tables or any(call.depends_on_order for call in sql.calls):
            return False
        if any(call.is_of(names) for call in sql.calls for names in NOT_KEPT):
            return False
        if any(read.path[0].lower() in known.WITHOUT_PARENTHESES for read in sql.reads):
            return False
        if any(call.name == "aes_encrypt" for call in sql.calls):  # it draws, but for six arguments
            return False
    return True


def answered(session, queries: Asked) -> dict[Query, Answer]:
    """What a session answers; what is to be kept it is asked one by one."""
    parts = together(queries, most=1 if os.environ.get("KEEP") else AT_ONCE)
    with ThreadPoolExecutor(2) as pool:
        every = pool.map(partial(answers, session), parts)
        return {query: now for of_part in every for query, now in of_part.items()}


@only_on_spark
def test_the_answers_that_are_kept_are_those_of_spark(tables):
    queries = [one for one in kept() if ALL_OF_THEM or not crc32(one[0].text.encode()) % ONE_IN]
    found = answered(tables, queries)
    if os.environ.get("KEEP"):
        keep({query: found[query] for query, _ in queries})
    differ = {
        query.text: (found[query], before)
        for query, before in queries
        if found[query].error != before.error or not found[query].is_that_of(before)
    }
    assert differ == {}


@only_on_spark
def test_the_examples_of_all_functions_are_kept(spark):
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    catalog, jvm = spark._jsparkSession.sessionState().catalog(), spark._jvm
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    known_queries = {query.text for query, _ in kept()}
    lacking = set()
    for name in {*names} & known.KNOWN:
        for text in EXAMPLE.findall(catalog.lookupFunctionInfo(identifier(name)).getExtended()):
            query = Query.of(text)
            if "(SELECT" not in query.rest and is_for_pipelines(query):
                lacking |= {query.text} - known_queries
    assert lacking == set()


@only_on_spark
def test_what_is_written_for_sail_has_on_spark_the_answers_of_what_the_user_wrote(tables):
    both = [(query, of_spark, for_sail(tables, query)) for query, of_spark in kept()]
    changed = [one for one in both if one[0] != one[2]]
    assert len(changed) > 900
    asked = [one for one in changed if ALL_OF_THEM or not crc32(one[0].text.encode()) % ONE_IN]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(partial(answer, tables), (query.text for _, _, query in asked))
        differ = {
            query.text: (written.text, now, before)
            for (query, before, written), now in zip(asked, found, strict=True)
            if now.error != "USER_RAISED_EXCEPTION"  # it is refused at the value
            and query.text != FAILS_BEFORE_THE_FILTER
            and ((now.error is None) != (before.error is None) or not now.is_that_of(before))
        }
    assert differ == {}


@on_sail
def test_what_is_written_for_sail_fails_where_sail_had_the_answer_for_named_queries_only(tables):
    failing = {
        query.text
        for query, of_spark in kept()
        if of_spark.error is None
        and query.text not in BY_CHANCE
        and (written := for_sail(tables, query)) != query
        and answer_of(tables, written.text).error is not None
        and answer(tables, query.text).is_that_of(of_spark)
    }
    assert failing == {*FAIL_ON_SAIL}


@on_sail
def test_what_is_written_for_sail_filters_a_delta_table_by_the_answers_of_spark(tables, tmp_path):
    for name, table in TABLES.items():
        write_deltalake(tmp_path / name, table)
        rows = tables.read.format("delta").load((tmp_path / name).as_uri())
        rows.createOrReplaceTempView(f"landed_{name}")
    differ, asked_of = {}, 0
    for query, of_spark in kept():
        written = for_sail(tables, query)
        over = ROWS_OF_A_TABLE.fullmatch(query.rest)
        if written == query or not over or len(of_spark.rows or ()) <= 1:  # one row: of aggregates
            continue
        if query.text == OF_AN_OFFSET:
            assert answer_of(tables, written.text).error is not None, "Sail knows offsets by now"
            continue
        if any("->" in text for text in written.selected) or refused_on_sail(tables, query):
            continue
        given = " AND ".join(f"({text}) IS NOT NULL" for text in written.selected)
        filtered = f"FROM landed_{over[1]} WHERE {given}"
        found = answer(tables, f"SELECT CAST(count(*) AS BIGINT) {filtered}")
        expected = sum(None not in row for row in of_spark.rows)
        asked_of += 1
        if found.rows != [[expected]]:
            differ[query.text] = (found, expected)
    assert asked_of > 100
    assert differ == {}


@cache
def for_sail(session, query: Query) -> Query:
    """A query as it is written for Sail."""
    types = partial(types_of, session, rows_read_by(query))
    return Query(tuple(as_on_spark(text, types) for text in query.selected), query.rest)


@cache
def answer_of(session, text: str) -> Answer:
    """What the engine answers; two laws ask it."""
    return answer(session, text)


def rows_read_by(query: Query) -> str:
    return f"SELECT * {query.rest.split(' GROUP BY ')[0]}" if query.rest else "SELECT 1 AS one"


def types_of(session, read: str, texts) -> list[str | None]:
    return [type_of(session, read, text) for text in texts]


def refused_on_sail(session, query: Query) -> list[str]:
    """Why an expression of a query is refused on Sail, by what is asked of its types there."""
    read, found = rows_read_by(query), []
    for text in query.selected:
        found += [problem for problem, _ in names_not_on_sail(text)]
        found += [
            problem for problem, _ in types_not_on_sail(text, partial(type_of, session, read))
        ]
    return found


@cache
def type_of(session, read: str, text: str) -> str | None:
    """The type of an expression over the rows of a query; most are asked for many times."""
    try:
        return asked(rows_of(session, read), text)
    except Exception:  # noqa: BLE001 - whatever an engine throws
        return None


@cache
def rows_of(session, read: str) -> DataFrame:
    return session.sql(read)


@on_sail
def test_sail_answers_as_spark_does_or_fails_or_is_refused_by_name(tables):
    otherwise, refused, right, compared = {}, {}, set(), set()
    for query, of_spark in kept():
        of_sail = answer_of(tables, for_sail(tables, query).text)
        if of_sail.error is not None:
            continue
        why_not = refused_on_sail(tables, query)
        is_same = of_sail.is_that_of(of_spark)
        if is_same and of_sail.rows:
            right |= written_otherwise(tables, query)
            if ROWS_OF_A_TABLE.match(query.rest) and not why_not:
                compared |= {one.name for text in query.selected for one in known_operations(text)}
        if not is_same and not why_not:
            otherwise[query.text] = (of_sail, of_spark)
        if is_same:
            refused |= dict.fromkeys(map(named, why_not), query.text)
    assert {*RULES} - right == set(), "a form that no query has, or that always fails"
    assert TAKEN_ON_SAIL - compared == set(), "of no record the answers are known to be the same"
    unexpected = {text: of for text, of in otherwise.items() if text not in AT_THE_ENDS}
    assert unexpected == {}
    assert {*AT_THE_ENDS} == {*otherwise}, "Sail answers some of them as Spark does by now"
    assert {*refused} == {*REFUSED_WIDELY}


def written_otherwise(session, query: Query) -> set[str]:
    """The names of the operations of a query that have another form on Sail."""
    read, found = rows_read_by(query), set()
    for text in query.selected:
        for one in known_operations(text):
            types = [type_of(session, read, operand.text or "") for operand in one.operands]
            if form_of(one, types) != AS_IT_IS:
                found.add(one.name)
    return found


def known_operations(text: str) -> tuple[Operation, ...]:
    operations = operations_of(text)
    return () if isinstance(operations, NotUnderstood) else operations


def named(why_not: str) -> str:
    """What a refusal is about: the function, or that nobody knows it."""
    why_not = re.sub(r"^the result of \w+\(\)", "its result", why_not)
    return re.split(r": Sail | \(", why_not)[0]
