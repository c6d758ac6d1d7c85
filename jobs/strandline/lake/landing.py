"""What has landed for a pipeline, as a run asks of it; whichever tables it lies in."""

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
from strandline.lake.landing_log import LandingLog
from strandline.lake.state import PipelineState
from strandline.model.facts import DayFacts, KnownDays, LandingChanges
from strandline.model.intervals import EVERYTHING, midnight_of
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.used_expressions import TableName

if TYPE_CHECKING:
    from strandline.lake.table_landing import TableLanding


@dataclass(frozen=True)
class Landing(ABC):
    """One version of what has landed.

    `nulls_counted`: the columns of quarantine that keep the identity of rows from before (see
    `lake.identities`).
    """

    spark: SparkSession
    spec: PipelineSpec
    log: LandingLog
    now_ms: int | None = None
    nulls_counted: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of its rows."""

    @property
    @abstractmethod
    def source_columns(self) -> SourceColumns:
        """The columns which identify its rows."""

    @property
    @abstractmethod
    def arrival_column(self) -> str | None:
        """The timestamp column that `arrival_time` is; None: an expression, a text, one a table."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[date | None, DayFacts]:
        """The facts of each arrival day that has rows; None: of rows without a day."""

    @property
    @abstractmethod
    def landed(self) -> Mapping[date | None, int] | None:
        """The rows of each arrival day by the table's log; None where the log does not have it."""

    @abstractmethod
    def weight(self, days: Sequence[date]) -> dict[str, int]:
        """The files, bytes and rows that reading some arrival days means, by the table's log."""

    @abstractmethod
    def records(self, axis: Axis, days: Sequence[date | None] | None = None) -> DataFrame:
        """The rows of some arrival days (None: of all) with the engine's columns."""

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, TableLanding]:
        """The landing tables by the names of their sides; of a single one without a name."""

    @abstractmethod
    def input_of(self, table: TableName) -> Landing | None:
        """The landing table whose rows an expression is over; None: rows of both, or pairs."""

    @abstractmethod
    def rows_over(self, table: TableName) -> DataFrame:
        """All rows that an expression is over: see `Use.table`."""

    @abstractmethod
    def changes(self, known: KnownDays) -> LandingChanges:
        """What has become of the days that were observed: see `compare`."""

    @abstractmethod
    def horizon_after(self, axis: Axis) -> int:
        """The horizon just after the last arrival; the first of all instants: there is none."""

    def by_log(self, log: LandingLog) -> Self:
        """The same at the version that a log is of."""
        return replace(self, log=log)

    @property
    def version(self) -> int:
        """Of the table."""
        return self.log.version

    @cached_property
    def days(self) -> list[date | None]:
        """The arrival days that the table has; None: rows whose day is not known.

        Days that have not begun are left out: see `days_to_come`.
        """
        begun = (day for day in self.facts if not self._is_to_come(day))
        return sorted(begun, key=lambda day: (day is None, day or date.min))

    @property
    def every_day(self) -> list[date | None]:
        """The arrival days of all rows, those that have not begun too."""
        return list(self.facts)

    @property
    def days_to_come(self) -> list[date]:
        """The arrival days that rows have landed of although they have not begun: not read."""
        return sorted(day for day in self.facts if day is not None and self._is_to_come(day))

    @property
    def ready_ms(self) -> int:
        """The days that end by then are over: by the clock, and for as long as `ready_after`."""
        if self.now_ms is None:
            return EVERYTHING.end_ms
        return self.now_ms - (self.spec.source.ready_after or 0)

    def _is_to_come(self, day: date | None) -> bool:
        return day is not None and self.now_ms is not None and midnight_of(day) > self.now_ms

    @property
    def table_id(self) -> str:
        """Of what its facts are facts: another id is another table."""
        return self.log.table_id

    def days_read_for(self, days: Sequence[date]) -> list[date]:
        """Some arrival days, and the days before them that are read to find their duplicates."""
        return days_needed(self.spec, days, (day for day in self.days if day is not None))

    def axis(self, state: PipelineState) -> Axis:
        """The axis of instants, whose clock started where the spec says, or at the first midnight.

        Once a run has fixed the default in the ledger it stays, whatever lands before it later.
        """
        start_ms = self.spec.source.start
        if start_ms is None:
            start_ms = state.clock_start_ms
        if start_ms is None:
            first = min((day for day in self.days if day is not None), default=None)
            start_ms = 0 if first is None else midnight_of(first)
        return Axis.of(self.spec, start_ms)

    def horizon(self, axis: Axis, as_of_ms: int | None, published_ms: int | None) -> int:
        """The instant up to which a run by hand knows records.

        Args:
            axis: of the instants.
            as_of_ms: the horizon that is asked for; None: just after the last arrival that there is
                by the clock.
            published_ms: the largest horizon that its range is published by; None: it is not.
        """
        if as_of_ms is not None:
            return as_of_ms
        by_arrivals = self.horizon_after(axis)
        if self.now_ms is not None:
            by_arrivals = min(by_arrivals, self.now_ms)
        return max(by_arrivals, published_ms or by_arrivals)

    @property
    def recomputes_changes(self) -> bool:
        """Whether all is judged again from an arrival day on whose rows have changed."""
        return True

    @property
    def begun(self) -> dict[date, DayFacts]:
        """The facts of the arrival days that have begun."""
        return {day: self.facts[day] for day in self.days if day is not None}
