"""Commits an observation: its malformed rows into quarantine, its days into the timeline.

Before that the malformed rows are staged, and counted in the books of their days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import pyarrow.dataset as ds
from pyspark.sql import functions as F

from strandline.engine.records.days import on_days
from strandline.engine.records.quarantine import of_inputs, quarantine_malformed
from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.publish import apply_diff
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.publish.staged_diff import Change, Compared, stage_diff, whole_part
from strandline.lake.publish.staging import Part, Staging
from strandline.lake.store.reads import columns_of, dataset_of, holds, rows_of, rows_on_days
from strandline.lake.store.schema import schema_of
from strandline.lake.timeline.commit import DaysToWrite, commit_days, refresh_facts
from strandline.lake.timeline.rows import SCHEMA as TIMELINE_SCHEMA
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import observed_days, read_facts
from strandline.model.books import Book
from strandline.pipeline.observe.observation import Observation, sums_by_day
from strandline.pipeline.request.context import Context, Journal
from strandline.pipeline.request.driver import attempt_of
from strandline.tables import INPUT, QUARANTINE

_PART, _DAY = "malformed", QUARANTINE.partition
_SourceDay = tuple[date | None, str]
"""An arrival day, and the name of its source."""
_FILES = "slot_start IS NULL"
"""A filter for files that may have malformed rows, which belong to no slot."""


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
    part = staging.write(_PART, rows.withColumn("run_id", F.lit(staging.run_id)))
    by = [_DAY] if "" in parts else [_DAY, INPUT]
    counted = sums_by(part.rows(columns=by), by).to_pylist()
    return part, {(row[_DAY], row.get(INPUT, "")): row[ROWS] for row in counted}


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


def commit_observed(
    ctx: Context, journal: Journal, observation: Observation, malformed: Malformed
) -> None:
    """Commit the observations of a run: malformed rows, the books of the days, the timeline.

    The caller holds the lock and has finished any dead publish.
    """
    ctx.store.create("timeline", TIMELINE_SCHEMA, ["arrival_date"])
    is_new = observation.new_days or observation.status.changes.rewritten
    if is_new or malformed.rows is not None:
        _commit_new_days(ctx, journal, observation, malformed.rows)
    journal.write("observed", books=malformed.books)


def _commit_new_days(
    ctx: Context, journal: Journal, observation: Observation, malformed: Part | None
) -> None:
    """Commit new days: malformed rows into quarantine, then commits to the timeline, mostly one."""
    spec, status = observation.history.spec, observation.status
    newest = status.timeline.newest(ctx.store)
    days = _not_observed_meanwhile(observation, newest)
    of_other_rules = observed_days(newest).keys() - {spec.timeline_fingerprint}
    to_recompute = [day for day in observation.days_to_recompute if day in days]
    if to_recompute:  # before the days are observed, so that a run killed in between loses none
        journal.write("owed", owed=to_recompute)
    journal.quarantined = _publish_malformed(ctx, malformed, days, observation)
    if days or of_other_rules:
        written = DaysToWrite(
            spec,
            observation.axes,
            observation.fresh,
            observation.observed_steps,
            days,
            status.facts_of(days),
            observation.violations,
        )
        commit_days(ctx.store, written, replace=bool(of_other_rules), missing=status.missing)
    rewritten = status.changes.rewritten - set(days)
    refresh_facts(ctx.store, status.facts_of(rewritten))
    newest.keep_narrow(ctx.store, len(days) + len(rewritten))


def _not_observed_meanwhile(observation: Observation, newest: TimelineTable) -> list[date]:
    """The new days that no other run has observed since this run began.

    If days depend on the days before them, they count only if these are unchanged.
    """
    spec, status = observation.history.spec, observation.status
    facts, observed = read_facts(newest), observed_days(newest)
    by_now = observed.get(spec.timeline_fingerprint, set())
    days = [
        day
        for day in observation.new_days
        if facts.get(day) == status.known.get(day) and (day in by_now) == (day in status.observed)
    ]
    is_as_before = len(days) == len(observation.new_days) and by_now == status.observed
    return days if is_as_before or not spec.days_follow_each_other else []


def _publish_malformed(
    ctx: Context, malformed: Part | None, whole: Sequence[date], observation: Observation
) -> Mapping[str, int]:
    """Publish the malformed rows of some whole days, and of an observation's partial days.

    Rows are removed only on whole days whose landing has changed. A row that new settings make
    well-formed stays until a run rebuilds its range.

    Returns:
        The numbers of rows inserted, updated and deleted in quarantine; empty: there was nothing
        to compare.
    """
    if malformed is not None:
        apply_diff.create(ctx.store, QUARANTINE, malformed.schema)
    found = malformed_diff(ctx, malformed, whole, observation)
    if found is None:
        return {}
    apply_diff.apply(ctx.store, found, attempt_of(f"{ctx.run_id}/observed"))
    return found.counts


def malformed_diff(
    ctx: Context, malformed: Part | None, whole: Sequence[date], observation: Observation
) -> Change | None:
    """The change of `_publish_malformed` in quarantine.

    None: no malformed row is staged, and none of the whole days is published.
    """
    table, every = ctx.store.table(QUARANTINE.name), [*whole, *observation.partial_days]
    if malformed is None:
        if table is None or not holds(table, _malformed_on(whole), _FILES):
            return None
        staged, schema = iter([columns_of(table).empty_table()]), schema_of(table)
    else:
        part = replace(malformed, wanted=rows_on_days(_DAY, every))
        if table is None or not holds(table, _malformed_on(every), _FILES):
            return whole_part(QUARANTINE, part)
        staged, schema = part.rows(), part.schema
    fitted = apply_diff.fit_into(
        table, QUARANTINE, schema, ctx.spec.pipeline, has_names_of_table=malformed is None
    )
    may_go = observation.status.days_whose_rows_may_go(whole, observation.days_to_recompute)
    compared = Compared(
        QUARANTINE,
        staged,
        rows_of(dataset_of(table, _FILES), _malformed_on(every)),
        fitted,
        keep=True,
        may_go=rows_on_days(_DAY, may_go),
    )
    return stage_diff(ctx.staging, "malformed_diff", compared)


def _malformed_on(days: Sequence[date | None]) -> ds.Expression:
    return rows_on_days(_DAY, days) & ds.field("slot_start").is_null()
