"""The facts of an arrival day: what had landed of it when it was observed, and what became of it.

A timeline is only as good as the rows that it was counted from. So each observed day keeps what the
landing table said of it, and every run asks first whether that still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum

from strandline.model.intervals import midnight_of


@dataclass(frozen=True, slots=True)
class DayFacts:
    """What the landing table says of an arrival day; of the table, not of what a pipeline reads.

    Attributes:
        rows: its rows, deleted ones not counted; None: the table's log does not know.
        digest: of its files and of what is deleted in them; of its rows where a table is not
            partitioned by its arrival days.
        landing_version: the version of the landing table that says so.
        table_id: the table's own id, which `landing_version` is a version of; None: of
            the first release candidate, which kept none.
    """

    rows: int | None
    digest: str
    landing_version: int
    table_id: str | None = None

    def is_of_another_table(self, now: DayFacts, first_id: str | None = None) -> bool:
        """Whether the table has been created again since: its versions, and files, are others.

        Args:
            now: what a table says now.
            first_id: of the table that facts without an id are of; None: of any.
        """
        before_id = self.table_id or first_id
        return None not in (before_id, now.table_id) and before_id != now.table_id

    def has_more_than(self, now: DayFacts | None) -> bool:
        """Whether rows of the day have gone since; None: of one that has no row any more."""
        if now is None:
            return self.rows != 0
        return None not in (self.rows, now.rows) and (now.rows or 0) < (self.rows or 0)


@dataclass(frozen=True)
class KnownDays:
    """The days that were observed, and how far they are published.

    Attributes:
        facts: what was kept of each of them.
        frontier_ms: the midnight before which all is published; None: nothing is.
        published_ms: the largest horizon of what is published; None: nothing is. What goes of a day
            that nothing is published of is no loss: it was put right before it counted.
        first_id: see `DayFacts.is_of_another_table`.
    """

    facts: Mapping[date, DayFacts] = field(default_factory=dict)
    frontier_ms: int | None = None
    published_ms: int | None = None
    first_id: str | None = None


def _none_moved(days: Mapping[date, int]) -> Collection[date]:
    return ()


@dataclass(frozen=True)
class LandedDays:
    """What a landing table says now.

    Attributes:
        facts: of each arrival day; a day that is not there has no row.
        only_moved: of days, with a version of the table for each, those whose rows no commit has
            taken away since then: as many rows as before are the same, in other files. By default
            that is known of none.
        by_rows: whether digests are of rows, and not of files.
    """

    facts: Mapping[date, DayFacts] = field(default_factory=dict)
    only_moved: Callable[[Mapping[date, int]], Collection[date]] = _none_moved
    by_rows: bool = False


@dataclass(frozen=True)
class LandingChanges:
    """What has become of the days that were observed before.

    Attributes:
        changed: rows have come, or were written again: these days are observed again.
        rewritten: the same rows lie in other files, or in a table that was created again.
        lost: rows have gone: fewer are there than were observed.
        behind: days that nobody has observed yet, although all before the frontier was published.
        recreated: of the changed days those whose table has been created again.
    """

    changed: frozenset[date]
    rewritten: frozenset[date]
    lost: frozenset[date]
    behind: frozenset[date]
    recreated: frozenset[date] = frozenset()

    @property
    def without_losses(self) -> LandingChanges:
        """The same of rows that may go as they may come: what has lost some has changed."""
        return replace(self, changed=self.changed | self.lost, lost=frozenset())


def compare(known: KnownDays, landed: LandedDays) -> LandingChanges:
    """Hold what the landing table says of each day against what it said when it was observed.

    Of a table that has been created again only its rows say that they are the same: a file of the
    same name may be another one.
    """
    changes = {
        day: _change_of(
            before, landed.facts.get(day), by_rows=landed.by_rows, first_id=known.first_id
        )
        for day, before in known.facts.items()
    }

    def of(kind: _Change) -> frozenset[date]:
        return frozenset(day for day, change in changes.items() if change is kind)

    as_many = {day: known.facts[day].landing_version for day in of(_Change.AS_MANY)}
    moved = frozenset(landed.only_moved(as_many))
    fewer = of(_Change.FEWER)
    lost = frozenset(day for day in fewer if _is_before(day, known.published_ms))
    changed = of(_Change.OTHER) | of(_Change.RECREATED) | (as_many.keys() - moved)
    return LandingChanges(
        changed=changed | (fewer - lost),
        rewritten=of(_Change.REWRITTEN) | moved,
        lost=lost,
        behind=frozenset(
            day
            for day in landed.facts
            if day not in known.facts and _is_before(day, known.frontier_ms)
        ),
        recreated=of(_Change.RECREATED),
    )


class _Change(Enum):
    """What the digests and the rows of a day say of it, before its commits are asked."""

    NONE = "as it was observed"
    REWRITTEN = "the same rows, of a table that was created again"
    FEWER = "rows are missing"
    RECREATED = "rows of a table that was created again"
    AS_MANY = "as many rows, in other files"
    OTHER = "rows have come, or nobody has counted them"


def _change_of(
    before: DayFacts, now: DayFacts | None, *, by_rows: bool, first_id: str | None
) -> _Change:
    if now is None:
        return _Change.FEWER if before.rows != 0 else _Change.NONE
    is_another = before.is_of_another_table(now, first_id)
    if before.digest == now.digest and not is_another:
        return _Change.NONE
    if before.digest == now.digest and by_rows:
        return _Change.REWRITTEN
    if before.has_more_than(now):
        return _Change.FEWER
    if is_another:
        return _Change.RECREATED
    # rows that the log does not count may be any
    is_counted = None not in (before.rows, now.rows)
    return _Change.AS_MANY if is_counted and before.rows == now.rows else _Change.OTHER


def _is_before(day: date, instant_ms: int | None) -> bool:
    return instant_ms is not None and midnight_of(day) < instant_ms
