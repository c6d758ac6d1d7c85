"""A piece of an interval join's range: its pairs, late records and calendar are staged.

There is a book for each side: its records are late, or accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow.dataset as ds

from strandline.engine.calendar.slots import OlderWindows
from strandline.engine.history.history import History
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.identity import SourceColumns
from strandline.lake.publish.staging import Part
from strandline.model.books import Book
from strandline.pipeline.plan.counts import late_in, refused_by_newest
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.rebuild.piece import (
    Piece,
    calendar_of,
    slots_of,
    stage_calendar,
    stage_side_by_side,
)
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import Accepted
from strandline.spec.join import SIDES
from strandline.spec.joined import PAIRS
from strandline.spec.pipeline import channel_of
from strandline.tables import INPUT, QUARANTINE


def stage_pairs(ctx: Context, history: History, plan: Plan, *, number: int) -> Piece:
    """Rebuild a plan's scope, and stage it as one more piece."""
    scope, columns = plan.scope, SourceColumns(())
    rebuild = rebuild_of_scope(ctx.records(history), columns, history, plan.clock, scope)
    if not isinstance(rebuild, PairRebuild):
        msg = f"{ctx.spec.pipeline} is no interval join"
        raise TypeError(msg)
    staged = stage_side_by_side(
        ctx, {QUARANTINE.name: rebuild.late, PAIRS: rebuild.windows}, number
    )
    accepted = rebuild.accepted_by_input()
    late = staged[QUARANTINE.name]
    refused = _refused(late, scope.windows.start_ms if number else None, history.grid)
    calendar = calendar_of(
        ctx,
        plan,
        rebuild,
        accepted={slot: Accepted(n, in_newest=n) for slot, n in _of_both(accepted).items()},
        refused={(slot, "late"): n for slot, n in _of_both(refused).items()},
        quarantine=late,
    )
    staged["completeness"] = stage_calendar(ctx, calendar, number)
    return Piece(staged, calendar, _books(rebuild, accepted, refused), *slots_of(rebuild))


def _refused(late: Part, since_ms: int | None, grid: Grid) -> dict[str, Counter[int]]:
    """The number of late records of each side, by the start of their slot; see `late_in`."""
    counted: dict[str, Counter[int]] = {}
    for name in SIDES:
        slots = refused_by_newest(late_in(late, since_ms, ds.field(INPUT) == name), grid)
        counted[name] = Counter({slot: n for (slot, _), n in slots.items()})
    return counted


def _of_both(counted: Mapping[str, Counter[int]]) -> Counter[int]:
    return sum(counted.values(), Counter[int]())


def _books(
    rebuild: PairRebuild,
    accepted: Mapping[str, Counter[int]],
    late: Mapping[str, Counter[int]],
) -> list[Book]:
    """The books of each side: its records in the range and in older slots, by outcome."""
    scope, books = rebuild.scope, []
    for name, one in rebuild.history.inputs.items():
        of_range = sum(n for slot, n in late[name].items() if slot in scope.windows)
        parts = {"accepted": accepted[name].total(), "late": of_range}
        books.append(Book(f"range, {name}", _records_of_range(rebuild, name), parts))
        if scope.older_since_ms is not None:
            older = OlderWindows.of(one.history, scope.older_end_ms, scope.older_since_ms)
            of_older = late[name].total() - of_range
            books.append(Book(f"older slots, {name}", older.records, {"late": of_older}))
    return books


def _records_of_range(rebuild: PairRebuild, side: str) -> int:
    """The number of a side's records in the range, by its observations."""
    within, cells = rebuild.scope.windows, rebuild.calendar.cells
    own = cells["channel"].str.startswith(channel_of(side, ""))
    inside = (cells["slot_ms"] >= within.start_ms) & (cells["slot_ms"] < within.end_ms)
    return int(cells.loc[(own & inside).astype(bool), "records"].sum())
