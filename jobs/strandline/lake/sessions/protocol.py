"""What the program asks of a session besides the DataFrame API, whichever engine answers it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from strandline.engine.frames import compute_with, write_json_by_hand
from strandline.spec.common import EngineName


class EngineSession(Protocol):
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
    def for_few_rows(self) -> Mapping[str, str]:
        """Settings with which the session is quick where a query has few rows."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time, as far as the engine says."""

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept as long as the session lives."""

    def beside(self) -> AbstractContextManager[SparkSession]:
        """A session for a part of many queries; where an engine keeps some of each, it ends it."""

    def stop(self) -> None:
        """End the session, and whatever was started for it."""


_OPEN: dict[SparkSession, EngineSession] = {}


def opened(session: EngineSession) -> EngineSession:
    """Make a session known to whoever has only its `SparkSession`."""
    _OPEN[session.spark] = session
    compute_with(session.spark, session.computed)
    if session.engine == "sail":
        write_json_by_hand(session.spark)
    return session


def closed(session: EngineSession) -> None:
    """Forget a session that has ended."""
    _OPEN.pop(session.spark, None)
    compute_with(session.spark, None)


def session_of(spark: SparkSession) -> EngineSession:
    """The session that a `SparkSession` belongs to; it was opened by this package."""
    return _OPEN[spark]
