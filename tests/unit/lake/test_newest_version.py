"""The newest version of a table by the names in its log is that of the opened table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import newest_version


@pytest.mark.parametrize("commits", [1, 3, 12])
def test_it_is_that_of_the_table_also_behind_checkpoints_and_without_old_commits(tmp_path, commits):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    for number in range(commits):
        write_deltalake(store.uri("windows"), pa.table({"n": [number]}), mode="append")
    table = DeltaTable(store.uri("windows"))
    assert store.version("windows") == table.version() == commits - 1
    table.create_checkpoint()
    (tmp_path / "meter/windows/_delta_log/notes.json").write_text("{}")
    for commit in (tmp_path / "meter/windows/_delta_log").glob("0*.json"):
        commit.unlink()  # as an upkeep may leave it: the checkpoint has all of it
    assert store.version("windows") == DeltaTable(store.uri("windows")).version() == commits - 1
    assert store.at({"windows": 7}).version("runs") is None


def test_a_table_that_does_not_exist_has_none(tmp_path):
    assert newest_version(tmp_path / "nowhere") is None
    (tmp_path / "_delta_log").mkdir()
    assert newest_version(tmp_path) is None
