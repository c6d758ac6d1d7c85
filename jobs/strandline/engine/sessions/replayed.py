"""The rebuild of sessions by a replay of the records of each chain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import columns_read
from strandline.engine.columns import keys_of
from strandline.engine.frames import long
from strandline.engine.records.arithmetic import cleanup_time, lies_in, slot_of
from strandline.engine.replay.dataframe import (
    IN_END,
    IN_START,
    IN_STATE_AS,
    IS_REFUSED,
    IS_UNFIRED,
    LATE,
    SESSION,
    SHOWN_IN,
    UNTIL_MS,
    Groups,
    position_of,
    replayed,
    rules_of,
    values_of,
)
from strandline.engine.replay.operator_io import EndedRange, Rules
from strandline.engine.replay.rebuild import (
    IS_SHOWN,
    OWN_END,
    REACHES,
    ReplayedRebuild,
    contents,
    firings_of,
    happened,
    is_in_state,
    placed_in,
    supersedes_windows,
)
from strandline.engine.result_rows import FIRED_AT, causes_of, window_rows
from strandline.engine.sessions.condense import is_refused, row_key
from strandline.engine.sessions.session_rows import SessionRows
from strandline.engine.watermark_values.of_windows import (
    CLOSES,
    FIRES,
    crossed_at_ms,
    with_crossings,
)

_LATE_RECORDS = "_strandline_late_records"


@dataclass(frozen=True)
class SessionReplay(SessionRows, ReplayedRebuild, ABC):
    """A rebuild of sessions that replays the records of chains."""

    # ------------------------------------------------------------------------------- the replay

    @property
    @abstractmethod
    def _to_replay(self) -> DataFrame:
        """The records to replay, each with its CHAIN and the WATERMARK at its arrival."""

    @property
    def groups(self) -> Groups:
        """See `ReplayedRebuild`: the records of a chain."""
        spec = self._spec
        by = [*keys_of(spec), c.CHAIN]
        return Groups(by, position_of(spec), int(self.slots["records"].sum()))

    @property
    def group(self) -> list[str]:
        """See `ReplayedRebuild`: one session of a chain."""
        return [*self.groups.by, SESSION]

    @property
    def _rules(self) -> Rules:
        closures = (
            EndedRange(closure.windows.start_ms, closure.windows.end_ms, closure.at_ms)
            for closure in self._closures
        )
        return rules_of(self._spec, closures)

    @cached_property
    def _until(self) -> Column:
        return long(self.watermark_before_end())

    def _replay(self) -> DataFrame:
        spec, records = self._spec, self._to_replay
        own = {c.START: F.col(c.TS), UNTIL_MS: self._until, **values_of(records, spec)}
        read = columns_read(self.records, spec, self.source_columns)
        used = [*causes_of(spec), c.END, *row_key(spec), c.START, c.WATERMARK, *read]
        by, identifying = self._identity, self.source_columns.names
        records = records.withColumns(own)
        return replayed(records, self.groups, spec, self._rules, by, used, identifying)

    def _place(self) -> DataFrame:
        spec, axis = self._spec, self.history.axis
        causes: list[str | Column] = [
            *self.groups.by,
            *causes_of(spec),
            c.RECORD_ID,
            F.col(c.END).alias(OWN_END),
        ]
        fired = self._timed(firings_of(self.replayed, causes))
        return happened(placed_in(fired, self._crossed_at_ms(), F.col(OWN_END), spec), axis)

    def _timed(self, firings: DataFrame) -> DataFrame:
        """Firings, or windows in state, with when the watermark fires and closes their windows."""
        return self._with_times(firings, F.col(REACHES))

    def _with_times(self, windows: DataFrame, fires: Column) -> DataFrame:
        """Windows with the crossings of the watermark that fire (at `fires`) and close them."""
        closes = cleanup_time(F.col(c.END), allowed_lateness_ms=self._spec.allowed_lateness)
        return with_crossings(windows, {FIRES: fires, CLOSES: closes}, self._emitted)

    def _crossed_at_ms(self) -> Column:
        """When the watermark causes a firing of `_timed`, in ms; null: it does not."""
        return crossed_at_ms(FIRES, self._emitted)

    @property
    def _replaced(self) -> list[Column]:
        """See `ReplayedRebuild`: also the firings of sessions that were merged into this one."""
        return [*super()._replaced, supersedes_windows().alias("supersedes_windows")]

    # ------------------------------------------------------------------------------- its windows

    def _starts_in_range(self, windows: DataFrame) -> DataFrame:
        return windows.where(lies_in(F.col(c.START), self.scope.windows))

    def _as_rows(self, windows: DataFrame) -> DataFrame:
        """Windows with their contents as rows."""
        closed_at = crossed_at_ms(CLOSES, self._emitted)
        return window_rows(windows, (c.START, c.END), F.col(FIRED_AT), closed_at, self._spec)


@dataclass(frozen=True)
class ReplayedSessions(SessionReplay):
    """The rebuild of sessions with an evictor or with another trigger than the default.

    The count of a session and its next firing depend on all its records, also before the range.
    """

    @property
    def needs_whole_chains(self) -> bool:
        """See `SessionRows`."""
        return True

    def windows(self) -> DataFrame:
        """The windows that have been emitted and not superseded."""
        group, aggregates = self.group, self._aggregates
        window = Window.partitionBy(*group, c.START, c.END)
        shown = self._fired.withColumns(
            {
                "firings": F.count(F.lit(1)).over(window),
                FIRED_AT: F.min(FIRED_AT).over(window),
            }
        ).where(IS_SHOWN)
        records = self.replayed
        own = [F.col(IN_START).alias(c.START), F.col(IN_END).alias(c.END)]
        late = records.where(LATE).groupBy(*group, *own)
        late_records = late.agg(F.count(F.lit(1)).alias(_LATE_RECORDS))
        in_shown = records.withColumn(c.FIRING, F.explode(SHOWN_IN))
        filled = contents(in_shown, [*group, c.FIRING], aggregates)
        rows = self._filled(shown.join(filled, [*group, c.FIRING], "left"))
        rows = rows.join(late_records, [*group, c.START, c.END], "left")
        rows = rows.withColumn("late_accepted", F.coalesce(_LATE_RECORDS, long(0)))
        return self._as_rows(self._starts_in_range(rows))

    def in_state(self) -> DataFrame:
        """The sessions still in state, each with all records that remain in it."""
        records, window = self.replayed, [*self.group, c.FIRING]
        in_state = firings_of(records, self.groups.by, in_state=True).where(is_in_state())
        sessions = self._timed(in_state).withColumns(
            {
                "late_accepted": long(0),
                "firings": long(1),
                FIRED_AT: self._crossed_at_ms(),
            }
        )
        own = records.withColumn(c.FIRING, F.col(IN_STATE_AS)).where(F.col(c.FIRING).isNotNull())
        filled = contents(own, window, self._aggregates)
        rows = self._starts_in_range(sessions).join(filled, window, "left")
        return self._as_rows(self._filled(rows))

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`, with `unfired`: records that were dropped before a firing had them."""
        return (
            self.replayed.where(~F.col(IS_REFUSED) & lies_in(F.col(c.TS), self.scope.windows))
            .groupBy(slot_of(F.col(c.TS), self.history.grid).alias(c.SLOT))
            .agg(
                F.count(F.lit(1)).alias("records"),
                F.count(F.lit(1)).alias("in_newest"),
                F.count_if(LATE).alias("late_accepted"),
                F.count_if(IS_UNFIRED).alias("unfired"),
            )
        )

    @property
    def _late_rows(self) -> DataFrame:
        """See `SessionRows`: records of one `row_key` have the same outcome."""
        refused = self.replayed.where(IS_REFUSED)
        return refused.select(*row_key(self._spec), c.START, c.WATERMARK).distinct()

    @property
    def _probed_days(self) -> set[date]:
        """See `SessionRows`: the watermark is looked up for all records."""
        return {*self._days(self._region)}

    @property
    def _to_replay(self) -> DataFrame:
        """See `SessionReplay`: all records that can be in a session."""
        records = self._records_of(self._rows.where(~is_refused()))
        if not self._spec.fires_by.fires_at_end:  # only whether a record is ahead matters
            return records
        return self._emitted.at_arrival(records.drop(c.WATERMARK), self._spec)
