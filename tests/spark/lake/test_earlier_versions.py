"""An earlier version of a table is read as it was, whatever has been written since."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.lake.store.places import table_at

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("begins", ["", "a table's "], ids=["plain", "of odd characters"])
@pytest.mark.parametrize(("commits", "checkpoints", "version"), [(12, [9], 7), (20, [9, 19], 15)])
def test_a_version_before_the_last_checkpoint_is_read_and_later_commits_do_not_matter(
    spark, tmp_path, begins, commits, checkpoints, version
):
    place = tmp_path / f"{begins}numbers"

    def write(number: int) -> None:
        row = pa.table({"number": [number], "third": [number % 3]})
        write_deltalake(str(place), row, mode="append", partition_by=["third"])
        if number in checkpoints:
            DeltaTable(str(place)).create_checkpoint()

    for number in range(version + 1):
        write(number)
    reader = spark.read.format("delta").option("versionAsOf", version)
    rows = reader.load(table_at(spark, str(place), version))
    assert rows.count() == version + 1
    for number in range(version + 1, commits):
        write(number)
    assert rows.count() == version + 1
    later = reader.load(table_at(spark, str(place), version)).where("third = 1")
    assert {row["number"] for row in later.collect()} == {*range(1, version + 1, 3)}
