"""Rebuilds a scope into staging: windows, late records, firings and the calendar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from strandline.engine.calendar.pieces import divided_by_cells
from strandline.engine.history.history import History
from strandline.engine.scope import Scope
from strandline.lake.publish.staging import Part
from strandline.model.books import Book, added_up
from strandline.model.intervals import END_OF_INSTANTS_MS, TimeRange
from strandline.pipeline.plan.plan import Plan
from strandline.pipeline.plan.planned_run import PlannedRun
from strandline.pipeline.rebuild.gaps import StagedGaps, stage_gaps
from strandline.pipeline.rebuild.kept_piece import stage_kept
from strandline.pipeline.rebuild.piece import Piece, stage_pairs, stage_piece
from strandline.pipeline.request.context import Context
from strandline.quality.completeness import in_ms

_MOST_CELLS = 1_000_000
"""The largest number of cells of a rebuild on the driver; a larger range is rebuilt in pieces."""


@dataclass(frozen=True)
class Staged:
    """The staged rows of a run, and the facts that its books and its audit need.

    Attributes:
        parts: the staged rows for each table that the pipeline keeps, in the order of publishing.
        calendar: the range's part of the staged calendar, on the driver.
        books: the books of the range, and of the older windows with late records.
        oldest_ms: the start of the oldest slot with staged rows.
        end_ms: the end of the range.
        slots_expected: the starts of the slots, in the range, of the first and the last record of
            each event date, by the day map.
        gaps: the gaps of the range, and the listed ones around it.
        leaving: published late records that leave quarantine, beside the ones that the run covers.
    """

    parts: dict[str, Part]
    calendar: pd.DataFrame
    books: list[Book]
    oldest_ms: int
    end_ms: int
    slots_expected: frozenset[int]
    gaps: StagedGaps
    leaving: Sequence[Part] = ()

    @property
    def touched(self) -> TimeRange:
        """The starts of slots from the oldest one with staged rows to the last gap listed again."""
        starts = self.gaps.around(TimeRange(self.oldest_ms, self.end_ms))
        return TimeRange(starts.start_ms, min(starts.end_ms, END_OF_INSTANTS_MS - 1))

    @property
    def accepted(self) -> int:
        """The number of accepted records of the range."""
        return self._records("accepted")

    @property
    def late(self) -> int:
        """The number of late records, including late records of older windows.

        A scheduled run's range holds only windows that were not final yet: without the older ones
        its share of late records would leave out most of them.
        """
        return self._records("late")

    def _records(self, part: str) -> int:
        return sum(book.parts.get(part, 0) for book in self.books)


def rebuild_into_staging(ctx: Context, planned: PlannedRun) -> Staged:
    """Rebuild a plan's scope piece by piece, and count all records by outcome."""
    history, plan = planned.observation.history, planned.plan
    stage = stage_piece if ctx.spec.result == "windows" else stage_pairs
    pieces = [
        stage(ctx, history, replace(plan, scope=scope), number=number)
        for number, scope in enumerate(_pieces_of(plan.scope, history))
    ]
    pieces += [
        stage_kept(ctx, history, plan, kept, number=number)
        for number, kept in enumerate(plan.kept, len(pieces))
    ]
    gaps = stage_gaps(ctx, planned, pieces)
    named = history.days.slots_named(plan.scope.windows)
    expected = frozenset(start for start in named if not plan.scope.keeps(start))
    return _combined(ctx, pieces, plan, expected, gaps)


def _combined(
    ctx: Context,
    pieces: Sequence[Piece],
    plan: Plan,
    slots_expected: frozenset[int],
    gaps: StagedGaps,
) -> Staged:
    """The staged pieces of a plan's scope, combined.

    The calendar has the column `input_ended`: whether the input of a slot was ended by `--close`.
    """
    scope, ended = plan.scope, [closure.windows for closure in plan.clock.closures]
    staged = {name: part for piece in pieces for name, part in piece.staged.items()}
    calendars = [*(piece.calendar for piece in pieces), gaps.rows]
    slots = pd.concat([one for one in calendars if len(one)] or calendars[:1], ignore_index=True)
    starts_ms = in_ms(slots["slot_start"])
    in_range = (starts_ms >= scope.windows.start_ms) & (starts_ms < scope.windows.end_ms)
    return Staged(
        parts={name: staged[name] for name in ctx.spec.tables if name in staged},
        calendar=slots[in_range].assign(
            input_ended=[any(ms in one for one in ended) for ms in starts_ms[in_range]]
        ),
        books=added_up(book for piece in pieces for book in piece.books),
        oldest_ms=min([scope.windows.start_ms, *starts_ms, *scope.older_too]),
        end_ms=scope.windows.end_ms,
        slots_expected=slots_expected,
        gaps=gaps,
        leaving=[piece.leaving for piece in pieces if piece.leaving is not None],
    )


def _pieces_of(scope: Scope, history: History) -> list[Scope]:
    """A scope in pieces that fit the driver; the first one includes the older windows."""
    rebuilt = scope.rebuilt
    first, *others = [
        part for one in rebuilt for part in divided_by_cells(history, one, _MOST_CELLS)
    ]
    return [
        replace(scope, windows=first, older_before_ms=scope.older_end_ms),
        *(Scope(windows, kept=scope.kept) for windows in others),
    ]
