"""Bad input: a clear error with a way out, or a quarantine row with its reason; nothing is lost."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from engines import ENGINE
from lakes import INSTANT, SCHEMA, Line, a_record, a_spec, land

from strandline.engine.records.read import read_records
from strandline.errors import InputError
from strandline.lake.landing.open_landing import open_landing
from strandline.pipeline.request.ask_engine import require_all_expressions

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

ROWS = [
    a_record("1 10:00", "1 09:00"),
    a_record("1 16:00", "1 15:00"),
    a_record("1 17:00", "1 08:00"),
]
ONE = {"source__channels": ["a"]}


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory):
    """Not to be changed."""
    line = Line(spark, tmp_path_factory.mktemp("landed"), a_spec(**ONE))
    land(line.folder, ROWS)
    return line


@pytest.fixture
def line(landed, tmp_path):
    return landed.copy(tmp_path)


def refused(line: Line, **changes) -> str:
    return said_of(lambda: line.of(a_spec(**ONE | changes)).backfill("1", "2"))


def refused_before_anything_is_read(line: Line, **changes) -> str:
    spec = a_spec(**ONE | changes)

    def planned() -> None:
        landing = open_landing(line.spark, line.lake, spec)
        require_all_expressions(landing)
        read_records(landing.frame, spec)

    return said_of(planned)


def said_of(refused: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        refused()
    assert caught.value.exit_code == 2
    assert caught.value.way_out
    return str(caught.value)


def test_a_landing_table_that_is_not_there_names_itself(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec())
    said = refused(line)
    assert "meter: source.table: no Delta table at " in said
    assert "landing/meter" in said
    assert "land the records first" in said
    assert not line.root.exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source__event_time", "hapened_at"),
        ("source__arrival_time", "arrived"),
        ("source__arrival_date", "day"),
        ("source__channel", "chanel"),
        ("source__key", ["devise"]),
        ("source__sequence", "offset"),
        ("source__id", ["uuid"]),
        ("source__where", "amuont > 1"),
        ("source__valid", "amuont > 1"),
        ("aggregates__total", "sum(amuont)"),
    ],
)
def test_a_missing_column_is_named_with_its_place(landed, path, value):
    said = refused_before_anything_is_read(landed, **{path: value})
    assert "meter: " + path.replace("__", ".") in said
    assert (value if isinstance(value, str) else value[0]).split()[0].removeprefix("sum(") in said


@pytest.mark.parametrize(
    ("path", "value", "way_out"),
    [
        ("source__event_time", "position", "timestamp_millis(position)"),
        ("source__arrival_time", "amount + 1", "timestamp_millis"),
        ("source__valid", "amount", "boolean expression"),
        ("source__sequence", "device", "whole number"),
        ("aggregates__total", "first(amount)", "min_by"),
        ("aggregates__total", "amount", "aggregate"),
    ],
)
def test_a_column_of_the_wrong_kind_is_refused_with_the_way_out(landed, path, value, way_out):
    said = refused_before_anything_is_read(landed, **{path: value})
    assert "meter: " + path.replace("__", ".") in said
    assert way_out in said


@pytest.mark.parametrize(
    ("path", "value", "on_value", "way_out"),
    [
        ("source__event_time", "cast(device as timestamp)", "device = 'd1'", "try_cast()"),
        ("source__valid", "1 / (amount - 1) > 0", "amount = 1", "try_divide"),
        ("source__where", "1 % (amount - 1) = 0", "amount = 1", "try_mod"),
        ("source__key", {"n": "split(device, '-')[1]"}, "device = 'd1'", "get()"),
        ("aggregates__total", "sum(cast(device as int))", "device = 'd1'", "try_cast()"),
        ("aggregates__total", "sum(device)", "device = 'd1'", "try_cast()"),
        ("source__channel", "raise_error(device)", "device = 'd1'", "CASE WHEN"),
    ],
)
def test_an_expression_that_fails_is_named_with_a_value_and_its_try_form(
    line, path, value, on_value, way_out
):
    said = refused(line, **{path: value})
    assert "meter: " + path.replace("__", ".") in said
    assert on_value in said
    assert way_out in said
    assert line.ledger[-1].step == "failed"
    assert line.ledger[-1].message == said


def test_an_expression_that_fails_on_every_row_is_no_unknown_one(line):
    said = refused(line, aggregates__total="sum(amount / 0)")
    assert "meter: aggregates.total: 'sum(amount / 0)' fails" in said
    assert "try_divide()" in said


def test_of_several_aggregates_the_one_that_divides_by_zero_is_named(line):
    total = "sum(CAST(amount AS INT) / (amount - amount))"
    said = refused(line, aggregates={"n": "count(*)", "total": total})
    assert f"meter: aggregates.total: '{total}' fails on amount = " in said
    assert "try_divide()" in said


def test_of_many_rows_the_one_is_found_that_an_expression_fails_on(spark, tmp_path):
    rows = [
        a_record(f"{day} 10:00", f"{day} 10:00", amount=n + 100 * day, device=f"{n}")
        for day in (1, 2)
        for n in range(50)
    ]
    odd = (a_record("2 11:00", "2 11:00", device=f"odd\x1b {name}") for name in ("one", "too"))
    land(tmp_path, [*rows, *odd])
    line = Line(spark, tmp_path, a_spec(**ONE, aggregates={"total": "sum(cast(device as int))"}))
    with pytest.raises(InputError) as failed:
        line.advance("3")
    # the message is about that very value
    said = r"aggregates\.total: 'sum\(cast\(device as int\)\)' fails on device = 'odd\\x1b (\w+)' "
    assert re.search(said + r"\(.* \1'", str(failed.value))


@pytest.mark.skipif(ENGINE != "spark", reason="of the JVM in this process")
def test_the_jvm_logs_no_failed_task_whose_error_the_run_explains(spark):
    logger_of = spark._jvm.org.apache.logging.log4j.LogManager.getLogger
    names = ("executor.Executor", "scheduler.TaskSetManager", "SparkContext")
    logs = [logger_of(f"org.apache.spark.{name}").isErrorEnabled() for name in names]
    assert logs == [False, False, True]


def test_one_time_in_nanoseconds_is_named_and_the_way_out_works(spark, tmp_path):
    rows = [a_record(f"1 {hour}:00", f"1 {hour}:00") for hour in (10, 11, 12)]
    rows = [row | {"position": int(row["happened_at"].timestamp()) * 1000} for row in rows]
    rows[1]["position"] *= 10**6
    land(tmp_path, rows)
    line = Line(spark, tmp_path, a_spec(**ONE, source__event_time="timestamp_millis(position)"))
    with pytest.raises(InputError) as failed:
        line.advance("2")
    assert failed.value.place == "meter: source.event_time"
    assert f"fails on position = {rows[1]['position']} (" in failed.value.problem
    assert "stage failure" not in failed.value.problem
    assert "--engine" not in failed.value.way_out  # Spark has no such time either
    mended = failed.value.way_out.removeprefix("use ").partition(", which")[0]
    outcome = line.of(a_spec(**ONE, source__event_time=mended)).advance("2")
    assert outcome.malformed == {"null_event_time": 1}


def test_a_lake_that_cannot_be_written_is_said_before_anything_is_computed(line):
    line.root.write_text("a file stands where the pipeline's folder should be")
    said = refused(line)
    assert "cannot be written" in said
    assert line.root.read_text().startswith("a file")


def test_a_range_without_records_succeeds_and_publishes_nothing(line):
    assert line.backfill("1", "2").changed
    before = line.published()
    outcome = line.backfill("20", "21")
    assert outcome.status == "published"
    assert (
        "no record belongs to a window of the range: there is nothing to count; "
        "check its dates" in outcome.notes
    )
    assert not outcome.changed
    assert line.published() == before
    others = line.of(a_spec(**ONE, source__where="amount > 1"))
    assert others.backfill("1", "2", dry_run=True).status == "would be rejected"
    emptied = others.backfill("1", "2", allow_removals=True)
    assert emptied.diff["windows"]["delete"] == len(before["windows"]) > 0
    assert line.rows("windows") == line.rows("completeness") == line.rows("quarantine") == []


def test_a_landing_table_without_rows_has_nothing_to_say(spark, tmp_path):
    land(tmp_path, [])
    line = Line(spark, tmp_path, a_spec())
    assert not line.backfill("1", "2").changed
    assert line.backfill("1", "2", dry_run=True).status == "previewed"
    assert not line.advance("4").changed
    assert line.rows("windows") == []


def test_a_day_of_malformed_rows_alone_and_one_without_any_are_observed_once(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(source__where="amount > 0"))
    silent = a_record("2 10:00", "2 10:00", amount=0)
    good = [a_record("3 10:00", "3 10:00", source) for source in "ab"]
    land(tmp_path, [a_record("1 10:00", "1 10:00", source="z"), silent, *good])
    assert line.advance("4").observed_days == ["2024-03-01", "2024-03-02", "2024-03-03"]
    assert [row["reason"] for row in line.rows("quarantine")] == ["undeclared_channel"]
    before = line.versions()
    assert line.advance("4").observed_days == []
    assert line.versions() == before


def test_texts_that_are_no_times_are_quarantined_as_such(spark, tmp_path):
    texts = ("arrived_at", "happened_at", "arrived_on")
    schema = pa.schema(
        [field.with_type(pa.string()) if field.name in texts else field for field in SCHEMA]
    )
    good = a_record("1 10:00", "1 09:00") | {
        "arrived_at": "2024-03-01T10:00:00Z",
        "happened_at": "2024-03-01 09:00:00",
        "arrived_on": "2024-03-01",
    }
    rows = [
        good,
        good | {"happened_at": "yesterday"},
        good | {"happened_at": "09:00:00"},
        good | {"happened_at": None},
        good | {"happened_at": "0000-00-00"},
        good | {"happened_at": "+12024-03-01T00:00:00Z"},
        good | {"arrived_at": "soon"},
        good | {"arrived_on": "01.03.2024"},
        good | {"arrived_on": None},
        good | {"arrived_on": "2024-3-1"},
    ]
    land(tmp_path, pa.Table.from_pylist(rows, schema))
    line = Line(spark, tmp_path, a_spec(**ONE))
    outcome = line.backfill("1", "2")
    assert Counter(row["reason"] for row in line.rows("quarantine")) == {
        "unparsable_event_time": 3,
        "event_time_out_of_range": 1,
        "null_event_time": 1,
        "null_arrival": 1,
        "arrival_outside_partition": 2,
    }
    assert all(book.balanced for book in outcome.books)
    assert {book.name for book in outcome.books} == {
        "arrival day 2024-03-01",
        "arrival day unknown",
        "range",
    }


def test_event_times_at_the_edges_of_the_calendar_do_no_harm(spark, tmp_path):
    schema = SCHEMA.set(1, pa.field("happened_at", INSTANT))
    table = pa.Table.from_pylist(ROWS, schema)
    edges = pa.array([-62_135_596_800_000_000, 253_402_300_799_000_000, 253_402_290_000_000_000])
    table = table.set_column(1, "happened_at", edges.cast(INSTANT))
    land(tmp_path, table)
    line = Line(spark, tmp_path, a_spec(**ONE))
    outcome = line.advance("2")
    assert outcome.malformed == {"event_time_out_of_range": 2}
    assert sum(row["on_time"] for row in line.rows("completeness")) == 1


def test_a_day_of_which_other_rows_are_read_than_have_landed_is_not_observed(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec())
    times = [f"{day} 1{n}:00" for day in (1, 2) for n in range(6)]
    land(tmp_path, [a_record(time, time, source) for time in times for source in "ab"])
    line.advance("2")
    days = line.table("timeline").to_pyarrow_table()
    log = tmp_path / "landing/meter/_delta_log/00000000000000000000.json"
    of_second = [text for text in log.read_text().splitlines() if "arrived_on=2024-03-02" in text]
    assert len(of_second) == 1
    wrong = of_second[0].replace('\\"numRecords\\":12', '\\"numRecords\\":13')
    assert wrong != of_second[0]
    log.write_text(log.read_text().replace(of_second[0], wrong))
    with pytest.raises(InputError) as refused:
        line.advance("3")
    said = str(refused.value)
    assert said.startswith("meter: arrival day 2024-03-02: 13 rows have landed")
    assert "12 were read" in said
    assert (line.ledger[-1].step, line.ledger[-1].message) == ("failed", said)
    assert line.table("timeline").to_pyarrow_table() == days
