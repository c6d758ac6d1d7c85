"""The protocol of a session: abilities that the program needs beyond the DataFrame API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, cast

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from strandline.engine.frames import Executor, executor_of, introduce
from strandline.lake.store import places
from strandline.spec.common import EngineName


class EngineSession(Executor, Protocol):
    """A session of an engine."""

    @property
    def engine(self) -> EngineName:
        """The engine's name, as in `--engine`."""

    @property
    def version(self) -> str:
        """The version of the engine."""

    @property
    def spark(self) -> SparkSession:
        """PySpark's session."""

    @property
    def on_one_machine(self) -> bool:
        """Whether the executors read and write the files of this machine."""

    @property
    def has_ended(self) -> bool:
        """Whether the engine's process is known to have ended."""

    @property
    def for_few_rows(self) -> Mapping[str, str]:
        """Settings that make queries over few rows quick."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time, as far as it is known."""

    def table_at(self, place: str, version: int | None = None) -> str:
        """The place of a Delta table for the engine's reader.

        Args:
            place: the table's place.
            version: the version to read; None: the newest.
        """

    def parquet(self, reader: DataFrameReader, place: str) -> DataFrame:
        """The rows of a folder of Parquet files, whose path is not taken as a pattern."""

    def to_write(self, place: str) -> str:
        """The place of a folder of Parquet files for the engine's writer."""

    def columns_of(self, rows: DataFrame, place: str) -> StructType:
        """The columns of some rows, which have been written into a folder of Parquet files."""

    def stop(self) -> None:
        """End the session, and the processes that it has started."""


class ApacheSession:
    """A session of Apache Spark; its places are paths, as patterns only for Parquet's reader."""

    spark: SparkSession
    answers_as_spark = True

    def table_at(self, place: str, version: int | None = None) -> str:
        """See `EngineSession`; every version is read at the same place."""
        return places.for_hadoop(place)

    def parquet(self, reader: DataFrameReader, place: str) -> DataFrame:
        """See `EngineSession`; a pattern cannot be escaped in a path with a colon."""
        return reader.option("__globPaths__", "false").parquet(places.for_hadoop(place))

    def to_write(self, place: str) -> str:
        """See `EngineSession`."""
        return places.for_hadoop(place)

    def columns_of(self, rows: DataFrame, place: str) -> StructType:
        """See `EngineSession`."""
        return rows.schema

    def stop(self) -> None:
        """See `EngineSession`; a Connect server runs on, and one that has ended is ignored."""
        with suppress(Exception):
            self.spark.stop()


def register(session: EngineSession) -> None:
    """Register a session, so that `session_of` finds it by its `SparkSession`."""
    introduce(session.spark, session)
    places.introduce(session.spark, session.table_at)


def session_of(spark: SparkSession) -> EngineSession:
    """The registered session of a `SparkSession`."""
    return cast("EngineSession", executor_of(spark))
