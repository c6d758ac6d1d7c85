"""rebuild into staging: windows, late records, firings and the calendar of a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.calendar.gaps import Gaps, new_before
from strandline.engine.calendar.pieces import in_pieces
from strandline.engine.kind import kind_of
from strandline.engine.past.history import History
from strandline.engine.position.axis import Axis
from strandline.engine.rebuild import Rebuild, Scope, close
from strandline.engine.records.identity import identity
from strandline.lake.schema import arrow_schema
from strandline.model.books import Book
from strandline.model.intervals import TimeRange, instant_of
from strandline.pipeline.context import Context
from strandline.pipeline.counts import (
    accepted_by_slot,
    accepted_by_window,
    fired,
    refused_by_home,
)
from strandline.pipeline.observation import Observation
from strandline.pipeline.older_slots import few_or_all, published_before, refused_in_all
from strandline.pipeline.plan import Plan
from strandline.quality.completeness import Accepted, completeness
from strandline.tables import COMPLETENESS

Refused = Mapping[tuple[int, str], int]
"""By home and reason: the records that no window accepted."""

_MOST_RECORDS = 1_000_000
"""Of a range with more records the driver would hold too many cells: it is rebuilt in pieces."""


@dataclass(frozen=True)
class Staged:
    """What a run has staged, and what its books and its audit need to know of it.

    Attributes:
        windows: the windows that have fired.
        quarantine: the late records.
        completeness: the calendar; `calendar` is the range's part of it on the driver.
        firings: the firing history, where the pipeline keeps one.
        oldest_ms: the start of the oldest slot that anything staged belongs to.
        slots_expected: the starts of those slots of the range that the day map names.
        accepted: the accepted records of the range.
        late: the late records, those of older windows too: else the share of a scheduled run, whose
            range holds only windows that were not final yet, would leave out most of them.
        gaps: the gaps of the range, listed or not.
    """

    windows: DataFrame
    quarantine: DataFrame
    completeness: DataFrame
    firings: DataFrame | None
    calendar: pd.DataFrame
    books: list[Book]
    oldest_ms: int
    slots_expected: frozenset[int]
    accepted: int
    late: int
    gaps: int


@dataclass(frozen=True)
class _Piece:
    """What is left of the rebuild of a piece of the range, once its rows are staged.

    Attributes:
        slots: the slots of the piece; `older`: the older ones that late records have touched.
        older_records: how many records are at home in older slots, and have arrived since.
        listed_gaps: the gaps that the calendar lists; `gaps`: how many there are.
        accepted: of sessions what each slot has; of others the staged windows tell it.
        written: the staged rows, by the name of their part.
    """

    slots: pd.DataFrame
    older: pd.DataFrame
    older_records: int
    listed_gaps: pd.DataFrame
    gaps: int
    accepted: dict[int, Accepted]
    written: dict[str, DataFrame]


def rebuild_into_staging(ctx: Context, seen: Observation, plan: Plan, axis: Axis) -> Staged:
    """Close the slots, stage windows and late records side by side, count what became of all."""
    history, scope = seen.history, plan.scope
    pieces = [
        _rebuild_piece(ctx, seen, replace(plan, scope=piece), axis, more=bool(number))
        for number, piece in enumerate(_pieces_of(scope, history))
    ]
    staged = {
        part: ctx.staging.together([piece.written[part] for piece in pieces])
        for part in pieces[0].written
    }
    quarantine, windows = staged["quarantine"], staged["windows"]
    late = few_or_all(ctx, "quarantine", quarantine)
    refused = refused_by_home(late, history.grid)
    accepted = {slot: of_slot for piece in pieces for slot, of_slot in piece.accepted.items()}
    if not kind_of(ctx.spec).cross_slots:
        accepted = accepted_by_window(few_or_all(ctx, "windows", windows), history.grid)
    rows = _calendar(ctx, plan, history, pieces, accepted, refused, quarantine)
    table = pa.Table.from_pandas(
        rows, schema=arrow_schema(COMPLETENESS.columns), preserve_index=False
    )
    within, older = scope.windows, pieces[0].older
    start = pd.Timestamp(within.start_ms, unit="ms", tz="UTC") if len(rows) else None
    return Staged(
        windows=fired(windows),
        quarantine=quarantine,
        completeness=ctx.staging.put("completeness", table),
        firings=staged.get("firings"),
        calendar=rows if start is None else rows[rows["slot_start"] >= start],
        books=_books(plan, history, pieces, accepted, refused),
        oldest_ms=min([within.start_ms, *older["slot_ms"].tolist(), *scope.older_too]),
        slots_expected=history.days.slots_named(within),
        accepted=sum(window.at_home for window in accepted.values()),
        late=sum(count for (_, reason), count in refused.items() if reason == "late"),
        gaps=sum(piece.gaps for piece in pieces),
    )


def _pieces_of(scope: Scope, history: History) -> list[Scope]:
    """A scope in pieces that are not too large; the first one has the older windows."""
    first, *others = in_pieces(history, scope.windows, _MOST_RECORDS)
    return [
        replace(scope, windows=first, older_before_ms=scope.older_end_ms),
        *(Scope(windows) for windows in others),
    ]


def _rebuild_piece(
    ctx: Context, seen: Observation, plan: Plan, axis: Axis, *, more: bool
) -> _Piece:
    """Stage the windows, late records and firings of a piece; `more`: beside those before."""
    records = ctx.landing.records(axis, seen.history.days.rebuilt)
    columns = ctx.landing.source_columns
    rebuild = close(ctx.spark, records, columns, seen.history, plan.clock, plan.scope)
    stamp = F.lit(ctx.run_id)
    with ThreadPoolExecutor(2) as pool:
        # late rows first: their last steps are small, and leave room for the windows'
        jobs = {
            part: pool.submit(
                ctx.staging.write, part, rows().withColumn("run_id", stamp), more=more
            )
            for part, rows in (("quarantine", rebuild.late), ("windows", rebuild.windows))
        }
        written = {part: job.result() for part, job in jobs.items()}
    if ctx.spec.firings:
        firings = rebuild.firings(identity(ctx.spec, columns)).withColumn("run_id", stamp)
        written["firings"] = ctx.staging.write("firings", firings, more=more)
    gaps, counted = Gaps(rebuild.calendar), rebuild.accepted_by_slot()
    listed = [] if ctx.spec.quality.gaps == "allow" else _where_gaps_are_listed(rebuild)
    return _Piece(
        slots=rebuild.slots,
        older=rebuild.older,
        older_records=rebuild.older_records,
        listed_gaps=gaps.listed(listed),
        gaps=gaps.count(plan.scope.windows),
        accepted={} if counted is None else accepted_by_slot(counted),
        written=written,
    )


def _calendar(
    ctx: Context,
    plan: Plan,
    history: History,
    pieces: Sequence[_Piece],
    accepted: Mapping[int, Accepted],
    refused: Refused,
    quarantine: DataFrame,
) -> pd.DataFrame:
    """The calendar of the range, and of the older slots that late records have touched."""
    older = pieces[0].older
    if len(older):
        # of older slots the records of earlier runs count too
        accepted = {**published_before(ctx, older, history.grid), **accepted}
        refused = {**refused, **refused_in_all(ctx, plan, history.grid, older, quarantine)}
    rows = completeness(
        pd.concat([older, *(piece.slots for piece in pieces)], ignore_index=True),
        pd.concat([piece.listed_gaps for piece in pieces], ignore_index=True),
        accepted=accepted,
        refused=refused,
        spec_fingerprint=ctx.spec.spec_fingerprint,
        run_id=ctx.run_id,
    )
    ended = [closure.windows for closure in plan.clock.closures]
    starts = [instant_of(start) for start in rows["slot_start"]]
    return rows.assign(input_ended=[any(s in windows for windows in ended) for s in starts])


def _where_gaps_are_listed(rebuild: Rebuild) -> list[TimeRange]:
    """The range, and of older slots those that may have become gaps by what has arrived since."""
    scope = rebuild.scope
    if scope.older_since_ms is None:
        return [scope.windows]
    emptied = [TimeRange(start_ms, start_ms + 1) for start_ms in sorted(scope.older_too)]
    ahead = new_before(rebuild.history, scope.older_since_ms, scope.older_end_ms)
    return [scope.windows, *emptied, *ahead]


def _books(
    plan: Plan,
    history: History,
    pieces: Sequence[_Piece],
    accepted: Mapping[int, Accepted],
    refused: Refused,
) -> list[Book]:
    ids = history.grid.ids_within(plan.scope.windows)
    parts = {"accepted": sum(window.at_home for window in accepted.values())}
    older = {}
    for reason in ("late", "no_window"):
        counts = {home: n for (home, why), n in refused.items() if why == reason}
        parts[reason] = sum(n for home, n in counts.items() if ids.start <= home < ids.stop)
        older[reason] = sum(counts.values()) - parts[reason]
    books = [Book("range", sum(int(piece.slots["records"].sum()) for piece in pieces), parts)]
    if plan.scope.older_since_ms is not None:
        books.append(Book("older windows", pieces[0].older_records, older))
    return books
