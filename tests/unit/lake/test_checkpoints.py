"""To open a table costs the same after many commits: a checkpoint is never far behind."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from strandline.lake.store.lake import Lake

SCHEMA = pa.schema([("day", pa.string()), ("rows", pa.int64())])


@pytest.fixture
def store(tmp_path):
    return Lake.at(str(tmp_path)).pipeline("meter")


def commits_read_on_opening(store) -> int:
    """The commits of a table after its last checkpoint."""
    log = store.lake.folder / "meter/windows/_delta_log"
    checkpoints = [int(file.name.split(".")[0]) for file in log.glob("*.checkpoint.parquet")]
    return DeltaTable(store.uri("windows")).version() - max(checkpoints, default=-1)


def append(store, times: int) -> None:
    for one in range(times):
        rows = pa.table({"day": ["2024-03-01"], "rows": [one]}, schema=SCHEMA)
        store.append("windows", rows, to=DeltaTable(store.uri("windows")))


def test_a_table_that_grows_by_a_commit_a_day_has_a_checkpoint_each_ten(store):
    store.create("windows", SCHEMA, ["day"])
    append(store, 25)
    assert commits_read_on_opening(store) <= 10
    assert store.rows("windows") == 25


def test_so_has_one_that_an_earlier_program_has_created(store):
    DeltaTable.create(store.uri("windows"), schema=SCHEMA, partition_by=["day"])
    append(store, 25)
    assert commits_read_on_opening(store) == 26  # none yet
    store.create("windows", SCHEMA, ["day"])
    version = store.version("windows")
    store.create("windows", SCHEMA, ["day"])
    assert store.version("windows") == version  # the property is set once
    append(store, 10)
    assert commits_read_on_opening(store) <= 10
    assert store.rows("windows") == 35
