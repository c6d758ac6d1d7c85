"""Malformed rows of arrival days: staged, counted in the days' books, and quarantined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import functions as F

from strandline.engine.records.days import on_days
from strandline.engine.records.quarantine import of_inputs, quarantine_malformed
from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.publish import apply_diff
from strandline.lake.publish.arrow_diff import DELETE, INSERT, UPDATE
from strandline.lake.publish.staged_diff import Compared, stage_diff
from strandline.lake.publish.staging import Part, Staging
from strandline.lake.publish.sums import ROWS, sums_by
from strandline.lake.store.reads import columns_of, dataset_of, holds, rows_of
from strandline.lake.store.schema import schema_of
from strandline.lake.store.store import Store
from strandline.model.books import Book
from strandline.pipeline.observe.observation import Observation, sums_by_day
from strandline.pipeline.request.driver import attempt_of
from strandline.tables import INPUT, QUARANTINE

_PART = "malformed"
_SourceDay = tuple[date | None, str]
"""An arrival day, and the name of its source."""


@dataclass(frozen=True)
class Malformed:
    """The malformed rows of an observation.

    Attributes:
        rows: the quarantine rows; None: there are none.
        books: a book for each newly observed day: landed = malformed + well_formed.
    """

    rows: Part | None
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


def require_balance(books: Sequence[Book], pipeline: str) -> None:
    """Refuse arrival days of which another number of rows was read than has landed.

    Raises:
        InputError: the numbers of a day differ; it must not count as observed.
    """
    for book in books:
        if not book.balanced:
            parts = " + ".join(f"{count:,} {part}" for part, count in book.parts.items())
            raise InputError(
                f"{pipeline}: {book.name}",
                f"{book.total:,} rows have landed by the landing table's log, but "
                f"{book.accounted:,} were read ({parts}); the day is not observed",
                "the table's files are not those of its log: restore them, or land the day again",
            )


def has_malformed(store: Store, days: Sequence[date | None]) -> bool:
    """Whether quarantine holds malformed rows of these days."""
    table = store.table(QUARANTINE.name)
    return table is not None and holds(table, _malformed_on(days), _FILES)


def publish_malformed(
    malformed: Part | None,
    scope: list[date | None],
    over: list[date],
    observation: Observation,
    store: Store,
    staging: Staging,
) -> None:
    """Publish the malformed rows of some days; rows are removed only on completed days.

    They are removed only on days whose landing has changed. A row that new settings make
    well-formed stays until a run rebuilds its range.
    """
    if malformed is not None:
        apply_diff.create(store, QUARANTINE, malformed.schema)
    rows, counts = malformed_diff(malformed, scope, over, observation, store, staging)
    apply_diff.publish(store, QUARANTINE, rows, counts, attempt_of(f"{staging.run_id}/observed"))


def malformed_diff(
    malformed: Part | None,
    scope: list[date | None],
    over: list[date],
    observation: Observation,
    store: Store,
    staging: Staging,
) -> tuple[Part, dict[str, int]]:
    """The change of `publish_malformed` in quarantine, and the number of rows by operation.

    Call it only if there are malformed rows, staged or published on these days.
    """
    table, staged = store.table(QUARANTINE.name), None
    if malformed is not None:
        staged = replace(malformed, wanted=_on(scope))
        if table is None or not holds(table, _malformed_on(scope), _FILES):
            return staged, {INSERT: staged.count(), UPDATE: 0, DELETE: 0}
    table = table or DeltaTable(store.uri(QUARANTINE.name))
    published = rows_of(dataset_of(table, _FILES), _malformed_on(scope))
    nothing = [columns_of(table).empty_table()]
    schema = schema_of(table) if staged is None else staged.schema
    days_with_removals = observation.status.days_whose_rows_may_go(
        over, observation.days_to_recompute
    )
    compared = Compared(
        QUARANTINE,
        iter(nothing) if staged is None else staged.rows(),
        published,
        apply_diff.fit_into(table, QUARANTINE, schema, store.pipeline),
        keep=True,
        may_go=_on(days_with_removals),
    )
    done = stage_diff(staging, "malformed_diff", compared)
    return done.part, done.counts


_FILES = "slot_start IS NULL"
"""A filter for files that may have malformed rows, which belong to no slot."""


def _malformed_on(days: Sequence[date | None]) -> ds.Expression:
    return _on(days) & ds.field("slot_start").is_null()


def _on(days: Sequence[date | None]) -> ds.Expression:
    """The quarantine rows of some arrival days; None: rows without one."""
    day = ds.field(QUARANTINE.partition)
    of_days = day.isin(pa.array([day for day in days if day is not None], pa.date32()))
    return of_days | day.is_null() if None in days else of_days


def _stage_malformed(
    observation: Observation, landing: Landing, staging: Staging
) -> tuple[Part | None, Mapping[_SourceDay, int]]:
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
    part = staging.part(_PART, staged.schema)
    counted = sums_by(part.rows(columns=by), by).to_pylist()
    return part, {(row[day], row.get(INPUT, "")): row[ROWS] for row in counted}


def _books(
    observation: Observation, malformed: Mapping[_SourceDay, int], landing: Landing
) -> list[Book]:
    """A book for each source and each newly observed day: landed = malformed + well_formed."""
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
    """The rows of whole days by the landing table's own log, independently of the scan."""
    landed = landing.landed or {}
    return {day: landed[day] for day in whole_days if day in landed}
