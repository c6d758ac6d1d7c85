"""The rebuild by a replay of sessions.

The records of a session do not depend on when it fires, so sessions are found as under the default
trigger; then the records of each are replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.history.advance_days import advance_days
from strandline.engine.records.arithmetic import slot_of
from strandline.engine.records.at_arrival import arrival_probe
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import identity
from strandline.engine.replay.outcome import (
    IS_SHOWN,
    NUMBER,
    OWN_END,
    PLACE,
    REACHES,
    contents,
    firings_of,
    happened,
    in_shown,
    placed,
    supersedes,
    supersedes_windows,
    timing,
)
from strandline.engine.replay.rebuild import ReplayedRebuild
from strandline.engine.replay.rows import (
    IN_END,
    IN_START,
    IS_IN_STATE,
    IS_UNFIRED,
    LATE,
    UNTIL_MS,
    Groups,
    replayed,
    values_of,
)
from strandline.engine.results.aggregates import columns_read, with_contents_of_none
from strandline.engine.results.rows import FIRED_AT, firing_columns
from strandline.engine.sessions.condense import row_key
from strandline.engine.sessions.firings import (
    SESSION_START,
    crossed_at_ms,
    ends_now,
    session_of,
    with_crossings,
)
from strandline.engine.sessions.merge import starts_in
from strandline.engine.sessions.rebuild import SessionRebuild
from strandline.engine.watermark_values.emissions import Emissions
from strandline.model.intervals import LEAST_INSTANT_MS, TimeRange

_LATE_RECORDS = "_strandline_late_records"


@dataclass(frozen=True)
class ReplayedSessions(ReplayedRebuild, SessionRebuild):
    """The rebuild of sessions with an evictor or with another trigger than the default.

    The count of a session and its next firing depend on all its records, including those before the
    range.
    """

    @property
    def needs_whole_chains(self) -> bool:
        """See `SessionRows`."""
        return True

    def windows(self) -> DataFrame:
        """The windows that have been emitted and not superseded."""
        session, aggregates = self.group, self._aggregates
        window = Window.partitionBy(*session, c.START, c.END)
        fired = self._fired(self._identity)
        shown = fired.withColumns(
            {
                "firings": F.count(F.lit(1)).over(window),
                FIRED_AT: F.min(FIRED_AT).over(window),
            }
        ).where(IS_SHOWN)
        records = self._replayed(self._identity)
        own = [F.col(IN_START).alias(c.START), F.col(IN_END).alias(c.END)]
        late = records.where(LATE).groupBy(*session, *own)
        late_records = late.agg(F.count(F.lit(1)).alias(_LATE_RECORDS))
        filled = contents(in_shown(records), [*session, c.FIRING], aggregates)
        rows = self._filled(shown.join(filled, [*session, c.FIRING], "left"), records)
        rows = rows.join(late_records, [*session, c.START, c.END], "left").withColumns(
            {
                "late_accepted": F.coalesce(_LATE_RECORDS, long(0)),
                "state": self._state(F.lit(True), F.col(c.CLOSE_FROM)),
            }
        )
        return self._as_rows(self._starts_in_range(rows))

    def in_state(self) -> DataFrame:
        """The sessions still in state, each with all records that remain in it."""
        session = self.group
        sessions = self._sessions.where(F.col("state") != "closed").drop("records")
        records = self._replayed.any_or(self._identity)
        filled = contents(records.where(IS_IN_STATE), session, self._aggregates)
        rows = self._starts_in_range(sessions).join(filled, session, "left")
        return self._as_rows(self._filled(rows, records))

    def accepted_by_slot(self) -> DataFrame:
        """How many records sessions accepted, and how many were in no firing at the close."""
        closed = self._sessions.select(*self.group, "state")
        unfired = (F.col("state") == "closed") & F.col(IS_UNFIRED)
        return (
            self._replayed(self._identity)
            .where(starts_in(F.col(c.TS), self.scope.windows))
            .join(closed, self.group)
            .groupBy(slot_of(F.col(c.TS), self.history.grid).alias(c.SLOT))
            .agg(
                F.count(F.lit(1)).alias("records"),
                F.count(F.lit(1)).alias("in_newest"),
                F.count_if(LATE).alias("late_accepted"),
                F.count_if(unfired).alias("unfired"),
            )
        )

    def firings(self, identity: Column) -> DataFrame:
        """One row for each firing of each session, as `windows.firings` gives them."""
        firing = [*self.group, c.FIRING]
        members = self.records_in(self.fired(identity), identity)
        filled = contents(members, firing, self._aggregates)
        rows = self.reported(self.fired(identity)).join(filled, firing, "left")
        return self.firing_rows(self._filled(rows, self._replayed(identity)))

    def firing_rows(self, filled: DataFrame, *more: str) -> DataFrame:
        """See `ReplayedRebuild`."""
        columns = firing_columns(timing(), F.col(PLACE), self._spec)
        earlier = [
            supersedes().alias("supersedes"),
            supersedes_windows().alias("supersedes_windows"),
        ]
        return filled.select(*columns, NUMBER, *earlier, *map(quoted, more))

    # ------------------------------------------------------------------------------- the replay

    @property
    def groups(self) -> Groups:
        """See `ReplayedRebuild`: the records of a key that end in one session."""
        return Groups(session_of(self._spec), int(self.slots["records"].sum()))

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of all days with a record, or on which a session fired or closed."""
        region, history = self._region, self.history
        last = history.days.last_end(region.end_ms) + self._spec.allowed_lateness
        start_ms = min(region.start_ms, self.scope.windows.start_ms)
        asked = TimeRange(max(start_ms - 1, LEAST_INSTANT_MS), last)
        days = {*self._days(region), *advance_days(history, asked, self.clock)}
        return self._emissions(sorted(days)).at_hand()

    @property
    def _identity(self) -> Column:
        return identity(self._spec, self.source_columns)

    def _replay(self, identity: Column) -> DataFrame:
        spec, session = self._spec, self.group
        accepted = self._records_in_sessions()
        records = accepted.withColumns(
            {
                c.START: F.col(c.TS),
                SESSION_START: F.min(c.TS).over(Window.partitionBy(*session)),
                **values_of(accepted, spec),
            }
        )
        has_ended = ends_now(self.clock) | (F.col(c.ENDED) < self.clock.horizon_ms)
        until_ms = F.lit(self.watermark_before_end()).cast("bigint")
        records = records.withColumn(UNTIL_MS, F.when(~has_ended, until_ms))
        used = [SESSION_START, *columns_read(self.records, spec, self.source_columns)]
        identifying = self.source_columns.names
        return replayed(records, self.groups, spec, identity, used, identifying)

    def _records_in_sessions(self) -> DataFrame:
        """The accepted records, each with its session and the WATERMARK at its arrival."""
        spec, of_row = self._spec, (c.SESSION, c.ENDED)
        accepted = self._rows.where(F.col(c.SESSION).isNotNull())
        if not self._ended:
            accepted = self._at_arrival.join(accepted.select(c.ROW, *of_row), c.ROW)
        rows = accepted.select(*row_key(spec), *of_row, c.WATERMARK)
        records = self._in_rows(self._days(self._region), self._region).join(rows, row_key(spec))
        if not spec.fires_by.fires_at_end:  # then the rows' own do: ahead of the watermark or not
            return records
        at_arrival = self._emitted.at(records.drop(c.WATERMARK).withColumns(arrival_probe(spec)))
        return at_arrival.drop(c.SEEN_FROM, c.RANK)

    def _place(self, identity: Column) -> DataFrame:
        spec, axis, session = self._spec, self.history.axis, self.group
        fired = with_crossings(
            firings_of(self._replayed(identity), [*session, SESSION_START], spec),
            F.col(REACHES),
            self._emitted,
            spec,
            axis,
            self.clock,
        )
        fired_at_ms = crossed_at_ms(F.col(c.FIRE_FROM), F.col(c.RANK), axis, self.clock)
        return happened(placed(fired, fired_at_ms, F.col(OWN_END), spec), axis)

    def _filled(self, rows: DataFrame, records: DataFrame) -> DataFrame:
        """Rows, where the contents are missing with the aggregates of no record."""
        none = {**self._aggregates, "records": F.count(F.lit(1))}
        return with_contents_of_none(rows, records, none, "records")
