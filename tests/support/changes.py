"""What changes under a pipeline between its runs: days that land late, grow or go, an old lake."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from lakes import Line, a_spec, at, land

from strandline.lake.ledger.state import PipelineState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

Row = dict[str, Any]
LAGS = ((2, 40, 300, 1500, 2600), (70, 14, 8, 5, 3))
"""By how many minutes at most records arrive behind their event time, and how often."""


def some_days(days: int, *, seed: int = 1, of_a_day: int = 12) -> list[Row]:
    """Well-formed records of two sources, the first of March first: some hours or days late."""
    chance = random.Random(seed)
    rows = []
    for day in range(1, days + 1):
        for _ in range(of_a_day):
            happened = at(str(day)) + timedelta(seconds=chance.randrange(24 * 3600))
            lag = chance.choices(*LAGS)[0]
            arrived = happened + timedelta(minutes=chance.randrange(lag))
            rows.append(
                {
                    "arrived_at": arrived,
                    "happened_at": happened,
                    "source": chance.choice("ab"),
                    "device": chance.choice(("d1", "d2")),
                    "amount": chance.randrange(90),
                    "position": 0,
                    "arrived_on": arrived.date(),
                }
            )
    rows = sorted((r for r in rows if r["arrived_on"].day <= days), key=lambda r: r["arrived_at"])
    return [{**row, "position": place} for place, row in enumerate(rows)]


def days_of_a_life(days: int, chance: random.Random, of_a_day: int = 9) -> list[Row]:
    """Few records a day, drawn by the chance of a life, with amounts below 30."""
    rows = some_days(days, seed=chance.randrange(2**30), of_a_day=of_a_day)
    return [{**row, "amount": row["amount"] % 30} for row in rows]


def three_days(spark: SparkSession, folder: Path) -> Line:
    """The first three of `some_days` have landed and are published."""
    line = Line(spark, folder, a_spec())
    land(folder, of_days(some_days(5), 1, 2, 3))
    line.advance("4")
    return line


def of_days(rows: Iterable[Row], *days: int) -> list[Row]:
    """The rows that arrived on some days of March."""
    return [row for row in rows if row["arrived_on"].day in days]


def march(day: int) -> date:
    return at(str(day)).date()


def owed(line: Line) -> list[int]:
    """The days of March that are still to be judged again."""
    return [day.day for day in PipelineState.of(line.ledger).days_to_recompute]


def landing_of(line: Line) -> DeltaTable:
    return DeltaTable(str(line.folder / line.spec.source.table))


def take_away(line: Line, *days: int, where: str = "true") -> None:
    """Rows of whole days, or some of them, go from the landing table."""
    named = ", ".join(f"'{march(day)}'" for day in days)
    landing_of(line).delete(f"arrived_on IN ({named}) AND {where}")


def land_again(line: Line, day: int, rows: Sequence[Row]) -> None:
    """A day's rows are replaced by others."""
    table = landing_of(line)
    content = pa.Table.from_pylist(list(rows), schema=pa.schema(table.to_pyarrow_table().schema))
    write_deltalake(table, content, mode="overwrite", predicate=f"arrived_on = '{march(day)}'")
