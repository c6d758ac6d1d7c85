"""Facts of an arrival day: the rows in the landing table when it was observed, and changes since.

To *observe* a day is to count its records for the timeline, from which watermarks are computed. The
counts hold only for the rows that were counted. So the facts of each observed day are stored, and
every run first compares them with the present ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum

from strandline.model.intervals import midnight_of


@dataclass(frozen=True, slots=True)
class DayFacts:
    """Facts of an arrival day in the landing table, independent of the columns that are read.

    Attributes:
        rows: the number of rows, without deleted ones; None: not in the table's log.
        digest: a digest of its files and their deletion vectors; of its rows, after `days_by` and a
            colon, if the table is not partitioned by arrival day.
        landing_version: the version of the landing table.
        table_id: the id of the table with this version; None: written by the first release
            candidate, which kept none.
    """

    rows: int | None
    digest: str
    landing_version: int
    table_id: str | None = None

    @property
    def content(self) -> tuple[str, str | None]:
        """The digest and the table id: equal in two versions with the same files of the day."""
        return self.digest, self.table_id

    @property
    def days_by(self) -> str:
        """The hash of the expression that gives a row's arrival day; empty: a partition column."""
        return self.digest.rpartition(":")[0]

    def as_by(self, days_by: str) -> DayFacts:
        """The same facts, with `days_by` before a digest of rows that lacks it.

        Earlier versions of the program stored such a digest, which is a decimal number.
        """
        is_number = self.digest.removeprefix("-").isdecimal()
        return replace(self, digest=f"{days_by}:{self.digest}") if days_by and is_number else self

    def is_of_another_table(self, now: DayFacts, first_id: str | None = None) -> bool:
        """Whether the table has been created again since: its versions and files are unrelated.

        Args:
            now: the present facts.
            first_id: the table id for facts that have none; None: any.
        """
        before_id = self.table_id or first_id
        return None not in (before_id, now.table_id) and before_id != now.table_id

    def has_more_than(self, now: DayFacts | None) -> bool:
        """Whether rows of the day have been removed since; False if a number is not known.

        `now`: the present facts; None: the day has no rows any more.
        """
        if now is None:
            return self.rows != 0
        return None not in (self.rows, now.rows) and (now.rows or 0) < (self.rows or 0)


@dataclass(frozen=True)
class KnownDays:
    """The observed days, and the instants up to which their windows are published.

    Attributes:
        facts: the facts stored for each day.
        frontier_ms: the midnight before which every arrival is published; None: none is.
        published_ms: the latest data cut-off (horizon) of a published run; None: nothing is
            published. Rows that disappear from a later day are no loss: they were not published.
        first_id: see `DayFacts.is_of_another_table`.
    """

    facts: Mapping[date, DayFacts] = field(default_factory=dict)
    frontier_ms: int | None = None
    published_ms: int | None = None
    first_id: str | None = None


@dataclass(frozen=True)
class LandedDays:
    """The present facts of a landing table.

    Attributes:
        facts: the facts of each arrival day; a missing day has no rows.
        only_moved: given days with a table version each, the days whose rows were only rewritten
            into other files since then, with none removed. By default, no day is known to be.
        by_rows: whether digests are of rows instead of files.
        keeps_rows_since: whether no commit since a table version has removed rows of any day; None,
            as by default: it is not known, as commits have been cleaned up.
        rows: the number of all rows, also of rows without a day; None: not known.
    """

    facts: Mapping[date, DayFacts] = field(default_factory=dict)
    only_moved: Callable[[Mapping[date, int]], Collection[date]] = lambda days: ()
    by_rows: bool = False
    keeps_rows_since: Callable[[int], bool | None] = lambda version: None
    rows: int | None = None

    def moved(self, known: KnownDays) -> Collection[date]:
        """The observed days whose rows now belong to other arrival days, with no row removed.

        This happens if `arrival_date` or `arrival_time` is edited in the pipeline's file. Whether
        rows were removed is known from the table's commits; if the commits have been cleaned up,
        from the number of all rows, although new rows may hide removed ones.
        """
        now = next(iter(self.facts.values()), None)
        if now is None:
            return ()
        versions = {
            day: before.landing_version
            for day, before in known.facts.items()
            if before.rows != 0 and before.as_by(now.days_by).days_by != now.days_by
        }
        if any(known.facts[day].is_of_another_table(now, known.first_id) for day in versions):
            return ()
        keeps_rows = self.keeps_rows_since(min(versions.values())) if versions else False
        if keeps_rows is None:
            keeps_rows = self._has_as_many_rows_as(known)
        return versions if keeps_rows else ()

    def _has_as_many_rows_as(self, known: KnownDays) -> bool:
        """Whether there are no fewer rows than were observed; False if it is not known."""
        observed = [facts.rows for facts in known.facts.values() if facts.rows is not None]
        is_known = self.rows is not None and len(observed) == len(known.facts)
        return is_known and (self.rows or 0) >= sum(observed)


@dataclass(frozen=True)
class LandingChanges:
    """The changes of observed days since their observation.

    Attributes:
        changed: days with new or rewritten rows; they are observed again.
        rewritten: days whose rows are the same, in other files or in a table created again.
        missing: days with fewer rows than were observed.
        behind: days before the frontier that have never been observed: all their rows landed late.
        recreated: the changed days whose table was created again.
    """

    changed: frozenset[date]
    rewritten: frozenset[date]
    missing: frozenset[date]
    behind: frozenset[date]
    recreated: frozenset[date] = frozenset()

    @property
    def without_losses(self) -> LandingChanges:
        """The same changes, with days that have lost rows counted as changed."""
        return replace(self, changed=self.changed | self.missing, missing=frozenset())


def compare(known: KnownDays, landed: LandedDays) -> LandingChanges:
    """The changes between the observed and the present facts of each day.

    In a table that was created again only the rows are compared: a file of the same name may be
    another one.
    """
    elsewhere = landed.moved(known)
    changes = {
        day: _Change.OTHER
        if day in elsewhere
        else _change_of(
            before, landed.facts.get(day), by_rows=landed.by_rows, first_id=known.first_id
        )
        for day, before in known.facts.items()
    }

    def of(kind: _Change) -> frozenset[date]:
        return frozenset(day for day, change in changes.items() if change is kind)

    as_many = {day: known.facts[day].landing_version for day in of(_Change.AS_MANY)}
    moved = frozenset(landed.only_moved(as_many))
    fewer = of(_Change.FEWER)
    missing = frozenset(day for day in fewer if _is_before(day, known.published_ms))
    changed = of(_Change.OTHER) | of(_Change.RECREATED) | (as_many.keys() - moved)
    return LandingChanges(
        changed=changed | (fewer - missing),
        rewritten=of(_Change.REWRITTEN) | moved,
        missing=missing,
        behind=frozenset(
            day
            for day in landed.facts
            if day not in known.facts and _is_before(day, known.frontier_ms)
        ),
        recreated=of(_Change.RECREATED),
    )


class _Change(Enum):
    """The change of a day by its digest and rows, before the table's commits are read."""

    NONE = "as it was observed"
    REWRITTEN = "the same rows, of a table created again, or by facts of an earlier version"
    FEWER = "rows are missing"
    RECREATED = "rows of a table that was created again"
    AS_MANY = "as many rows, in other files"
    OTHER = "rows have come, belong to other days, or have not been counted"


def _change_of(
    before: DayFacts, now: DayFacts | None, *, by_rows: bool, first_id: str | None
) -> _Change:
    if now is None:
        return _Change.FEWER if before.rows != 0 else _Change.NONE
    is_another = before.is_of_another_table(now, first_id)
    if before.digest == now.digest and not is_another:
        return _Change.NONE
    if before.as_by(now.days_by).digest == now.digest and by_rows:
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
