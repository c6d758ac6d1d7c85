"""A piece of the range, of windows or of an interval join: its rows and calendar are staged.

A long range is rebuilt piece by piece, so that the driver holds little at a time. The records of a
piece are counted in its books; an interval join has a book for each side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.calendar.slots import OlderWindows
from strandline.engine.history.history import History
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.position.grid import Grid
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.identity import SourceColumns
from strandline.engine.scope import Rebuild
from strandline.lake.publish.staging import Part
from strandline.lake.sessions.interruptions import in_threads
from strandline.lake.store.schema import arrow_schema
from strandline.model.books import Book
from strandline.model.intervals import TimeRange
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.rebuild.slots import (
    OF_REFUSALS,
    REASONS,
    accepted_by_slot,
    late_in,
    refused_by_newest,
    refused_in_all,
    with_published_values,
)
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import Accepted, completeness
from strandline.spec.join import SIDES
from strandline.spec.joined import PAIRS
from strandline.spec.pipeline import channel_of
from strandline.tables import COMPLETENESS, INPUT, QUARANTINE, UNFIRED_COLUMN

_Refused = Mapping[tuple[int, str], int]
"""The number of records that no window accepted, by start of the newest window and reason."""


@dataclass(frozen=True)
class Piece:
    """A staged piece of the range.

    Attributes:
        staged: the staged rows of this piece and of all before it, by the name of the part.
        calendar: the slots of the piece, and older slots with new late records.
        books: the books of its records; the first piece also has the books of older windows.
        filled: the ids of its windows that have a record.
        touched: the ids of the older windows with new late records.
        leaving: published late records that leave quarantine; None: there are none.
    """

    staged: dict[str, Part]
    calendar: pd.DataFrame
    books: list[Book]
    filled: frozenset[int]
    touched: frozenset[int]
    leaving: Part | None = None


def stage_piece(ctx: Context, history: History, plan: Plan, *, number: int) -> Piece:
    """Rebuild a plan's scope, and stage it as one more piece."""
    scope, columns = plan.scope, ctx.landing.source_columns
    rebuild = rebuild_of_scope(ctx.records(history), columns, history, plan.clock, scope)
    staged = _stage_rows(ctx, rebuild, number)
    since_ms = scope.windows.start_ms if number else None
    accepted = accepted_by_slot(rebuild.accepted_by_slot())
    refused = refused_by_newest(late_in(staged["quarantine"], since_ms), history.grid)
    calendar = calendar_of(ctx, plan, rebuild, accepted, refused, staged["quarantine"])
    staged["completeness"] = stage_calendar(ctx, calendar, number)
    return Piece(staged, calendar, _books(rebuild, accepted, refused), *_slots_of(rebuild))


def _stage_rows(ctx: Context, rebuild: Rebuild, number: int) -> dict[str, Part]:
    """Stage late records and windows in parallel, then firings and pairs, if they are kept.

    Raises:
        InputError: two columns of `pairs` would have one name.
    """

    def emitted() -> DataFrame:
        """The windows that Flink has emitted, without the open ones."""
        return rebuild.windows().where((F.col("state") != "open") & (F.col("firings") > 0))

    # late records first: their last steps are small, and leave room for the windows'
    first = {"quarantine": rebuild.late, "windows": emitted}
    staged = _stage_side_by_side(ctx, first, number)
    then = dict[str, Callable[[], DataFrame]]()
    if ctx.spec.firings:
        then["firings"] = rebuild.firings
    if ctx.spec.has_pairs_of_windows:
        then[PAIRS] = partial(rebuild.pairs, staged["windows"].frame())
    return staged | _stage_side_by_side(ctx, then, number)


def _stage_side_by_side(
    ctx: Context, parts: Mapping[str, Callable[[], DataFrame]], number: int
) -> dict[str, Part]:
    """Stage some parts of a piece, each with the run's id, at once."""
    stamp = F.lit(ctx.run_id)
    with in_threads(ctx.spark, 2) as pool:
        jobs = {
            part: pool.submit(
                ctx.staging.write, part, rows().withColumn("run_id", stamp), piece=number
            )
            for part, rows in parts.items()
        }
        return {part: job.result() for part, job in jobs.items()}


def _slots_of(rebuild: Rebuild) -> tuple[frozenset[int], frozenset[int]]:
    """The ids of a rebuild's slots, and of the older slots with late records."""
    grid, scope = rebuild.history.grid, rebuild.scope
    filled = rebuild.slots["window_id"].astype("int64").tolist()
    older = rebuild.older["window_id"].astype("int64").tolist()
    emptied = (grid.ids_within(TimeRange(ms, ms + 1)) for ms in scope.older_too)
    touched = [*older, *(window for ids in emptied for window in ids)]
    return frozenset(filled), frozenset(touched)


def calendar_schema(ctx: Context) -> pa.Schema:
    """The columns of a run's calendar."""
    unfired = UNFIRED_COLUMN if ctx.spec.may_go_unfired else {}
    return arrow_schema({**COMPLETENESS.columns, **unfired})


def stage_calendar(ctx: Context, calendar: pd.DataFrame | pa.Table, number: int) -> Part:
    """Stage the calendar of a piece."""
    if isinstance(calendar, pd.DataFrame):
        calendar = pa.Table.from_pandas(calendar, calendar_schema(ctx), preserve_index=False)
    return ctx.staging.put("completeness", [calendar], piece=number)


def calendar_of(
    ctx: Context,
    plan: Plan,
    rebuild: Rebuild,
    accepted: Mapping[int, Accepted],
    refused: _Refused,
    quarantine: Part,
) -> pd.DataFrame:
    """The calendar of the piece, and of older slots with new late records."""
    rows = completeness(
        rebuild.slots, ctx.spec, run_id=ctx.run_id, accepted=accepted, refused=refused
    )
    older, since_ms = rebuild.older, plan.scope.older_since_ms
    if len(older) and since_ms is not None:
        again = TimeRange(since_ms, plan.clock.horizon_ms)
        in_all = refused_in_all(ctx, again, rebuild.history.grid, older, quarantine)
        stay = completeness(older, ctx.spec, run_id=ctx.run_id, accepted={}, refused=in_all)
        # a late record may be the first one of its channel
        stay = with_published_values(ctx, stay, computed=(*OF_REFUSALS, "channels_heard"))
        rows = pd.concat([stay, rows], ignore_index=True)
    return rows


def _books(rebuild: Rebuild, accepted: Mapping[int, Accepted], refused: _Refused) -> list[Book]:
    """The books of the records of the piece, and of older windows, by outcome."""
    scope, ids = rebuild.scope, rebuild.history.grid.ids_within(rebuild.scope.windows)
    of_range = {"accepted": sum(window.in_newest for window in accepted.values())}
    of_older = {}
    for reason in REASONS:
        counts = {newest: n for (newest, why), n in refused.items() if why == reason}
        of_range[reason] = sum(n for newest, n in counts.items() if ids.start <= newest < ids.stop)
        of_older[reason] = sum(counts.values()) - of_range[reason]
    books = [Book("range", int(rebuild.slots["records"].sum()), of_range)]
    if scope.older_since_ms is not None:
        books.append(Book("older windows", rebuild.older_records, of_older))
    return books


def stage_pairs(ctx: Context, history: History, plan: Plan, *, number: int) -> Piece:
    """Rebuild a plan's scope, and stage it as one more piece."""
    scope, columns = plan.scope, SourceColumns(())
    rebuild = rebuild_of_scope(ctx.records(history), columns, history, plan.clock, scope)
    if not isinstance(rebuild, PairRebuild):
        msg = f"{ctx.spec.pipeline} is no interval join"
        raise TypeError(msg)
    staged = _stage_side_by_side(
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
    return Piece(staged, calendar, _books_of_sides(rebuild, accepted, refused), *_slots_of(rebuild))


def _refused(late: Part, since_ms: int | None, grid: Grid) -> dict[str, Counter[int]]:
    """The number of late records of each side, by the start of their slot; see `late_in`."""
    counted: dict[str, Counter[int]] = {}
    for name in SIDES:
        slots = refused_by_newest(late_in(late, since_ms, ds.field(INPUT) == name), grid)
        counted[name] = Counter({slot: n for (slot, _), n in slots.items()})
    return counted


def _of_both(counted: Mapping[str, Counter[int]]) -> Counter[int]:
    return sum(counted.values(), Counter[int]())


def _books_of_sides(
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
