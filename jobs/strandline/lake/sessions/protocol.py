"""What the program asks of a session besides the DataFrame API, whichever engine answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from strandline.engine.frames import Executor, executor_of, introduce
from strandline.lake import places
from strandline.spec.common import EngineName


class EngineSession(Executor, Protocol):
    """A session of an engine, and what the DataFrame API does not say of it."""

    @property
    def engine(self) -> EngineName:
        """The name of the engine, as `--engine` takes it."""

    @property
    def version(self) -> str:
        """The version of the engine."""

    @property
    def spark(self) -> SparkSession:
        """The session itself."""

    @property
    def on_one_machine(self) -> bool:
        """Whether the executors see the files of this machine, as they are."""

    @property
    def has_ended(self) -> bool:
        """Whether what computes for the session is known to be gone."""

    @property
    def for_few_rows(self) -> Mapping[str, str]:
        """Settings with which the session is quick where a query has few rows."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time, as far as the engine says."""

    def table_at(self, place: str) -> str:
        """The place of a Delta table as the engine's reader takes it."""

    def parquet(self, reader: DataFrameReader, place: str) -> DataFrame:
        """The rows of a folder of Parquet files, and of no other that a pattern could mean."""

    def to_write(self, place: str) -> str:
        """The place of a folder of Parquet files as the engine's writer takes it."""

    def stop(self) -> None:
        """End the session, and whatever was started for it."""


class HadoopPlaces:
    """Places as Apache Spark takes them: paths, of which only Parquet's reader makes patterns."""

    def table_at(self, place: str) -> str:
        """See `EngineSession`."""
        return places.for_hadoop(place)

    def parquet(self, reader: DataFrameReader, place: str) -> DataFrame:
        """See `EngineSession`; a pattern cannot be escaped where the path has a colon, too."""
        return reader.option("__globPaths__", "false").parquet(places.for_hadoop(place))

    def to_write(self, place: str) -> str:
        """See `EngineSession`."""
        return places.for_hadoop(place)


def opened(session: EngineSession) -> None:
    """Make a session known to whoever has only its `SparkSession`."""
    introduce(session.spark, session)
    places.introduce(session.spark, session.table_at)


def session_of(spark: SparkSession) -> EngineSession:
    """The session that a `SparkSession` belongs to; it was opened by this package."""
    return cast("EngineSession", executor_of(spark))
