"""The landing of a pipeline: the rows of one or two landing tables, or of another's results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Self

from pyspark.sql import DataFrame, SparkSession

from strandline.engine.position.axis import Axis
from strandline.engine.records.duplicates import days_needed
from strandline.engine.records.identity import SourceColumns
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.state import PipelineState
from strandline.model.facts import DayFacts, KnownDays, LandingChanges
from strandline.model.intervals import EVERYTHING, midnight_of
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.used_expressions import TableName

if TYPE_CHECKING:
    from strandline.lake.landing.table_landing import TableLanding


@dataclass(frozen=True)
class Landing(ABC):
    """One version of a pipeline's landing.

    A row's identity depends on the `published` columns of quarantine, in their order, and on those
    whose nulls count (`nulls_counted`); see `lake.store.identities`.
    """

    spark: SparkSession
    spec: PipelineSpec
    log: LandingLog
    now_ms: int | None = None
    published: tuple[str, ...] = ()
    nulls_counted: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of its rows."""

    @property
    @abstractmethod
    def source_columns(self) -> SourceColumns:
        """The columns that identify its rows."""

    @property
    def arrival_column(self) -> str | None:
        """The timestamp column `arrival_time`; None if it is no such column, or one a side."""
        return None

    @property
    @abstractmethod
    def facts(self) -> Mapping[date | None, DayFacts]:
        """The facts of each arrival day with rows; the key None is for rows without a day."""

    @property
    def landed(self) -> Mapping[date | None, int] | None:
        """The rows of each arrival day by the log; None if the log lacks it, or one a side."""
        return None

    @abstractmethod
    def weight(self, days: Sequence[date]) -> dict[str, int]:
        """The files, bytes and rows to read for some arrival days, by the table's log."""

    @abstractmethod
    def records(self, days: Sequence[date | None] | None = None) -> DataFrame:
        """The rows of some arrival days (None: of all days) with the engine's columns."""

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, TableLanding]:
        """The landing tables by side; the side of a single table is the empty text."""

    @abstractmethod
    def rows_over(self, table: TableName) -> DataFrame:
        """All rows that an expression reads: see `Use.table`."""

    @abstractmethod
    def changes(self, known: KnownDays) -> LandingChanges:
        """The changes of observed days: see `compare`."""

    @abstractmethod
    def horizon_after(self, axis: Axis) -> int:
        """The horizon just after the last arrival; the smallest instant if there is none."""

    def by_log(self, log: LandingLog) -> Self:
        """The landing at the version of another log."""
        return replace(self, log=log)

    @property
    def version(self) -> int:
        """The table's version."""
        return self.log.version

    @cached_property
    def days(self) -> list[date | None]:
        """The arrival days of the table's rows; None stands for rows without a day.

        It does not have days that have not begun: see `days_to_come`.
        """
        begun = (day for day in self.facts if not self._is_to_come(day))
        return sorted(begun, key=lambda day: (day is None, day or date.min))

    @property
    def every_day(self) -> list[date | None]:
        """The arrival days of all rows, also of days that have not begun."""
        return list(self.facts)

    @property
    def days_to_come(self) -> list[date]:
        """The arrival days that have rows but have not begun; they are not read."""
        return sorted(day for day in self.facts if day is not None and self._is_to_come(day))

    @property
    def ready_ms(self) -> int:
        """The instant by which an arrival day must have ended to be complete.

        It is the current time less `ready_after`.
        """
        if self.now_ms is None:
            return EVERYTHING.end_ms
        return self.now_ms - (self.spec.source.ready_after or 0)

    def _is_to_come(self, day: date | None) -> bool:
        return day is not None and self.now_ms is not None and midnight_of(day) > self.now_ms

    @property
    def table_id(self) -> str:
        """The table's id; a table that is created again has another id."""
        return self.log.table_id

    def days_read_for(self, days: Sequence[date]) -> list[date]:
        """Some arrival days, and the days before them that are needed to find duplicates."""
        return days_needed(self.spec, days, (day for day in self.days if day is not None))

    def axis(self, state: PipelineState) -> Axis:
        """The axis of instants.

        Its clock starts at `source.start`, or by default at the midnight of the first arrival day.
        The default is fixed by the first run, and later landings of earlier days do not change it.
        """
        start_ms = self.spec.source.start
        if start_ms is None:
            start_ms = state.clock_start_ms
        if start_ms is None:
            first = min((day for day in self.days if day is not None), default=None)
            start_ms = 0 if first is None else midnight_of(first)
        return Axis.of(self.spec, start_ms)

    def horizon(self, axis: Axis, as_of_ms: int | None, known_ms: int | None) -> int:
        """The horizon of a run by hand: the instant before which it reads arrivals.

        Args:
            axis: the axis of instants.
            as_of_ms: the requested horizon; None: just after the last arrival before now.
            known_ms: the instant up to which earlier runs know arrivals; None: none does.
        """
        if as_of_ms is not None:
            return as_of_ms
        by_arrivals = self.horizon_after(axis)
        if self.now_ms is not None:
            by_arrivals = min(by_arrivals, self.now_ms)
        return by_arrivals if known_ms is None else max(by_arrivals, known_ms)

    @property
    def recomputes_changes(self) -> bool:
        """Whether a changed arrival day means that later arrivals are evaluated again."""
        return True

    @property
    def begun(self) -> dict[date, DayFacts]:
        """The facts of the arrival days that have begun."""
        return {day: self.facts[day] for day in self.days if day is not None}
