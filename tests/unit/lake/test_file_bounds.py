"""What a log says of files: a reader that goes by it leaves no row out. No Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from strandline.lake.store.reads import dataset_of

DAY = date(2024, 3, 1)
ROWS = pa.table({"yes": [True, None], "n": [1, 2], "text": ["a", None]})
OF_N = {"minValues": {"n": 1}, "maxValues": {"n": 2}}
NULLS = {"nullCount": {"yes": 1, "n": 0, "text": 1}}


def a_table(folder, stats: dict) -> DeltaTable:
    """One file with these statistics and no others, as some writer may have put it there."""
    table = DeltaTable.create(str(folder), ROWS.schema)
    pq.write_table(ROWS, folder / "a.parquet")
    size = (folder / "a.parquet").stat().st_size
    file = AddAction("a.parquet", size, {}, 1, True, json.dumps({"numRecords": 2, **stats}))
    table.create_write_transaction([file], "append", table.schema())
    return DeltaTable(str(folder))


@pytest.mark.parametrize(
    "stats",
    [{}, OF_N, {"nullCount": {"n": 0}}, OF_N | {"nullCount": {"yes": 1, "n": 0, "text": 1}}],
)
def test_a_column_without_bounds_may_hold_anything_whatever_others_have(tmp_path, stats):
    found = dataset_of(a_table(tmp_path, stats))
    for holds in (
        ds.field("yes"),
        ds.field("yes").is_null(),
        ds.field("text") == "a",
        ds.field("text").is_null(),
        ds.field("n") >= 2,
    ):
        assert found.to_table(filter=holds).num_rows == 1, holds


def test_files_are_left_out_by_their_bounds_their_nulls_and_their_partitions(tmp_path):
    rows = pa.table({"day": [DAY, DAY, None], "n": [1, None, 9], "text": [None, None, "x"]})
    write_deltalake(tmp_path, rows, partition_by=["day"])
    found = dataset_of(DeltaTable(str(tmp_path)))
    for holds, files in (
        (ds.field("n") == 1, 1),
        (ds.field("n") > 9, 0),
        (ds.field("n").is_null(), 1),
        (ds.field("text") == "x", 1),
        (ds.field("text").is_null(), 1),
        (ds.field("day") == DAY, 1),
        (ds.field("day").is_null(), 1),
    ):
        assert len([*found.get_fragments(holds)]) == files, holds
    assert found.to_table().sort_by("n").to_pylist() == rows.sort_by("n").to_pylist()
    chosen = dataset_of(DeltaTable(str(tmp_path)), "n > 5")
    assert chosen.to_table().to_pylist() == rows.to_pylist()[2:]


def test_the_part_of_an_instant_that_a_log_cuts_off_leaves_its_row_there(tmp_path):
    at = datetime(2024, 3, 1, 10, 0, 0, 123_456, tzinfo=UTC)
    write_deltalake(tmp_path, pa.table({"at": pa.array([at], pa.timestamp("us", tz="UTC"))}))
    assert dataset_of(DeltaTable(str(tmp_path))).to_table(filter=ds.field("at") == at).num_rows == 1
