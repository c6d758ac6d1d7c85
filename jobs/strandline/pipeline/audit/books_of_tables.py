"""A book over the tables themselves: no record is both in quarantine and in windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow.dataset as ds

from strandline.engine.history.history import History
from strandline.engine.scope import Scope
from strandline.lake.publish.arrow_diff import DELETE, OP
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.publish.staged_diff import Change
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.reads import rows_on_days
from strandline.model.books import Book
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.pipeline.observe.observation import sums_by_day
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.request.context import Context
from strandline.tables import QUARANTINE

_DAY = QUARANTINE.partition


def books_of_tables(ctx: Context, planned: PlannedRun, changes: Sequence[Change]) -> list[Book]:
    """A book for each arrival day that a run covers whole: quarantined = landed - well-formed.

    Landed rows are counted by the landing's log, well-formed ones by the timeline, quarantined ones
    as the malformed rows in the table without the rows that the run removes. A day with records of
    other windows may keep rows that were malformed under earlier settings. Rows without an arrival
    day may not.
    """
    observation = planned.observation
    malformed, well_formed = (
        Counter[date | None](sums_by_day(rows))
        for rows in (observation.history.timeline.malformed, observation.history.timeline.day_map)
    )
    days = [
        *_evaluated_whole(observation.history, planned.plan.scope, planned.horizon_ms),
        *(day for day in observation.new_days if day not in well_formed),
    ]
    days = [day for day in days if day not in observation.status.missing]
    landed = ctx.landing.landed or {}
    expected: dict[date | None, int] = {
        day: landed[day] - well_formed[day] if day in landed else malformed[day]
        for day in days
        if day is not None
    }
    if None in days:  # of what is malformed by today's rules, nobody knows what has gone
        expected[None] = 0
    quarantined = _malformed_in_table(ctx, days)
    quarantined.subtract(_deleted(changes))
    may_lack = planned.state.may_lack_quarantine(ctx.spec.quarantine_days)
    return [
        Book(f"quarantine, arrival day {day or 'unknown'}", rows, {"quarantined": quarantined[day]})
        for day, rows in expected.items()
        if not (may_lack and quarantined[day] < rows)
    ]


def _evaluated_whole(history: History, scope: Scope, horizon_ms: int) -> list[date | None]:
    """The completed arrival days whose records all belong to windows that are rebuilt.

    Includes None (the rows without a day) if this holds for all known records.
    """
    of_days = history.days.day_map.groupby("arrival_date")
    least, largest = of_days["least_ts_ms"].min(), of_days["largest_ts_ms"].max()
    first, last = (history.grid.newest_starts(ts.to_numpy(np.int64)) for ts in (least, largest))
    inside = np.zeros(len(first), dtype=bool)
    for within in scope.rebuilt:
        inside |= (first >= within.start_ms) & (last < within.end_ms)
    whole: list[date | None] = [
        day
        for day, is_inside in zip(least.index, inside, strict=True)
        if is_inside and midnight_of(day) + DAY_MS <= horizon_ms
    ]
    return [*whole, None] if inside.all() else whole


def _malformed_in_table(ctx: Context, days: Sequence[date | None]) -> Counter[date | None]:
    """The number of malformed rows in quarantine, by arrival day."""
    of_days = rows_on_days(_DAY, [day for day in days if day is not None])
    if None in days:
        of_other_rules = ds.field("spec_fingerprint") != ctx.spec.spec_fingerprint
        of_days |= ds.field(_DAY).is_null() & of_other_rules
    wanted = of_days & ds.field("slot_start").is_null()
    rows = read_days(ctx.store, QUARANTINE.name, [_DAY], Days(), wanted) if days else None
    return Counter([] if rows is None else rows[_DAY].to_pylist())


def _deleted(changes: Sequence[Change]) -> Counter[date | None]:
    """The number of malformed rows that a run removes from quarantine, by arrival day."""
    (change,) = (one for one in changes if one.target.name == QUARANTINE.name)
    if not change.counts[DELETE]:
        return Counter()
    deletes = (ds.field(OP) == DELETE) & ds.field("slot_start").is_null()
    by_day = sums_by(change.rows.rows(deletes, [_DAY]), [_DAY]).to_pylist()
    return Counter({row[_DAY]: row[ROWS] for row in by_day})
