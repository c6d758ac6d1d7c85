"""The story of a rebuild of sessions: observe → digest → cut → save → fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.tables import part_table
from strandline.engine.frames import computed
from strandline.engine.position.axis import AFTER_CHANNELS
from strandline.engine.position.clock import Closure
from strandline.engine.records.quarantine import quarantine_late
from strandline.engine.records.read import date_of, slot_of
from strandline.engine.results.aggregates import Partial, in_two_steps
from strandline.engine.results.rows import window_columns
from strandline.engine.scope import Rebuild
from strandline.engine.sessions.ahead import Parts, rise_days
from strandline.engine.sessions.condense import (
    AT,
    digest,
    in_rows,
    in_stretches,
    row_key,
    stretches,
    with_watermarks,
)
from strandline.engine.sessions.firing_rows import in_firings, told
from strandline.engine.sessions.firings import (
    EVENT,
    FIRED_AT,
    FIRST_UNIT,
    SESSION_START,
    UNITS,
    fired,
    fired_alone,
    in_order,
    is_late,
    is_quiet,
    islands,
    latest_close,
    moment_ms,
    session_of,
    standing,
    units_of,
)
from strandline.engine.sessions.merge import levels_of, sessions_of, starts_in
from strandline.engine.sessions.reach import read_far_enough
from strandline.engine.values.emissions import Emissions
from strandline.model.intervals import EVERYTHING, TimeRange, midnight_of
from strandline.spec.pipeline import PipelineSpec

_FEW = 1_000_000
"""So many rows are handed to every task; more are shuffled."""


@dataclass(frozen=True)
class SessionRebuild(Rebuild):
    """The rebuild of sessions; its rows and units are computed when first asked for."""

    def windows(self) -> DataFrame:
        """The windows that Flink has emitted and not superseded, and the sessions still open."""
        sessions = self._sessions
        shown = sessions.where(is_quiet() | (F.col("state") == "open"))
        members = self._members_of_sessions(sessions.where(F.col("state") == "open"))
        loud = self._fired
        if loud is not None:
            emitted = standing(loud, self._spec).withColumn(
                "state", self._state(F.lit(True), F.col(c.CLOSE_FROM))
            )
            shown = shown.unionByName(emitted, allowMissingColumns=True)
            own = self._islands.join(emitted.select(c.FIRING), c.FIRING, "left_semi")
            members = members.unionByName(own.select(c.FIRING, c.UNIT))
        return self._told(self._starts_in_range(shown), members)

    def held(self) -> DataFrame:
        """The sessions that the state still holds, each with all that it took."""
        sessions = self._sessions.where(F.col("state") != "closed")
        return self._told(self._starts_in_range(sessions), self._members_of_sessions(sessions))

    def late(self) -> DataFrame:
        """The records of the range that no session took, and all of older ones that came since."""
        spec, grid, within = self._spec, self.history.grid, self.scope.windows
        late = self._rows.where(
            F.col(c.SESSION).isNull() & starts_in(F.col(c.START), within)
        ).select(*row_key(spec), c.WATERMARK)
        if self._ended:  # then what came ahead of the watermark can be late, on any day
            days, few = self._days(within), late.count() <= _FEW
        else:
            counts = late.groupBy(date_of(F.col(AT))).count().collect()
            days, few = [row[0] for row in counts], sum(int(row[1]) for row in counts) <= _FEW
        late = F.broadcast(late) if few else late
        met = self._in_rows(days, within).join(late, row_key(spec))
        since = self.scope.older_since_ms
        if since is not None:
            fresh = [day for day in self._days(EVERYTHING) if midnight_of(day) >= since]
            older = self._known(fresh).where(F.col(c.TS) < self.scope.older_end_ms)
            probes = older.withColumns(
                {c.SEEN_FROM: F.col(c.INSTANT), c.RANK: F.lit(AFTER_CHANNELS)}
            )
            met = met.drop(c.SEEN_FROM, c.RANK).unionByName(
                self._emissions(fresh).at(probes), allowMissingColumns=True
            )
        ended_at = F.lit(None).cast("bigint")
        for closure in self._ended:
            inside = starts_in(F.col(c.TS), closure.windows)
            ended_at = F.when(inside, F.lit(closure.at_ms)).otherwise(ended_at)
        met = met.withColumns(
            {
                c.SLOT: slot_of(F.col(c.TS), grid),
                c.SLOT_END: F.col(c.END),
                c.MISSED: F.lit(1).cast("bigint"),
                c.ENDED_AT: ended_at,
            }
        )
        return quarantine_late(met, spec, self.source_columns)

    def taken(self) -> DataFrame:
        """What became of the records of each slot: SLOT, `accepted` and `late_accepted`."""
        within = self.scope.windows
        slot = slot_of(F.col(c.START), self.history.grid).alias(c.SLOT)
        nothing = F.lit(0).cast("bigint")
        accepted = self._taken_rows.select(
            slot, F.col("records").alias("accepted"), nothing.alias("late_accepted"), c.START
        )
        if self._fired is not None:
            event = F.col(EVENT)
            late = self._fired.where(is_late()).select(
                event[c.START].alias(c.START), event["records"].alias("late_accepted")
            )
            accepted = accepted.unionByName(
                late.select(slot, nothing.alias("accepted"), "late_accepted", c.START)
            )
        return (
            accepted.where(starts_in(F.col(c.START), within))
            .groupBy(c.SLOT)
            .agg(*(F.sum(name).alias(name) for name in ("accepted", "late_accepted")))
        )

    def firings(self, identity: Column) -> DataFrame:
        """One row for each firing of each session, as `firings.firings` tells them."""
        spec, happened = self._spec, self._starts_in_range(self._firings)
        units = self._records_in_units().withColumn(c.RECORD_ID, identity)
        members = None if self._fired is None else self._islands.select(c.FIRING, c.UNIT)
        days = [row[0] for row in happened.select(date_of(F.col(FIRED_AT))).distinct().collect()]
        held = in_firings(units, members)
        return told(happened, held, self._emissions(sorted(days)), spec, self._aggregates())

    # ------------------------------------------------------------------------------- what it is of

    @property
    def _spec(self) -> PipelineSpec:
        return self.history.spec

    @cached_property
    def _partials(self) -> dict[str, Partial] | None:
        return in_two_steps(self.records, self._spec)

    def _parts_of(self, region: TimeRange) -> Parts:
        """The parts of slots that hold records of some event times, or of more than these."""
        for known, parts in self._parts.items():
            if known.start_ms <= region.start_ms and region.end_ms <= known.end_ms:
                return parts
        return self._parts.setdefault(region, Parts.of(self.history, region, self.clock))

    @cached_property
    def _parts(self) -> dict[TimeRange, Parts]:
        return {}

    @property
    def _region(self) -> TimeRange:
        """The event times that decide about the range: see `read_far_enough`."""
        return self._digested[0]

    @cached_property
    def _digested(self) -> tuple[TimeRange, DataFrame]:
        def digested(region: TimeRange) -> DataFrame:
            records = self._in_rows(self._days(region), region)
            return digest(records, self._spec, self._partials or {})

        return read_far_enough(digested, self.scope.windows, self.history)

    def _days(self, within: TimeRange) -> list[date]:
        return self.history.days.of_events(within)

    def _in_rows(self, days: list[date], within: TimeRange) -> DataFrame:
        records = self._known(days)
        if within != EVERYTHING:
            inside = starts_in(F.col(c.TS), within)
            # a record with a gap of its own may reach into the range from anywhere before it
            reaches = F.col(c.END) >= self.scope.windows.start_ms
            records = records.where(inside & reaches)
        ends_ms = [closure.at_ms for closure in self._ended]
        ahead = part_table(self.spark, self._parts_of(within).table, self.history.axis)
        return in_rows(records, ahead, self._spec, self.history.grid, ends_ms)

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of all days on which a record came behind, or a session fired or closed."""
        region, history = self._region, self.history
        last = history.days.last_end(region.end_ms) + self._spec.allowed_lateness
        asked = TimeRange(self.scope.windows.start_ms - 1, last)
        behind = self._parts_of(region).behind_days(history) & set(self._days(region))
        days = behind.union(rise_days(history, asked, self.clock))
        return self._emissions(sorted(days)).at_hand()

    @cached_property
    def _met(self) -> DataFrame:
        """The rows of the digest with the watermarks that they met, and the ROW of their stretch.

        Where some input had ended before, stretches could reach across it: every row stays alone.
        """
        spec, (_, rows) = self._spec, self._digested
        met = with_watermarks(rows, self._emitted, self.history.axis)
        return met if self._ended else in_stretches(met, spec)

    @cached_property
    def _rows(self) -> DataFrame:
        """The stretches, and the rows that are in none, with their sessions."""
        spec = self._spec
        met = self._met if self._ended else stretches(self._met, spec)
        return sessions_of(met, spec, self._ended)

    @cached_property
    def _taken_rows(self) -> DataFrame:
        """The rows of the digest that a session took, each with its UNIT."""
        taken = self._rows.where(F.col(c.SESSION).isNotNull())
        if self._ended:
            return taken
        units = taken.select(c.ROW, c.UNIT)
        return self._met.join(F.broadcast(units) if units.count() <= _FEW else units, c.ROW)

    @property
    def _ended(self) -> list[Closure]:
        """The ranges whose input had ended before the horizon, in that order."""
        horizon_ms = self.clock.horizon_ms
        before = [closure for closure in self.clock.closures if closure.at_ms < horizon_ms]
        return sorted(before, key=lambda closure: closure.at_ms)

    @cached_property
    def _units(self) -> DataFrame:
        spec = self._spec
        return units_of(self._rows, self._emitted, spec, self.history.axis, self.clock)

    @cached_property
    def _islands(self) -> DataFrame:
        loud = self._units.where(~is_quiet())
        return computed(islands(loud, self._spec))

    @cached_property
    def _fired(self) -> DataFrame | None:
        """The firings of sessions that are not quiet; None: there is no such session."""
        if self._units.where(~is_quiet()).isEmpty():
            return None
        found = fired(self._islands, self._rows, levels_of(self._rows), self._spec)
        return computed(in_order(found, self.history.axis, self.clock))

    @property
    def _firings(self) -> DataFrame:
        alone = fired_alone(self._units.where(is_quiet()), self._spec)
        quiet = in_order(alone, self.history.axis, self.clock)
        return quiet if self._fired is None else quiet.unionByName(self._fired)

    @cached_property
    def _sessions(self) -> DataFrame:
        """The final sessions, whether emitted or not, with everything that they took."""
        loud = -1 - F.col(FIRST_UNIT)
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
                    c.FIRING: F.when(is_quiet(), F.col(FIRST_UNIT)).otherwise(loud),
                    "late_accepted": F.lit(0).cast("bigint"),
                    "firings": F.lit(1).cast("bigint"),
                    FIRED_AT: moment_ms(F.col(c.FIRE_FROM), F.col(c.RANK), axis, self.clock),
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
        loud = sessions.where(~is_quiet()).select(*session, c.FIRING)
        return self._units.join(loud, session).select(c.FIRING, c.UNIT)

    def _records_in_units(self) -> DataFrame:
        """The accepted records, each with the UNIT that it is in."""
        spec = self._spec
        units = self._taken_rows.select(*row_key(spec), c.UNIT)
        return self._in_rows(self._days(self._region), self._region).join(units, row_key(spec))

    def _told(self, windows: DataFrame, members: DataFrame) -> DataFrame:
        """Windows by their FIRING as rows, with the aggregates of the units in it."""
        spec, partials = self._spec, self._partials
        axis = self.history.axis
        if partials is None:
            aggregates, of_units = self._aggregates(), self._records_in_units()
        else:
            self._aggregates()
            aggregates = {name: partial.whole for name, partial in partials.items()}
            of_units = self._taken_rows
        if aggregates:
            contents = in_firings(of_units, members).groupBy(c.FIRING)
            windows = windows.join(
                contents.agg(*(column.alias(name) for name, column in aggregates.items())), c.FIRING
            )
        fired_at = F.when(F.col("state") != "open", F.col(FIRED_AT))
        closed_at = moment_ms(F.col(c.CLOSE_FROM), F.col(c.CLOSE_RANK), axis, self.clock)
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
