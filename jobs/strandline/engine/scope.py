"""The scope of a rebuild, and the tables that the rebuild of each kind of windows gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import date
from functools import cached_property
from typing import Any, Self

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession

from strandline.engine.aggregates import (
    Kinds,
    Partial,
    aggregate_columns,
    in_two_steps,
    kinds_of_aggregates,
)
from strandline.engine.calendar.slots import Calendar
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.records.identity import SourceColumns, identity
from strandline.engine.watermark_values.emissions import Emissions
from strandline.engine.watermark_values.of_days import emissions
from strandline.model.intervals import TimeRange, last_day_before, parts_outside
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class Scope:
    """The windows and late records that a run rebuilds.

    Attributes:
        windows: the range of window starts, with the late records of these windows; for sessions,
            with the late records whose event time lies in it.
        older_since_ms: a midnight; the late records of older windows that arrived since then are
            included. None: no late record of older windows.
        older_before_ms: older windows start before this; None: before the range.
        older_too: starts of further older windows whose late records are listed again.
        kept: ranges of window starts, in the range or older, of windows that stay as they are
            published: they and the records whose newest window is one of them are left out.
    """

    windows: TimeRange
    older_since_ms: int | None = None
    older_before_ms: int | None = None
    older_too: frozenset[int] = frozenset()
    kept: tuple[TimeRange, ...] = ()

    def keeps(self, start_ms: int) -> bool:
        """Whether the windows that start at an instant stay as they are published."""
        return any(start_ms in within for within in self.kept)

    @property
    def rebuilt(self) -> list[TimeRange]:
        """The parts of the range without kept windows; one empty range, if all are kept."""
        parts = parts_outside([self.windows], self.kept)
        return parts or [TimeRange(self.windows.start_ms, self.windows.start_ms)]

    @property
    def older_end_ms(self) -> int:
        """The instant before which the older windows start."""
        return self.windows.start_ms if self.older_before_ms is None else self.older_before_ms


@dataclass(frozen=True)
class Rebuild(ABC):
    """A rebuild of windows; its slots are computed, its DataFrames are evaluated when read.

    Attributes:
        calendar: the calendar of everything in the scope.
        slots: the slots of the range (`Calendar.slots`), on the driver.
        older: the older slots that the scope's late records belong to, on the driver.
        older_records: the number of new arrivals whose newest window is an older slot.
        tie_breaker: orders records of one position; None: their identity does.
    """

    records: DataFrame
    source_columns: SourceColumns
    history: History
    clock: Clock
    scope: Scope
    calendar: Calendar
    slots: pd.DataFrame
    older: pd.DataFrame
    older_records: int
    tie_breaker: Column | None = None

    @property
    def _spec(self) -> PipelineSpec:
        return self.history.spec

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the records."""
        return self.records.sparkSession

    @classmethod
    def over(cls, other: Rebuild, **own: Any) -> Self:
        """A rebuild of the scope of another one, with that rebuild's fields and the given ones."""
        common = {of.name: getattr(other, of.name) for of in fields(Rebuild)}
        return cls(**{**common, **own})

    @abstractmethod
    def windows(self) -> DataFrame:
        """The windows of every key as rows of `windows`: emitted ones and open ones."""

    @abstractmethod
    def in_state(self) -> DataFrame:
        """The windows still in state: `open`, or `fired` and not yet closed."""

    @abstractmethod
    def accepted_by_slot(self) -> DataFrame:
        """The record counts of each slot of the range, over all keys.

        The columns are SLOT (the id of its window), and the counts that this kind of windows has:
        `records` (accepted), `late_accepted`, `in_newest` (accepted, and the slot is the record's
        newest window), `missed_pairs` (refused, and accepted by another window), `unfired`
        (dropped with the window before a firing contained them).
        """

    @abstractmethod
    def late(self) -> DataFrame:
        """The records of the scope that no window accepted, as quarantine rows."""

    @abstractmethod
    def firings(self) -> DataFrame:
        """The firings of the range's windows."""

    def pairs(self, windows: DataFrame) -> DataFrame:
        """The pairs of the last firing of each of some windows, as rows of `pairs`.

        Raises:
            TypeError: the results of the pipeline's windows are no pairs.
        """
        msg = f"{self._spec.pipeline} has no pairs"
        raise TypeError(msg)

    def final_watermark(self) -> int:
        """The combined watermark at the horizon; MIN_WATERMARK: none yet."""
        return self._at_horizon.highest()

    def watermark_before_end(self) -> int:
        """The combined watermark at the horizon just before the input ends there."""
        return self._at_horizon.highest(before_end=True)

    @property
    def _at_horizon(self) -> Emissions:
        return self._emissions([last_day_before(self.clock.horizon_ms)])

    @cached_property
    def _identity(self) -> Column:
        """The value that orders records of one position."""
        own = self.tie_breaker
        return identity(self._spec, self.source_columns) if own is None else own

    def _known(self, days: Collection[date]) -> DataFrame:
        return self.history.known(self.records, self.clock.horizon_ms, days)

    @cached_property
    def _aggregates(self) -> dict[str, Column]:
        """The aggregates by name, checked."""
        columns = self.source_columns.names
        return aggregate_columns(self.records, self._spec, self._kinds, columns)

    @cached_property
    def _partials(self) -> dict[str, Partial] | None:
        """The aggregates in two steps; None: at least one of them has no partial form."""
        return in_two_steps(self.records, self._spec, self._kinds)

    @cached_property
    def _kinds(self) -> Kinds:
        return kinds_of_aggregates(self.records, self._spec)

    def _emissions(self, days: list[date]) -> Emissions:
        planned = self._planned_emissions
        if tuple(days) not in planned:
            planned[tuple(days)] = emissions(self.records, self.history, self.clock, days)
        return planned[tuple(days)]

    @cached_property
    def _planned_emissions(self) -> dict[tuple[date, ...], Emissions]:
        return {}
