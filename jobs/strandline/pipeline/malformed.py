"""The malformed rows of arrival days: staged, counted in the days' books, put into quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.records.days import in_days, on_days
from strandline.engine.records.quarantine import of_inputs, quarantine_malformed
from strandline.lake import publish as out
from strandline.lake.diff import DELETE, INSERT, OP, diff
from strandline.lake.landing import Landing
from strandline.lake.staging import Staging
from strandline.lake.store import Store
from strandline.model.books import Book
from strandline.pipeline.day_books import require_balance
from strandline.pipeline.driver import attempt_of
from strandline.pipeline.observation import Observation, sums_by_day
from strandline.tables import INPUT, QUARANTINE

_PART = "malformed"
_SourceDay = tuple[date | None, str]
"""An arrival day of a source, by that one's name."""


@dataclass(frozen=True)
class Malformed:
    """The malformed rows of an observation.

    Attributes:
        rows: as quarantine rows, staged; None: there is none.
        books: for each day observed now: landed = malformed + well_formed.
    """

    rows: DataFrame | None
    books: list[Book]


def stage_malformed(observation: Observation, landing: Landing, staging: Staging) -> Malformed:
    """Stage the malformed rows of an observation, and balance the books of its days.

    Raises:
        InputError: the book of a day does not balance (`require_balance`).
    """
    rows, counts = _stage_malformed(observation, landing, staging)
    books = _books(observation, counts, landing)
    require_balance(books, landing.spec.pipeline)
    return Malformed(rows, books)


def has_malformed(store: Store, days: Sequence[date | None]) -> bool:
    """Whether quarantine holds malformed rows of these days."""
    malformed = _on(days) & ds.field("slot_start").is_null()
    return store.holds(QUARANTINE.name, malformed, "slot_start IS NULL")


def publish_malformed(
    malformed: DataFrame | None,
    scope: list[date | None],
    over: list[date],
    observation: Observation,
    store: Store,
    staging: Staging,
) -> None:
    """Publish the malformed rows of some days; only of those that are over, rows can go.

    And only of days whose landing has changed: a row that other rules make well-formed stays until
    a run rebuilds the range that it belongs to.
    """
    if malformed is not None:
        out.create(store, QUARANTINE, malformed.schema)
    rows, few = malformed_diff(malformed, scope, over, observation, store, staging)
    counts = out.tally(rows) if few is None else out.tally_of(few)
    out.publish(store, QUARANTINE, rows, counts, attempt_of(f"{staging.run_id}/observed"), few)


def malformed_diff(
    malformed: DataFrame | None,
    scope: list[date | None],
    over: list[date],
    observation: Observation,
    store: Store,
    staging: Staging,
) -> tuple[DataFrame, pa.Table | None]:
    """What `publish_malformed` changes in quarantine; where it is little, also without Spark."""
    if malformed is not None and not has_malformed(store, scope):
        rows, few = _of_days(malformed, scope).withColumn(OP, F.lit(INSERT)), staging.small(_PART)
        if few is not None:
            few = few.filter(_on(scope))
            few = few.append_column(OP, pa.repeat(INSERT, few.num_rows))
        return rows, few
    published = out.published(staging.spark, store, QUARANTINE, malformed)
    there = _of_days(published, scope).where(F.col("slot_start").isNull())
    staged = there.limit(0) if malformed is None else _of_days(malformed, scope)
    place = f"{store.pipeline}: quarantine"
    fitted = out.hold(store, QUARANTINE, staged.schema)
    changes = diff(staged, there, QUARANTINE.keys, place=place, keep=True, fitted=fitted)
    days_with_gone = observation.world.days_whose_rows_may_go(over, observation.owed_days)
    may_go = in_days(QUARANTINE.partition, days_with_gone)
    changes = changes.where((F.col(OP) != DELETE) | F.coalesce(may_go, F.lit(False)))
    return staging.write("malformed_diff", changes), None


def _of_days(rows: DataFrame, days: list[date | None]) -> DataFrame:
    return rows.where(in_days("quarantine_date", days))


def _on(days: Sequence[date | None]) -> ds.Expression:
    """The quarantine rows of some arrival days; None: of those that have none."""
    day = ds.field(QUARANTINE.partition)
    of_days = day.isin([day for day in days if day is not None])
    return of_days | day.is_null() if None in days else of_days


def _stage_malformed(
    observation: Observation, landing: Landing, staging: Staging
) -> tuple[DataFrame | None, Mapping[_SourceDay, int]]:
    days = [*sums_by_day(observation.fresh.malformed)]
    if not days:
        return None, {}
    parts = {
        name: quarantine_malformed(
            on_days(observation.inputs[name].records, days, observation.rows_of_days),
            one.spec,
            one.source_columns,
        )
        for name, one in landing.inputs.items()
    }
    rows = parts[""] if "" in parts else of_inputs(parts, landing.spec)
    staged = staging.write(_PART, rows.withColumn("run_id", F.lit(staging.run_id)))
    day = QUARANTINE.partition
    by = [day] if "" in parts else [day, INPUT]
    few = staging.small(_PART)
    if few is not None:
        return staged, Counter((row[day], row.get(INPUT, "")) for row in few.select(by).to_pylist())
    counted = [row.asDict() for row in staged.groupBy(*by).count().collect()]
    return staged, {(row[day], row.get(INPUT, "")): int(row["count"]) for row in counted}


def _books(
    observation: Observation, malformed: Mapping[_SourceDay, int], landing: Landing
) -> list[Book]:
    """For each source and each day observed now: landed = malformed + well_formed."""
    days = [*observation.new_days, *observation.partial_days]
    books = []
    for name, one in landing.inputs.items():
        fresh, landed = observation.inputs[name].fresh, _landed(one, observation.new_days)
        well_formed, bad = sums_by_day(fresh.day_map), sums_by_day(fresh.malformed)
        of_source = f", {name}" if name else ""
        books += [
            Book(
                f"arrival day {day or 'unknown'}{of_source}",
                landed.get(day, well_formed.get(day, 0) + bad.get(day, 0)),
                {
                    "malformed": malformed.get((day, name), 0),
                    "well_formed": 0 if day is None else well_formed.get(day, 0),
                },
            )
            for day in days
        ]
    return books


def _landed(landing: Landing, whole_days: list[date]) -> dict[date | None, int]:
    """The rows of whole days by the landing table's own log, which the scan has no part in."""
    landed = landing.landed or {}
    return {day: landed[day] for day in whole_days if day in landed}
