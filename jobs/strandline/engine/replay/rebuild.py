"""The common part of all rebuilds by a replay: from its outcome to firings with contents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import with_contents_of_none
from strandline.engine.frames import computed, named
from strandline.engine.position.axis import Axis
from strandline.engine.records.arithmetic import lies_in
from strandline.engine.records.expressions import quoted
from strandline.engine.replay.added_columns import FIRING
from strandline.engine.replay.dataframe import FIRINGS, FIRST, IN_STATE, SESSION, UNTIL, Groups
from strandline.engine.result_rows import as_probes, firing_columns, window_key, with_position
from strandline.engine.scope import Rebuild
from strandline.engine.watermark_values.emissions import Emissions
from strandline.spec.pipeline import PipelineSpec

OWN_END = "_strandline_own_end_ms"
"""The end of the own window of the record that causes a firing, in ms."""
_FIRED = "_strandline_fired"
NUMBER = "firing"
"""The number of a firing in its window, from 1."""
_OF_FIRING = {name: f"{_FIRED}_{name}" for name in FIRING.names} | {
    "number": c.FIRING,
    "start_ms": c.START,
    "end_ms": c.END,
    "ended_ms": c.ENDED,
    "session": SESSION,
    "firing": NUMBER,
}
"""The columns of the fields of `added_columns.FIRING`."""
REACHES = _OF_FIRING["reaches_ms"]
"""The watermark that causes a firing; null: a record causes it."""
IS_SHOWN = _OF_FIRING["is_shown"]
"""Whether a firing is in force: no later one has replaced it."""
_TIME, _LATE, _REPLACES, _SUPERSEDES = (
    _OF_FIRING[name] for name in ("time_ms", "late", "replaces_before", "supersedes")
)
_FROM, _TO = "_strandline_fired_from_ms", "_strandline_fired_to_ms"


@dataclass(frozen=True)
class ReplayedRebuild(Rebuild, ABC):
    """A rebuild whose records are replayed, group by group.

    Windows of a grid have accepted all records before the replay. For sessions the replay refuses
    late records, which no firing contains.
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
        """Firings of `fired`, each with the WATERMARK that it reports."""
        return self._emitted.at(as_probes(fired))

    def firings(self) -> DataFrame:
        """See `Rebuild`."""
        firing = [*self.group, c.FIRING]
        rows = self.reported(self.fired).join(self._contents_of_firings(), firing, "left")
        return self.firing_rows(self._filled(rows))

    def firing_rows(self, filled: DataFrame, *more: str) -> DataFrame:
        """Firings of `reported` with their contents as rows of `firings`, and further columns."""
        columns = firing_columns(_timing(), self._spec)
        return filled.select(*columns, NUMBER, *self._replaced, *map(quoted, more))

    @property
    def _replaced(self) -> list[Column]:
        """The earlier firings that a firing replaces, as columns of `firings`."""
        before = F.when(F.col(_REPLACES), F.col(NUMBER) - 1)
        return [before.alias("supersedes")]

    def _contents_of_firings(self) -> DataFrame:
        """The content of each FIRING of each window."""
        members = self.records_in(self.fired)
        return contents(members, [*self.group, c.FIRING], self._aggregates)

    def _filled(self, rows: DataFrame) -> DataFrame:
        """Rows, with the aggregates of an empty set of records where contents are missing."""
        none = {**self._aggregates, "records": F.count(F.lit(1))}
        return with_contents_of_none(rows, self.replayed, none)

    def records_in(self, firings: DataFrame) -> DataFrame:
        """The records, once for each of some firings that contains them (FIRING)."""
        bounds = F.col(c.START).alias(_FROM), F.col(c.END).alias(_TO)
        own = firings.select(*self.group, c.FIRING, *bounds)
        holds = (F.col(c.FIRING) >= F.col(FIRST)) & (F.col(c.FIRING) < F.col(UNTIL))
        covers = (F.col(_FROM) <= F.col(c.TS)) & (F.col(c.TS) < F.col(_TO))
        return self.replayed.join(own, self.group).where(holds & covers)

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
        """The firings with POSITION and FIRED_AT (`result_rows.with_position`)."""

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


def firings_of(
    records: DataFrame, of_record: Sequence[str | Column], *, in_state: bool = False
) -> DataFrame:
    """The firings, each with its causing record, or the last record before the watermark fires it.

    Args:
        records: the rows of `dataframe.replayed`.
        of_record: the columns of the record to keep.
        in_state: whether the windows in state are included, as future firings.
    """
    firings = F.concat(FIRINGS, IN_STATE) if in_state else F.col(FIRINGS)
    each = records.select(*of_record, F.explode(firings).alias(_FIRED))
    named = {name: F.col(_FIRED)[field] for field, name in _OF_FIRING.items()}
    return each.withColumns(named).drop(_FIRED)


def is_in_state() -> Column:
    """Whether a row of `firings_of` is a window in state at the end, and no firing."""
    return F.col(c.FIRING) < 1


def is_by_record() -> Column:
    """Whether a firing is caused by a record, instead of the watermark."""
    return F.col(REACHES).isNull()


def placed_in(
    firings: DataFrame, at_ms: Column, of_record: Column, spec: PipelineSpec
) -> DataFrame:
    """The rows of `firings_of`, with the columns of `result_rows.with_position`.

    A firing by the watermark is placed where the watermark reaches REACHES.
    """
    return with_position(firings, ~is_by_record(), at_ms, (F.col(_TIME) + 1, of_record), spec)


def happened(firings: DataFrame, axis: Axis) -> DataFrame:
    """The firings before the horizon, without firings that a later watermark would cause."""
    return firings.where(is_by_record() | (F.col(c.FIRE_FROM) < axis.literal(axis.never)))


def _timing() -> Column:
    """EARLY, ON_TIME or LATE: before, at or after the window's end."""
    at_end = ~is_by_record() & (F.col(_TIME) == F.col(c.END) - 1)
    early_or_on_time = F.when(at_end, "ON_TIME").otherwise("EARLY")
    return F.when(F.col(_LATE), "LATE").otherwise(early_or_on_time)


def supersedes_windows() -> Column:
    """All firings of a session that a firing replaces, for the table `firings`."""
    earlier = F.transform(
        _SUPERSEDES,
        lambda one: F.struct(
            F.timestamp_millis(one["start_ms"]).alias("window_start"),
            F.timestamp_millis(one["end_ms"]).alias("window_end"),
            one["firing"].alias("firing"),
        ),
    )
    return F.when(F.size(_SUPERSEDES) > 0, F.array_sort(earlier))


def contents(members: DataFrame, by: Sequence[str], aggregates: Mapping[str, Column]) -> DataFrame:
    """The aggregates and the number (`records`) of records, grouped by some columns."""
    of_members = {**aggregates, "records": F.count(F.lit(1))}
    return members.groupBy(*by).agg(*named(of_members))
