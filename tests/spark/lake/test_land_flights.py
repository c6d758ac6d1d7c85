"""The landing table of the flights, as Spark and delta-rs read it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

import land_flights as job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

FLIGHTS, NEVER_DEPARTED, NEVER_LANDED = 336_776, 8_255, 1_175


@pytest.fixture(scope="module")
def lake(flights_lake: Path) -> str:
    return str(flights_lake)


@pytest.fixture(scope="module")
def landed(spark: SparkSession, lake: str) -> DataFrame:
    return spark.read.format("delta").load(job.table_uri(lake))


@pytest.fixture(scope="module")
def facts(landed: DataFrame) -> Row:
    """All that one pass over the table says: a Spark job costs more than a test."""
    (row,) = landed.selectExpr(
        "count(*) AS flights",
        "count_if(departed_at IS NULL) AS never_departed",
        "count_if(departed_at IS NOT NULL AND landed_at IS NULL) AS never_landed",
        "count_if(departed_at IS NULL AND landed_at IS NOT NULL) AS landed_from_nowhere",
        "count_if(arrival_date IS NULL) AS without_date",
        "count_if(to_date(landed_at) <> arrival_date) AS outside_partition",
        "count_if(landed_at IS NULL"
        " AND to_date(timestampadd(MINUTE, minute, time_hour)) <> arrival_date) AS off_schedule",
        "count(DISTINCT arrival_date) AS days",
        "min(arrival_date) AS first_day",
        "max(arrival_date) AS last_day",
    ).collect()
    return row


def test_every_flight_is_landed_with_all_its_columns(landed: DataFrame, facts: Row) -> None:
    own = ["departed_at", "landed_at", "arrival_date"]
    types = dict(landed.dtypes)
    assert list(types) == [*job.SOURCE_COLUMNS, *own]
    assert [types[name] for name in ("time_hour", *own)] == ["timestamp"] * 3 + ["date"]
    assert facts.flights == FLIGHTS


def test_a_cancelled_flight_has_no_departure_and_a_diverted_one_no_landing(facts: Row) -> None:
    assert facts.never_departed == NEVER_DEPARTED
    assert facts.never_landed == NEVER_LANDED
    assert facts.landed_from_nowhere == 0


def test_a_flight_lies_in_the_day_of_its_landing_or_else_of_its_schedule(facts: Row) -> None:
    assert (facts.outside_partition, facts.off_schedule, facts.without_date) == (0, 0, 0)
    assert (facts.days, facts.first_day, facts.last_day) == (
        366,
        date(2013, 1, 1),
        date(2014, 1, 1),
    )


def test_the_first_flight_of_the_year_stands_as_in_the_source(landed: DataFrame) -> None:
    day = landed.where("arrival_date = '2013-01-01' AND carrier = 'UA' AND flight = 1545")
    (row,) = day.selectExpr(
        *["dep_time", "dep_delay", "tailnum", "dest", "air_time", "distance"],
        "CAST(departed_at AS STRING) AS departed",
        "CAST(landed_at AS STRING) AS landed",
    ).collect()
    assert tuple(row) == (
        *(517, 2, "N14228", "IAH", 227, 1_400),
        "2013-01-01 10:17:00",
        "2013-01-01 14:04:00",
    )


def test_a_second_run_finds_the_flights_and_writes_nothing(lake: str) -> None:
    landing, written = job.land(lake)
    assert not written
    assert DeltaTable(job.table_uri(lake)).version() == 0
    assert (landing.flights, landing.never_departed, landing.never_landed) == (
        FLIGHTS,
        NEVER_DEPARTED,
        NEVER_LANDED,
    )


def test_the_table_asks_for_nothing_that_a_plain_reader_lacks(lake: str) -> None:
    table = DeltaTable(job.table_uri(lake))
    assert table.metadata().partition_columns == ["arrival_date"]
    assert table.protocol().min_reader_version == 1
    assert table.protocol().reader_features is None
    assert len(table.file_uris()) == 366


def test_what_someone_else_has_added_goes_when_the_flights_are_landed_again(
    own_flights_lake: Path,
) -> None:
    lake = str(own_flights_lake)
    table = DeltaTable(job.table_uri(lake))
    some = table.to_pyarrow_table(filters=[("arrival_date", "=", date(2013, 2, 9))])
    write_deltalake(table, some, mode="append")

    assert job.landed(job.table_uri(lake)) is None
    assert job.land(lake)[1]
    assert DeltaTable(job.table_uri(lake)).count() == FLIGHTS
    assert not job.land(lake)[1]


def test_housekeeping_does_not_make_it_land_again(own_flights_lake: Path) -> None:
    lake = str(own_flights_lake)
    DeltaTable(job.table_uri(lake)).optimize.compact()
    DeltaTable(job.table_uri(lake)).vacuum(dry_run=False)
    assert not job.land(lake)[1]


def test_a_lake_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    assert job.main(["--lake", str(tmp_path / "file" / "lake")]) == 4
    (record,) = caplog.records
    assert "nothing was landed" in record.getMessage()
    assert "\n" not in record.getMessage()
