"""Rows of the landing table that deletion vectors take away: neither read nor counted.

Also where column mapping gives its columns other names in the files than in the table.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from lakes import FIRST_DAY, Line, a_record, a_spec, instant, land
from replayed import assert_told_by_replay

from strandline.engine.position.axis import Axis
from strandline.lake.landing.open_landing import open_landing

pytestmark = [pytest.mark.spark, pytest.mark.only_on_spark(reason="made and read by delta-spark")]

ROWS = [
    *(a_record(f"1 1{n}:00", f"1 1{n}:00", amount=n, source=s) for n in range(6) for s in "ab"),
    *(a_record(f"2 1{n}:00", f"2 1{n}:00", amount=n, source=s) for n in range(6) for s in "ab"),
]


MAPPED = (
    "'delta.columnMapping.mode' = 'name', "
    "'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7'"
)


def with_deleted_rows(spark, folder: Path, properties: str = "") -> None:
    """Land two days; of each some rows are deleted without rewriting their file."""
    uri = str(folder / "landing/meter")
    land(folder, ROWS)
    if properties:
        rows = spark.read.format("delta").load(uri)
        columns = ", ".join(f"{name} {kind}" for name, kind in rows.dtypes)
        plain, uri = uri, str(folder / "landing/mapped")
        spark.sql(
            f"CREATE TABLE delta.`{uri}` ({columns}) USING delta PARTITIONED BY (arrived_on) "
            f"TBLPROPERTIES ({properties})"
        )
        rows.write.format("delta").mode("append").save(uri)
        shutil.rmtree(plain)
        Path(uri).rename(plain)
        uri = plain
    spark.sql(
        f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    DeltaTable.forPath(spark, uri).delete(
        "amount in (1, 5) or amount = 2 and arrived_on = DATE'2024-03-01'"
    )


@pytest.fixture(scope="module")
def plain(session, tmp_path_factory):
    folder = tmp_path_factory.mktemp("a lake, 100% its own")
    with_deleted_rows(session, folder)
    return folder


@pytest.fixture(scope="module")
def mapped(session, tmp_path_factory):
    folder = tmp_path_factory.mktemp("a lake, 100% its own")
    with_deleted_rows(session, folder, MAPPED)
    return folder


@pytest.fixture
def line(session, plain, tmp_path):
    """A lake with such a landing table, to change."""
    folder = shutil.copytree(plain, tmp_path / "100% its own")
    return Line(session, folder, a_spec())


@pytest.fixture(params=["names as they are", "names mapped"])
def either_line(session, plain, mapped, tmp_path, request):
    """The same, also where the columns have other names in the files."""
    source = mapped if request.param == "names mapped" else plain
    return Line(session, shutil.copytree(source, tmp_path / "100% its own"), a_spec())


def test_the_log_counts_the_rows_that_are_left_and_the_books_of_such_a_day_balance(either_line):
    line = either_line
    landing = open_landing(line.spark, line.lake, line.spec)
    read = {row[0]: row[1] for row in landing.frame.groupBy("arrived_on").count().collect()}
    assert landing.landed == read
    assert sum(read.values()) < len(ROWS)
    # of the second day the rows of 15:00 are deleted: the last one arrived at 14:00
    axis = Axis.of(line.spec, instant("1"))
    assert landing.horizon_after(axis) == instant("2 14:00:00.201")

    outcome = line.advance("3")
    (first,) = [book for book in outcome.books if book.name == f"arrival day {FIRST_DAY}"]
    assert first.total == first.accounted == 6
    assert sum(row["records"] for row in line.rows("windows")) <= 14


def test_other_rows_deleted_of_the_same_file_though_as_many_are_a_change(line):
    line.advance("3")
    landing = DeltaTable.forPath(line.spark, str(line.folder / "landing/meter"))
    as_landed = line.lake.resolve("landing/meter")
    undeleted = landing.history().where("operation = 'SET TBLPROPERTIES'").first()["version"]
    line.spark.sql(f"RESTORE TABLE delta.`{as_landed}` TO VERSION AS OF {undeleted}")
    landing.delete("amount in (1, 5) and arrived_on = DATE'2024-03-02'")
    landing.delete("amount in (2, 3, 4) and arrived_on = DATE'2024-03-01'")
    outcome = line.advance("3", allow_removals=True)
    assert outcome.to_recompute == ["2024-03-01"]
    left = [
        row
        for row in ROWS
        if row["amount"] not in ((2, 3, 4) if row["arrived_on"] == FIRST_DAY else (1, 5))
    ]
    assert_told_by_replay(line, left, "3")
