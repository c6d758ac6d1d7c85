"""Expressions that nobody knows without the engine: it is asked before anything is observed."""

from __future__ import annotations

import pytest
from joined import COGROUP, PAIRED
from lakes import Line, a_record, a_spec, a_week, land
from pyspark.sql import types as T

from strandline.engine.frames import executor_of, introduce
from strandline.engine.records.expressions import column_and_type
from strandline.errors import InputError
from strandline.lake.landing.open_landing import open_landing
from strandline.pipeline.request.ask_engine import require_all_expressions
from strandline.spec import parse_spec

pytestmark = [pytest.mark.spark, pytest.mark.only_on_spark(reason="functions of a catalog")]

ROWS = [a_record("1 10:00", "1 09:00"), a_record("1 16:00", "1 15:00")]
ONE = {"source__channels": ["a"]}


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory) -> Line:
    """Not to be changed."""
    line = Line(spark, tmp_path_factory.mktemp("landed"), a_spec(**ONE))
    land(line.folder, ROWS)
    return line


@pytest.fixture(scope="module")
def twice(spark):
    """A function of the user's own, of which only the session knows."""
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN 2 * x")
    yield
    spark.sql("DROP TEMPORARY FUNCTION twice")


def refused(line: Line) -> InputError:
    with pytest.raises(InputError) as caught:
        require_all_expressions(open_landing(line.spark, line.lake, line.spec))
    return caught.value


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("aggregates__total", "my_sum(amount)"),
        ("aggregates__total", "sum(amount >>> array(1))"),
        ("aggregates__total", "amount +"),
        ("source__valid", "my_check(amount)"),
        ("source__where", "amount >>> 1"),
        ("source__where", "twice(amount)"),
        ("aggregates__total", "twice(amount)"),
    ],
)
def test_what_the_engine_does_not_take_is_refused(landed, twice, path, text):
    error = refused(landed.of(a_spec(**ONE, **{path: text})))
    assert error.place == f"meter: {path.replace('__', '.')}"
    assert repr(text) in error.problem or "boolean" in error.way_out
    assert error.way_out


def test_a_run_names_all_that_the_engine_does_not_take_before_anything_is_observed(
    landed, tmp_path
):
    spec = a_spec(**ONE, source__valid="my_check(amount)", aggregates__total="my_sum(amount)")
    line = landed.copy(tmp_path).of(spec)
    with pytest.raises(InputError) as caught:
        line.backfill("1", "2")
    assert [entry.step for entry in line.ledger] == ["started", "failed"]
    assert not (line.root / "timeline").exists()
    error = caught.value
    assert "meter: source.valid: " in error.problem
    assert "meter: aggregates.total: " in error.problem


def test_all_that_is_wrong_is_named(landed):
    wrong = {"source__valid": "rand() > 1", "source__sequence": "device", "aggregates__total": "1"}
    error = refused(landed.of(a_spec(**ONE, **wrong)))
    assert [part.split(": ")[1] for part in error.problem.splitlines()[1:]] == [
        "source.sequence", "source.valid", "aggregates.total",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("source__event_time", "current_timestamp()"),
        ("source__arrival_time", "TIMESTAMP'now'"),
        ("source__channel", "CAST(spark_partition_id() AS STRING)"),
        ("source__key", {"device": "uuid()"}),
        ("source__sequence", "monotonically_increasing_id()"),
        ("source__where", "rand() < 0.5"),
        ("source__valid", "happened_at < now()"),
        ("watermark", {"strategy": "punctuated", "marker": "rand() < 0.5"}),
        ("watermark", {"strategy": "expression", "candidate": "current_timestamp()"}),
        ("window", {"session": "CAST(1000 * rand() AS BIGINT)"}),
    ],
)
def test_whatever_a_record_is_asked_for_follows_from_the_record(landed, path, text):
    error = refused(landed.of(a_spec(**ONE, **{path: text})))
    assert error.place.startswith(f"meter: {path.replace('__', '.')}")
    assert "is not deterministic" in error.problem


def test_a_function_of_the_users_own_runs_and_a_note_says_that_it_is_not_known(
    landed, twice, tmp_path
):
    own = landed.copy(tmp_path).of(
        a_spec(**ONE, source__where="twice(amount) = 2", aggregates__total="sum(twice(1))")
    )
    (note,) = [n for n in own.backfill("1", "2", dry_run=True).notes if "aggregates.total" in n]
    assert "twice() is none of Spark's own functions" in note
    assert "make sure that its value follows from the records alone" in note
    own.backfill("1", "2")
    assert [row["total"] for row in own.rows("windows")] == [2]


def test_another_session_is_asked_again_as_its_functions_may_be_others(spark):
    found = []
    for session, kind in ((spark.newSession(), "BIGINT"), (spark.newSession(), "STRING")):
        introduce(session, executor_of(spark))
        session.sql(f"CREATE TEMPORARY FUNCTION own(x BIGINT) RETURNS {kind} RETURN x")
        found.append(column_and_type(session.sql("SELECT 1L AS x"), "own(x)", "")[1])
    assert found == [T.LongType(), T.StringType()]


@pytest.mark.parametrize("content", [COGROUP, PAIRED], ids=["cogroup", "window"])
def test_the_aggregates_of_a_join_are_asked_over_what_they_count(spark, tmp_path, content):
    for name in ("left", "right"):
        land(tmp_path, a_week(days=1), table=f"landing/{name}")
    column = "amount" if content is COGROUP else "left_amount"
    aggregates = {"taken": f"sum({column} >>> 1)", "ours": f"my_sum({column})"}
    asked = content | {"aggregates": aggregates}
    error = refused(Line(spark, tmp_path, parse_spec(asked, origin="j.yaml")))
    assert error.place == f"{content['pipeline']}: aggregates.ours"
    assert "my_sum" in error.problem  # and of the one that the engine takes nothing is said
