"""The common part of rebuilds by a replay: its outcome, computed once for each identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import computed
from strandline.engine.records.arithmetic import lies_in
from strandline.engine.records.expressions import quoted
from strandline.engine.replay.dataframe import Groups
from strandline.engine.replay.outcome import NUMBER, contents, in_firings, supersedes, timing
from strandline.engine.results.aggregates import with_contents_of_none
from strandline.engine.results.rows import as_probes, firing_columns, window_key
from strandline.engine.scope import Rebuild
from strandline.engine.watermark_values.emissions import Emissions


@dataclass(frozen=True)
class ReplayedRebuild(Rebuild, ABC):
    """A rebuild whose records are replayed, group by group.

    Windows of a grid have accepted all of them; for sessions the replay refuses some: no firing
    contains these.
    """

    @property
    @abstractmethod
    def groups(self) -> Groups:
        """The groups to replay: the windows of each key, or the connected records of each key."""

    @property
    def group(self) -> list[str]:
        """The columns that identify a group."""
        return [*self.groups.by]

    @property
    def fired(self) -> DataFrame:
        """The firings of windows that start in the range, with POSITION and FIRED_AT."""
        return self._fired.where(lies_in(F.col(c.START), self.scope.windows))

    def reported(self, fired: DataFrame) -> DataFrame:
        """The same firings, each with the WATERMARK that it reports."""
        return self._emitted.at(as_probes(fired))

    def firings(self) -> DataFrame:
        """See `Rebuild`."""
        firing = [*self.group, c.FIRING]
        rows = self.reported(self.fired).join(self._contents_of_firings(), firing, "left")
        return self.firing_rows(self._filled(rows))

    def firing_rows(self, filled: DataFrame, *more: str) -> DataFrame:
        """Firings of `reported` with their contents as rows of `firings`, and further columns."""
        columns = firing_columns(timing(), self._spec)
        return filled.select(*columns, NUMBER, *self._replaced, *map(quoted, more))

    @property
    def _replaced(self) -> list[Column]:
        """The earlier firings that a firing replaces, as columns of `firings`."""
        return [supersedes().alias("supersedes")]

    def _contents_of_firings(self) -> DataFrame:
        """The content of each FIRING of each window."""
        members = self.records_in(self.fired)
        return contents(members, [*self.group, c.FIRING], self._aggregates)

    def _filled(self, rows: DataFrame) -> DataFrame:
        """Rows, where the contents are missing with the aggregates of no record."""
        none = {**self._aggregates, "records": F.count(F.lit(1))}
        return with_contents_of_none(rows, self.replayed, none)

    def records_in(self, firings: DataFrame) -> DataFrame:
        """The records, once for each of some firings that contains them (FIRING)."""
        return in_firings(self.replayed, firings, self.group)

    @cached_property
    def replayed(self) -> DataFrame:
        """The records with the outcome of their replay, computed once."""
        return computed(self._replay())

    @cached_property
    def _fired(self) -> DataFrame:
        """The firings with POSITION and FIRED_AT, computed once."""
        return computed(self._place())

    @abstractmethod
    def _replay(self) -> DataFrame:
        """The records with the outcome of their replay (`dataframe.replayed`)."""

    @abstractmethod
    def _place(self) -> DataFrame:
        """The firings with POSITION and FIRED_AT (`rows.with_position`)."""

    @property
    @abstractmethod
    def _emitted(self) -> Emissions:
        """The emissions of all days with a record or a possible firing of a window."""


@dataclass(frozen=True, kw_only=True)
class OverReplay(Rebuild, ABC):
    """A rebuild that computes something from the firings of a replay; its records are the replay's.

    Attributes:
        replay: the rebuild of the same windows, without this computation.
    """

    replay: ReplayedRebuild

    @property
    def _window(self) -> list[str]:
        """The columns that identify a window of a key."""
        return window_key(self._spec)

    def in_state(self) -> DataFrame:
        """See `Rebuild`: nothing is computed before a window fires."""
        return self.replay.in_state()

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`."""
        return self.replay.accepted_by_slot()

    def late(self) -> DataFrame:
        """See `Rebuild`."""
        return self.replay.late()
