"""A session that computes nothing, for what only asks which engine it is of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strandline.lake.sessions.protocol import ApacheSession, register


@dataclass(frozen=True, eq=False)
class NoSession(ApacheSession):
    engine: str = "spark"
    version: str = "4.2.0"
    spark: object = field(default_factory=object)
    on_one_machine: bool = True
    parallelism: int = 1
    answers_as_spark: bool = True
    has_ended: bool = False
    for_few_rows: dict[str, str] = field(default_factory=dict)

    def computed(self, rows: Any) -> Any:
        raise AssertionError

    def stop(self) -> None:
        raise AssertionError


def spark_of(engine: str = "spark", *, has_ended: bool = False) -> Any:
    """In place of a `SparkSession`."""
    session = NoSession(engine, has_ended=has_ended)
    register(session)
    return session.spark
