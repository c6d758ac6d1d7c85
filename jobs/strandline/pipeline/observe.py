"""observe: what the arrivals below a horizon say, once for each whole day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NoReturn

import pandas as pd
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.past.history import History
from strandline.engine.past.observed import ObservedDay, cells_of, observe_days, put_together
from strandline.engine.past.violations import violations
from strandline.engine.position.axis import Axis
from strandline.engine.records.days import in_days, lies_in_its_day, on_days
from strandline.engine.records.duplicates import with_duplicates
from strandline.engine.records.quarantine import quarantine_malformed
from strandline.engine.timeline import Fresh, Observed, Together, empty_cells
from strandline.engine.watermark.cells import observe
from strandline.errors import InputError
from strandline.lake import publish as out
from strandline.lake.diff import DELETE, INSERT, OP, diff
from strandline.lake.landing import Landing
from strandline.lake.staged_cells import StagedCells
from strandline.lake.staging import Staging
from strandline.lake.store import Store
from strandline.lake.timeline import (
    StoredTimeline,
    observed_days,
    read_facts,
    read_steps,
    read_violations,
)
from strandline.lake.timeline_commit import DaysToWrite, commit_days, refresh_facts
from strandline.lake.timeline_rows import TimelineTable
from strandline.model.books import Book
from strandline.model.intervals import DAY_MS, midnight_of, text_of
from strandline.pipeline.day_books import require_balance
from strandline.pipeline.world import World
from strandline.spec import PipelineSpec

_AT_ONCE = 1_000_000
"""The cells of so many rows, at most, are held by the driver at once."""


@dataclass(frozen=True)
class Observation:
    """What is known below a horizon.

    Attributes:
        history: the cells of all arrival days below the horizon.
        new_days: the whole days that the timeline does not have yet, or has as they no longer are.
        partial_days: the day that the horizon lies in, and None for rows that have no day; they
            never enter the timeline.
        fresh: what was observed now, of both.
        records: the rows of both.
        followed: where channels can go idle: the steps of both.
        world: what has become of the days observed before, and of their landing.
        violations: where records of both broke the order that the watermark assumes (see
            `engine.violations`); None: that is not counted.
        violations_before: how many did on the days that the timeline has.
    """

    history: History
    new_days: list[date]
    partial_days: list[date | None]
    fresh: Fresh
    records: DataFrame
    followed: list[ObservedDay]
    world: World
    violations: pd.DataFrame | None = None
    violations_before: int = 0

    @property
    def all_violations(self) -> int | None:
        """The violations known below the horizon; None: they are not counted."""
        if self.violations is None:
            return None
        return self.violations_before + int(self.violations["violations"].sum())

    @property
    def malformed_by_reason(self) -> dict[str, int]:
        """All malformed rows known below the horizon, by reason."""
        found = self.history.timeline.malformed.groupby("reason")["records"].sum()
        return {str(reason): int(count) for reason, count in found.items()}

    @property
    def owed_days(self) -> list[date]:
        """The days below the horizon that it finds changed, or behind the frontier."""
        counted = self.rows_of_days
        rows = {day: counted.get(day, 0) for day in self.new_days}
        return self.world.owed_among(self.new_days, rows)

    @property
    def well_formed_of_days(self) -> dict[date, int]:
        """The well-formed rows of each day that was observed now."""
        return _sums(self.fresh.day_map)

    @property
    def rows_of_days(self) -> dict[date | None, int]:
        """The rows of each day that was observed now; None: of those that have no day."""
        counted = Counter[date | None](self.well_formed_of_days)
        counted.update(_sums(self.fresh.malformed))
        return dict(counted)


@dataclass(frozen=True)
class Malformed:
    """The malformed rows of an observation.

    Attributes:
        rows: as quarantine rows, staged; None: there is none.
        books: for each day observed now: landed = malformed + well_formed.
    """

    rows: DataFrame | None
    books: list[Book]


def observe_landing(
    landing: Landing, staging: Staging, axis: Axis, horizon_ms: int, world: World
) -> Observation:
    """Observe the days below a horizon that the timeline lacks, or has as they no longer are.

    Where a day follows from the one before (`days_follow_each_other`), all days from the first one
    of these on are observed.

    Raises:
        InputError: records break an order that the watermark assumes, with `on_violation: fail`; or
            a day has to be observed again whose rows have gone.
    """
    spec = landing.spec
    new = world.days_to_observe(spec, horizon_ms)
    before_ms = midnight_of(new[0]) if new else horizon_ms
    known_until_ms = before_ms if spec.days_follow_each_other else horizon_ms
    table = TimelineTable.open(staging.store)
    known = StoredTimeline(table, spec.timeline_fingerprint, known_until_ms, frozenset(new))
    partial: list[date | None] = [
        day
        for day in landing.days
        if day is not None and midnight_of(day) < horizon_ms < midnight_of(day) + DAY_MS
    ]
    partial += [None] * (None in landing.days)
    scanned: list[date | None] = [*new, *partial]
    landed = with_duplicates(landing.records(axis), spec, scanned, landing.every_day)
    records = landed.where(_known(horizon_ms))
    fresh: Fresh = Observed(empty_cells())
    if scanned and _is_much(world, scanned):
        fresh = StagedCells.written(observe(records, spec, axis), axis, staging)
    elif scanned:
        fresh = Observed(cells_of(records, spec, axis))
    steps, followed = None, []
    if spec.watermark.idleness_in_effect:
        steps = read_steps(table, spec, axis, before_ms=before_ms)
        followed = list(observe_days(records, spec, axis, fresh, steps, horizon_ms))
    timeline = Together(known, fresh)
    history = put_together(timeline, spec, axis, steps, followed, horizon_ms=horizon_ms)
    seen = Observation(history, new, partial, fresh, records, followed, world)
    if spec.watermark.violation_handler is None:
        return seen
    broken = violations(landing.spark, records, history).toArrow().to_pandas()
    if spec.watermark.violation_handler == "fail" and len(broken):
        _fail(broken, spec)
    before = read_violations(table, spec.timeline_fingerprint, before_ms=before_ms)
    return replace(seen, violations=broken, violations_before=before)


def _fail(broken: pd.DataFrame, spec: PipelineSpec) -> NoReturn:
    """Fail where Flink's job does: at the first record that breaks the order."""
    first = broken.sort_values(["first_arrival_ms", "channel"]).iloc[0]
    of_channel = f" of channel {first['channel']!r}" if spec.source.channel else ""
    raise InputError(
        f"{spec.pipeline}: watermark.on_violation",
        f"{int(broken['violations'].sum()):,} records came behind an earlier one of their channel, "
        f"by up to {int(broken['behind_ms'].max())} ms; the first{of_channel} at "
        f"{text_of(int(first['first_arrival_ms']))}",
        "choose on_violation: warn, or bounded_out_of_orderness with a bound for the disorder",
    )


def stage_malformed(seen: Observation, landing: Landing, staging: Staging) -> Malformed:
    """Stage the malformed rows of an observation, and balance the books of its days.

    Raises:
        InputError: the book of a day does not balance (`require_balance`).
    """
    rows, counts = _stage_malformed(seen, landing, staging)
    scanned = [*seen.new_days, *seen.partial_days]
    books = _books(seen, scanned, counts, _landed(landing, seen.new_days))
    require_balance(books, landing.spec.pipeline)
    return Malformed(rows, books)


def commit_observation(
    seen: Observation,
    malformed: DataFrame | None,
    store: Store,
    staging: Staging,
    *,
    finish: Callable[[], None],
    note_owed: Callable[[Sequence[date]], None],
) -> None:
    """Make the new days count: malformed rows into quarantine, then one commit to the timeline.

    Args:
        seen: the observation.
        malformed: its staged malformed rows.
        store: the pipeline's tables.
        staging: of the run.
        finish: finishes a publish that died; called under the lock before anything else.
        note_owed: notes in the ledger which of these days are owed; called before the commit that
            makes them count, so that whoever dies in between forgets nothing.
    """
    spec, world = seen.history.spec, seen.world
    if not (seen.new_days or world.changes.rewritten or malformed is not None):
        return
    with store.lock(staging.spark):
        finish()
        table = TimelineTable.open(store)
        observed = observed_days(table)
        meanwhile = observed.pop(spec.timeline_fingerprint, set())
        elsewhere = bool(observed)  # under another spec: these days go
        facts = read_facts(table)
        # what others have observed meanwhile stands: they may have seen more
        untouched = {
            day
            for day in seen.new_days
            if facts.get(day) == world.known.get(day)
            and (day in meanwhile) == (day in world.observed)
        }
        days = [day for day in seen.new_days if day in untouched]
        if spec.days_follow_each_other and (
            len(days) < len(seen.new_days) or meanwhile != world.observed
        ):
            days = []  # they follow from those before, which are others by now
        owed = [day for day in seen.owed_days if day in days]
        if owed:
            note_owed(owed)
        if malformed is not None or _has_malformed(store, days):
            _publish_malformed(malformed, [*days, *seen.partial_days], days, seen, store, staging)
        if days or elsewhere:
            written = DaysToWrite(
                spec,
                seen.history.axis,
                seen.fresh,
                seen.followed,
                days,
                world.facts_of(days),
                seen.violations,
            )
            commit_days(store, written, replace=elsewhere, lost=world.lost)
        refresh_facts(store, world.facts_of(world.changes.rewritten - set(days)))


def _has_malformed(store: Store, days: Sequence[date | None]) -> bool:
    """Whether quarantine holds malformed rows of these days."""
    day = ds.field(out.QUARANTINE.partition)
    of_days = day.isin([day for day in days if day is not None])
    if None in days:
        of_days |= day.is_null()
    return store.holds(out.QUARANTINE.name, of_days & ds.field("slot_start").is_null())


def _publish_malformed(
    malformed: DataFrame | None,
    scope: list[date | None],
    over: list[date],
    seen: Observation,
    store: Store,
    staging: Staging,
) -> None:
    """Publish the malformed rows of some days; only of those that are over, rows can go.

    And only of days whose landing has changed: a row that other rules make well-formed stays until
    a run rebuilds the range that it belongs to.
    """
    if malformed is not None:
        out.create(store, out.QUARANTINE, malformed.schema)
    if malformed is not None and not _has_malformed(store, scope):
        rows = _of_days(malformed, scope).withColumn(OP, F.lit(INSERT))
        out.publish(store, out.QUARANTINE, rows, out.tally(rows), staging.run_id + "/observed")
        return
    published = out.published(staging.spark, store, out.QUARANTINE, malformed)
    there = _of_days(published, scope).where(F.col("slot_start").isNull())
    staged = there.limit(0) if malformed is None else _of_days(malformed, scope)
    place = f"{store.pipeline}: quarantine"
    changes = diff(staged, there, out.QUARANTINE.keys, place=place, keep=True)
    days_with_gone = seen.world.days_whose_rows_may_go(over, seen.owed_days)
    may_go = in_days(out.QUARANTINE.partition, days_with_gone)
    changes = changes.where((F.col(OP) != DELETE) | F.coalesce(may_go, F.lit(False)))
    kept = staging.write("malformed_diff", changes)
    out.publish(store, out.QUARANTINE, kept, out.tally(kept), staging.run_id + "/observed")


def _of_days(rows: DataFrame, days: list[date | None]) -> DataFrame:
    return rows.where(in_days("quarantine_date", days))


def _known(horizon_ms: int) -> Column:
    """What a run knows at a horizon: of the day that it lies in, the arrivals before it.

    A row that lies in the wrong partition, or has no arrival, is known with its partition.
    """
    return (F.col(c.ARRIVAL) < horizon_ms) | ~lies_in_its_day()


def _is_much(world: World, days: Sequence[date | None]) -> bool:
    """Whether the rows of some days are more than the driver should count cells of at once."""
    known = [world.landed[day].rows for day in days if day is not None and day in world.landed]
    return sum(rows for rows in known if rows is not None) > _AT_ONCE


def _sums(counted: pd.DataFrame) -> dict[Any, int]:
    """The records of each arrival day; None: of those that have none."""
    days = counted["arrival_date"].astype(object).where(counted["arrival_date"].notna(), None)
    sums = Counter[Any]()
    for day, records in zip(days, counted["records"], strict=True):
        sums[day] += int(records)
    return dict(sums)


def _stage_malformed(
    seen: Observation, landing: Landing, staging: Staging
) -> tuple[DataFrame | None, dict[date | None, int]]:
    days = [*_sums(seen.fresh.malformed)]
    if not days:
        return None, {}
    of_days = on_days(seen.records, days, seen.rows_of_days)
    rows = quarantine_malformed(of_days, landing.spec, landing.source_columns)
    staged = staging.write("malformed", rows.withColumn("run_id", F.lit(staging.run_id)))
    counted = staged.groupBy("quarantine_date").count().collect()
    return staged, {row[0]: int(row[1]) for row in counted}


def _books(
    seen: Observation,
    days: list[date | None],
    malformed: dict[date | None, int],
    landed: dict[date | None, int],
) -> list[Book]:
    well_formed, everything = seen.well_formed_of_days, seen.rows_of_days
    return [
        Book(
            f"arrival day {day or 'unknown'}",
            landed.get(day, everything.get(day, 0)),
            {
                "malformed": malformed.get(day, 0),
                "well_formed": 0 if day is None else well_formed.get(day, 0),
            },
        )
        for day in days
    ]


def _landed(landing: Landing, whole_days: list[date]) -> dict[date | None, int]:
    """The rows of whole days by the landing table's own log, which the scan has no part in."""
    landed = landing.landed or {}
    return {day: landed[day] for day in whole_days if day in landed}
