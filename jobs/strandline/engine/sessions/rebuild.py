"""The steps of a rebuild of sessions: observe → digest → cut → save → fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long, union_by_name
from strandline.engine.records.arithmetic import date_of, slot_of
from strandline.engine.records.at_arrival import arrival_probe
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.results.rows import FIRED_AT, window_columns
from strandline.engine.sessions.condense import AT, row_key
from strandline.engine.sessions.firing_rows import firing_rows, in_firings
from strandline.engine.sessions.firings import (
    EVENT,
    FIRST_UNIT,
    SESSION_START,
    UNITS,
    crossed_at_ms,
    fires_once,
    is_late,
    latest_close,
    not_superseded,
    session_of,
)
from strandline.engine.sessions.merge import starts_in
from strandline.engine.sessions.rows import FEW, SessionRows
from strandline.model.intervals import EVERYTHING, midnight_of


@dataclass(frozen=True)
class SessionRebuild(SessionRows):
    """The rebuild of sessions."""

    # ------------------------------------------------------------------------------ their windows

    def windows(self) -> DataFrame:
        """The windows that Flink has emitted and not superseded, and the sessions still open."""
        sessions = self._sessions
        shown = sessions.where(fires_once() | (F.col("state") == "open"))
        members = self._members_of_sessions(sessions.where(F.col("state") == "open"))
        if self._refired is not None:
            emitted = not_superseded(self._refired, self._spec).withColumn(
                "state", self._state(F.lit(True), F.col(c.CLOSE_FROM))
            )
            shown = union_by_name(shown, emitted)
            own = self._units_in_firings.join(emitted.select(c.FIRING), c.FIRING, "left_semi")
            members = members.unionByName(own.select(c.FIRING, c.UNIT))
        return self._window_rows(self._starts_in_range(shown), members)

    def in_state(self) -> DataFrame:
        """The sessions still in state, each with all records that remain in it."""
        sessions = self._starts_in_range(self._sessions.where(F.col("state") != "closed"))
        members = self._members_of_sessions(sessions)
        return self._window_rows(sessions, members)

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: of the slots that the sessions begin in."""
        slot = slot_of(F.col(c.START), self.history.grid).alias(c.SLOT)
        nothing = long(0)
        accepted = self._accepted_rows.select(
            slot, "records", nothing.alias("late_accepted"), c.START
        )
        if self._refired is not None:
            event = F.col(EVENT)
            late = self._refired.where(is_late()).select(
                event[c.START].alias(c.START), event["records"].alias("late_accepted")
            )
            accepted = accepted.unionByName(
                late.select(slot, nothing.alias("records"), "late_accepted", c.START)
            )
        return (
            self._starts_in_range(accepted)
            .groupBy(c.SLOT)
            .agg(
                *(F.sum(name).alias(name) for name in ("records", "late_accepted")),
                F.sum("records").alias("in_newest"),
            )
        )

    # --------------------------------------------------------------------------- their late records

    def late(self) -> DataFrame:
        """The records that no session of the range accepted, and late arrivals for older ones."""
        late = self._late_of_range()
        if self.scope.older_since_ms is not None:
            older = self._older_records(self.scope.older_since_ms)
            late = union_by_name(late, older)
        slots = {
            c.SLOT: slot_of(F.col(c.TS), self.history.grid),
            c.SLOT_END: F.col(c.END),
            c.MISSED: long(1),
            c.ENDED_AT: self._ended_at(),
        }
        return quarantine_late(late.withColumns(slots), self._spec, self.source_columns)

    def _late_of_range(self) -> DataFrame:
        """Records of the range that no session accepted, with the WATERMARK at their arrival."""
        spec, within = self._spec, self.scope.windows
        of_none = F.col(c.SESSION).isNull() & starts_in(F.col(c.START), within)
        rows = self._rows.where(of_none).select(*row_key(spec), c.WATERMARK)
        days, length = self._days_and_length(rows)
        rows = F.broadcast(rows) if length <= FEW else rows
        return self._in_rows(days, within).join(rows, row_key(spec))

    def _days_and_length(self, late_rows: DataFrame) -> tuple[list[date], int]:
        """The arrival days of the records of late rows, and the number of the rows."""
        if self._ended:  # then what came ahead of the watermark can be late, on any day
            return self._days(self.scope.windows), late_rows.count()
        counts = late_rows.groupBy(date_of(F.col(AT))).count().collect()
        return [row[0] for row in counts], sum(int(row[1]) for row in counts)

    def _older_records(self, since_ms: int) -> DataFrame:
        """The records of older sessions that arrived since a midnight: all are late."""
        days = [day for day in self._days(EVERYTHING) if midnight_of(day) >= since_ms]
        records = self._known(days).where(F.col(c.TS) < self.scope.older_end_ms)
        probes = records.withColumns(arrival_probe(self._spec))
        return self._emissions(days).at(probes).drop(c.SEEN_FROM, c.RANK)

    def _ended_at(self) -> Column:
        """When the input for a record's event time had ended, in ms; null: it had not."""
        ended_at = F.lit(None).cast("bigint")
        for closure in self._ended:
            inside = starts_in(F.col(c.TS), closure.windows)
            ended_at = F.when(inside, long(closure.at_ms)).otherwise(ended_at)
        return ended_at

    # ------------------------------------------------------------------------------- their firings

    def firings(self, identity: Column) -> DataFrame:
        """One row for each firing of each session, as `windows.firings` gives them."""
        firings = self._starts_in_range(self._firings)
        days = [row[0] for row in firings.select(date_of(F.col(FIRED_AT))).distinct().collect()]
        contained, emitted = self._contained_records(identity), self._emissions(sorted(days))
        rows = firing_rows(firings, contained, emitted, self._spec, self._aggregates)
        return rows.where(starts_in(F.unix_millis("window_start"), self.scope.windows))

    def _contained_records(self, identity: Column) -> DataFrame:
        """The accepted records, once for each FIRING that contains them."""
        records = self._records_in_units().withColumn(c.RECORD_ID, identity)
        return in_firings(records, self._firings_of_units)

    @property
    def _firings_of_units(self) -> DataFrame | None:
        """FIRING and UNIT of firings with several units; None: every unit fires alone."""
        if self._refired is None:
            return None
        return self._units_in_firings.select(c.FIRING, c.UNIT)

    # ------------------------------------------------------------------------------------- as rows

    @cached_property
    def _sessions(self) -> DataFrame:
        """The final sessions, emitted or not, with all records that they have accepted."""
        # of a session that is fired again the number is that of no firing
        of_no_firing = -1 - F.col(FIRST_UNIT)
        axis = self.history.axis
        return (
            self._units.groupBy(*session_of(self._spec), SESSION_START, UNITS, FIRST_UNIT)
            .agg(
                F.min(c.START).alias(c.START),
                F.max(c.END).alias(c.END),
                F.sum("records").alias("records"),
                *(F.max(name).alias(name) for name in (c.SEGMENT, c.FIRE_FROM)),
                F.max_by(c.RANK, c.FIRE_FROM).alias(c.RANK),
                *latest_close(),
            )
            .withColumns(
                {
                    c.FIRING: F.when(fires_once(), F.col(FIRST_UNIT)).otherwise(of_no_firing),
                    "late_accepted": long(0),
                    "firings": long(1),
                    FIRED_AT: crossed_at_ms(F.col(c.FIRE_FROM), F.col(c.RANK), axis, self.clock),
                    "state": self._state(
                        F.col(c.FIRE_FROM) < axis.literal(axis.never), F.col(c.CLOSE_FROM)
                    ),
                }
            )
        )

    def _state(self, has_fired: Column, close_from: Column) -> Column:
        never = self.history.axis.literal(self.history.axis.never)
        fired_or_open = F.when(has_fired, "fired").otherwise("open")
        return F.when(close_from < never, "closed").otherwise(fired_or_open)

    def _starts_in_range(self, windows: DataFrame) -> DataFrame:
        return windows.where(starts_in(F.col(c.START), self.scope.windows))

    def _members_of_sessions(self, sessions: DataFrame) -> DataFrame:
        session = session_of(self._spec)
        refired = sessions.where(~fires_once()).select(*session, c.FIRING)
        return self._units.join(refired, session).select(c.FIRING, c.UNIT)

    def _window_rows(self, windows: DataFrame, members: DataFrame) -> DataFrame:
        """Windows by their FIRING, as rows with the aggregates of their units."""
        partials = self._partials
        if partials is None:
            aggregates, of_units = self._aggregates, self._records_in_units()
        else:
            _ = self._aggregates
            aggregates = {name: partial.whole for name, partial in partials.items()}
            of_units = self._accepted_rows
        if aggregates:
            contents = in_firings(of_units, members).groupBy(c.FIRING)
            windows = windows.join(
                contents.agg(*(column.alias(name) for name, column in aggregates.items())), c.FIRING
            )
        return self._as_rows(windows)

    def _as_rows(self, windows: DataFrame) -> DataFrame:
        """Windows with their contents as rows."""
        spec, axis = self._spec, self.history.axis
        fired_at = F.when(F.col("state") != "open", F.col(FIRED_AT))
        closed_at = crossed_at_ms(F.col(c.CLOSE_FROM), F.col(c.CLOSE_RANK), axis, self.clock)
        return windows.select(
            *window_columns(c.START, c.END, spec),
            "records",
            "late_accepted",
            "firings",
            "state",
            F.timestamp_millis(fired_at).alias("fired_at"),
            F.timestamp_millis(closed_at).alias("closed_at"),
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        )
