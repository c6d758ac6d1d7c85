"""Columns that come, grow, go or change, of the landing table and of the spec."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakes import SCHEMA, Line, a_record, a_spec, at, instant, land
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.records.identity import SourceColumns, identity
from strandline.engine.records.read import read_records
from strandline.errors import InputError
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish import apply_diff
from strandline.lake.publish.arrow_diff import OP
from strandline.lake.publish.staged_diff import Change, counts_of
from strandline.lake.publish.staging import Staging
from strandline.lake.store.identities import nulls_counted
from strandline.lake.store.lake import Lake
from strandline.lake.store.schema import schema_of
from strandline.pipeline.diff.diff import no_longer_kept
from strandline.pipeline.request.driver import attempt_of
from strandline.pipeline.views.status import status_of
from strandline.spec.joined import PAIRS
from strandline.tables import QUARANTINE, tables_of

pytestmark = pytest.mark.spark

ROWS = [
    *(a_record(f"{day} 1{hour}:00", f"{day} 1{hour}:00") for day in (1, 2, 3) for hour in range(6)),
    a_record("2 15:10", "1 10:05", amount=5),
    a_record("2 15:20", "2 15:20", happened_at=None),
]
ONE = {"source__channels": ["a"]}


def spec(**aggregates: str):
    return a_spec(**ONE, aggregates=aggregates)


# ------------------------------------------------------------------------------------- aggregates


@pytest.fixture(scope="module")
def one_day(spark, tmp_path_factory):
    """Of three days that have landed the windows of the first are published, as whole numbers."""
    line = Line(spark, tmp_path_factory.mktemp("narrow"), spec(total="cast(sum(amount) as int)"))
    land(line.folder, ROWS)
    line.backfill("1", "2")
    return line


def test_a_retyped_aggregate_is_refused_also_where_rows_are_only_added(one_day, tmp_path):
    line = one_day.copy(tmp_path)
    before = line.versions()
    with pytest.raises(InputError) as refused:
        line.of(spec(TOTAL="avg(amount)")).backfill("2", "3")
    assert "meter: windows: column TOTAL is double, but published as int" in str(refused.value)
    assert refused.value.way_out
    assert line.versions() == before
    assert line.ledger[-1].step == "failed"
    assert PipelineState.of(line.ledger).unfinished is None


def test_a_wider_aggregate_and_a_new_one_go_into_the_table_that_is_there(one_day, tmp_path):
    line = one_day.copy(tmp_path)
    days = {"window_start", "total", "largest"}
    first = [row["total"] for row in line.rows("windows")]
    wide = line.of(spec(Total="sum(amount)", largest="max(amount)"))
    version = line.versions()["windows"]
    wide.backfill("2", "3")
    assert wide.versions()["windows"] == version + 3  # widened, a column added, rows appended
    table = line.table("windows")
    kinds = {field.name: field.type.type for field in table.schema().fields if field.name in days}
    assert kinds == {"window_start": "timestamp", "total": "long", "largest": "long"}
    assert table.protocol().min_reader_version == 1
    assert table.metadata().partition_columns == ["window_date"]
    rows = {row["window_start"]: row for row in line.rows("windows")}
    assert [r["total"] for start, r in sorted(rows.items()) if start < at("2")] == first
    assert {r["largest"] for start, r in rows.items() if start < at("2")} == {None}
    assert {r["largest"] for start, r in rows.items() if start >= at("2")} == {1}

    told = status_of(wide.spec, line.lake)["lacking"]
    assert told == {"largest": [{"start": "2024-03-01", "end": "2024-03-02"}]}
    wide.backfill("1", "2")
    assert status_of(wide.spec, line.lake)["lacking"] == {}
    # narrower values fit into the table as it is
    again = line.of(spec(total="cast(sum(amount) as int)")).backfill("1", "2")
    assert again.diff["windows"]["update"] == len(first)


# ---------------------------------------------------------------------------------------- landing

ODD = ["no`te", "a.b", "it's", 'so "odd"', "gr\u00f6\u00dfe", "with space", "{", "a,b"]


def odd_rows(rows, **values):
    schema = pa.schema([*SCHEMA, *((name, pa.int32()) for name in ODD)])
    odd = dict.fromkeys(ODD, 1)
    return pa.Table.from_pylist([row | odd | values for row in rows], schema)


def test_landing_columns_of_any_name_come_and_grow_and_no_row_becomes_another(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(**ONE))
    land(tmp_path, ROWS)
    line.advance("3")
    before = line.rows("quarantine")
    ids = {row["record_id"] for row in before}
    assert Counter(row["reason"] for row in before) == {"late": 1, "null_event_time": 1}

    # columns come, with names of all sorts
    more = [
        a_record("3 16:10", "1 10:06", amount=6),
        a_record("3 16:20", "3 16:20", happened_at=None),
    ]
    uri = str(tmp_path / "landing/meter")
    write_deltalake(uri, odd_rows(more), mode="append", schema_mode="merge")
    line.advance("4")
    after = line.rows("quarantine")
    assert {row["record_id"] for row in after} > ids
    assert len(after) == len(before) + 2
    assert {tuple(row[name] for name in ODD) for row in after} == {(None,) * 8, (1,) * 8}

    # all of them move
    landed = DeltaTable(uri).to_pyarrow_table()
    moved = landed.select(landed.schema.names[::-1])
    write_deltalake(
        uri, moved, mode="overwrite", schema_mode="overwrite", partition_by=["arrived_on"]
    )
    assert not line.backfill("1", "4", as_of="4").changed

    # one of them grows; a key, an id and duplicates go by such names
    wider = odd_rows([a_record("4 10:10", "4 09:00", happened_at=None)])
    at_note = wider.schema.get_field_index("no`te")
    wider = wider.set_column(at_note, "no`te", pa.array([2**40], pa.int64()))
    every = pa.concat_tables([odd_rows(ROWS), odd_rows(more), wider], promote_options="permissive")
    write_deltalake(
        uri, every, mode="overwrite", schema_mode="overwrite", partition_by=["arrived_on"]
    )
    by_name = a_spec(  # by another key it is another pipeline
        **ONE,
        pipeline="other",
        source__key={"k": "a.b", "of": "`it's` + `no``te`"},
        source__id=["no`te", "position", "amount"],
        source__deduplicate={
            "columns": ["no`te", "a.b", "amount", "happened_at"],
            "within": "1m of arrival",
        },
    )
    other = line.of(by_name)
    other.advance("5")
    assert {row["k"] for row in other.rows("windows")} >= {1}
    assert 2**40 in {row["no`te"] for row in other.rows("quarantine")}


def test_rows_with_columns_of_any_name_are_added_mended_and_widened(spark, tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    staging = Staging(spark, store, "run")

    def publish(number: int, kind: str, ops: dict[str, str]) -> None:
        odd = [F.lit(number).cast(kind).alias(name) for name in ODD]
        day = F.lit("2024-03-01").cast("date").alias("quarantine_date")
        start = F.lit(None).cast("timestamp").alias("slot_start")
        ids = spark.createDataFrame([*ops.items()], f"record_id string, {OP} string")
        name = f"rows{number}"
        part = staging.write(name, ids.select("record_id", OP, *odd, day, start))
        if store.table("quarantine") is None:
            apply_diff.create(store, QUARANTINE, apply_diff.without_op(part.schema))
        change = Change(QUARANTINE, part, counts_of(part))
        apply_diff.apply(store, change, attempt_of(f"run-{number}"))

    def rows() -> dict[str, tuple[int, ...]]:
        found = store.table("quarantine").to_pyarrow_table().to_pylist()
        return {row["record_id"]: tuple(row[name] for name in ODD) for row in found}

    publish(1, "int", {"a": "insert", "b": "insert"})
    publish(2, "int", {"b": "update", "c": "insert"})
    assert rows() == {"a": (1,) * 8, "b": (2,) * 8, "c": (2,) * 8}
    assert nulls_counted(store.table("quarantine")) == frozenset()
    publish(2**40, "bigint", {"a": "delete", "b": "update", "d": "insert"})
    assert rows() == {"b": (2**40,) * 8, "c": (2,) * 8, "d": (2**40,) * 8}
    assert nulls_counted(store.table("quarantine")) == frozenset()
    assert store.table("quarantine").protocol().min_reader_version == 1


def test_a_landing_column_with_a_name_of_ours_is_refused(spark):
    landing = spark.createDataFrame([(1, 2)], "arrived_at int, _Strandline_ts_ms int")
    with pytest.raises(
        InputError, match=r"meter: source\.table: its column '_Strandline_ts_ms' has"
    ):
        read_records(landing, a_spec())


# ------------------------------------------------------------------------------------- identities


def test_columns_that_were_published_with_their_nulls_keep_the_identity_of_their_rows(spark):
    names = ("a", "b`c", "d.e")
    rows = spark.createDataFrame(
        [(1, None, "x", 5), (None, None, None, 5)], "a int, `b``c` int, `d.e` string, at bigint"
    )
    rows = rows.withColumnRenamed("at", c.ARRIVAL)
    # as an earlier version wrote it: all columns, nulls too
    whole = [{"a": 1, "b`c": None, "d.e": "x"}, {"a": None, "b`c": None, "d.e": None}]
    expected = [
        hashlib.sha256(f"{json.dumps(row, separators=(',', ':'))}|5".encode()).hexdigest()[:32]
        for row in whole
    ]
    told = identity(
        a_spec(), replace(SourceColumns.of(rows, names), nulls_counted=frozenset(names))
    )
    assert [row[0] for row in rows.select(told).collect()] == expected
    wider = rows.withColumn("new", F.lit(None).cast("string"))
    later = replace(SourceColumns.of(wider, (*names, "new")), nulls_counted=frozenset(names))
    assert [row[0] for row in wider.select(identity(a_spec(), later)).collect()] == expected
    filled = rows.withColumn("new", F.lit("y"))
    assert not {row[0] for row in filled.select(identity(a_spec(), later)).collect()} & {*expected}


def test_of_a_new_pipeline_a_column_that_comes_changes_no_identity_wherever_it_stands(spark):
    rows = spark.createDataFrame([(1, None, 5)], "a int, b int, at bigint")
    rows = rows.withColumnRenamed("at", c.ARRIVAL)
    wider = rows.withColumn("new", F.lit(None).cast("string"))

    def of(frame, *names: str) -> str:
        return str(frame.select(identity(a_spec(), SourceColumns.of(frame, names))).first()[0])

    assert of(rows, "a", "b") == of(wider, "new", "a", "b") == of(wider, "a", "new", "b")
    assert of(rows, "a", "b") != of(rows, "b")


# ---------------------------------------------------------------------------------------- firings


def test_firings_that_are_no_longer_kept_do_not_stand(spark, tmp_path):
    kept = Line(spark, tmp_path, a_spec(**ONE, firings=True))
    land(tmp_path, ROWS)
    kept.advance("3")
    held = kept.rows("firings")
    assert held
    _assert_columns_are_those_of_the_house(kept)
    line = kept.of(a_spec(**ONE))
    preview = line.backfill("2", "3", as_of="3", dry_run=True)
    assert any("firings: false" in note for note in preview.notes)
    assert kept.rows("firings") == held
    version = line.versions()["firings"]
    outcome = line.backfill("2", "3", as_of="3")
    assert any("firings: false" in note for note in outcome.notes)
    assert outcome.diff["firings"]["delete"] == len(held)
    assert kept.rows("firings") == []
    assert line.versions()["firings"] == version + 1
    store: Any = SimpleNamespace(spec=line.spec, store=line.lake.pipeline("meter"))
    assert no_longer_kept(store) == {}  # nothing more to say, or to remove
    kept.backfill("1", "4", as_of="3")
    assert kept.rows("firings") == held
    assert instant("3") == kept.ledger[-1].horizon_ms


def _assert_columns_are_those_of_the_house(line: Line) -> None:
    """`strandline.tables` says each published table once; this is what a run has made of it."""
    of_windows = [t for t in tables_of(line.spec.source.key).values() if t.name != PAIRS]
    for table in of_windows:
        made = {
            field.name: field.dataType.simpleString().replace("bigint", "long")
            for field in schema_of(line.table(table.name))
        }
        assert made | table.columns == made, table.name
        assert {*table.keys, table.partition, table.start} <= {*made}
