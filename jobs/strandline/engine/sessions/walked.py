"""Sessions that are walked over: those that fire by count or at times, or are emptied.

Which records a session takes does not depend on when it fires, so that is told as for all sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import PerIdentity, computed
from strandline.engine.past.rise_days import rise_days
from strandline.engine.records.arithmetic import slot_of
from strandline.engine.records.identity import identity
from strandline.engine.records.met import met_by
from strandline.engine.results.aggregates import columns_read
from strandline.engine.results.rows import firing_columns
from strandline.engine.sessions.condense import row_key
from strandline.engine.sessions.firings import (
    SESSION_START,
    moment_ms,
    session_of,
    with_crossings,
)
from strandline.engine.sessions.merge import starts_in
from strandline.engine.sessions.rebuild import SessionRebuild
from strandline.engine.values.emissions import Emissions
from strandline.engine.walks.in_workers import LATE, REACHES, VALUE
from strandline.engine.walks.told import (
    OWN_END,
    PLACE,
    as_probes,
    caused,
    in_firings,
    is_left,
    is_unfired,
    last_told,
    numbered,
    placed,
    timing,
    up_to_last,
    with_contents,
    with_superseded,
)
from strandline.engine.walks.walked import rules_of, walked
from strandline.model.intervals import LEAST_INSTANT_MS, TimeRange


@dataclass(frozen=True)
class WalkedSessions(SessionRebuild):
    """The rebuild of sessions over whose records a walk goes.

    What a session has counted, and when it fires next, follows from all its records, those before
    the range as well.
    """

    @property
    def needs_whole_chains(self) -> bool:
        """See `SessionRows`."""
        return True

    def windows(self) -> DataFrame:
        """The windows that have been emitted and not superseded."""
        told = self._told_by(self._identity)
        last = last_told(told, self._walked(self._identity), session_of(self._spec))
        state = self._state(F.lit(True), F.col(c.CLOSE_FROM))
        return self._as_rows(self._starts_in_range(last.withColumn("state", state)))

    def held(self) -> DataFrame:
        """The sessions that the state still holds, each with all that is left in it."""
        session = session_of(self._spec)
        sessions = self._sessions.where(F.col("state") != "closed").drop("records")
        left = self._up_to_last.where(is_left())
        held = self._starts_in_range(sessions)
        return self._as_rows(with_contents(held, left, session, self._aggregates()))

    def accepted_by_slot(self) -> DataFrame:
        """How many records the sessions accepted, and have gone with before a firing told them."""
        closed = self._sessions.select(*session_of(self._spec), "state")
        unfired = (F.col("state") == "closed") & is_unfired()
        return (
            self._up_to_last.where(starts_in(F.col(c.TS), self.scope.windows))
            .join(closed, session_of(self._spec))
            .groupBy(slot_of(F.col(c.TS), self.history.grid).alias(c.SLOT))
            .agg(
                F.count(F.lit(1)).alias("accepted"),
                F.count_if(LATE).alias("late_accepted"),
                F.count_if(unfired).alias("unfired"),
            )
        )

    def firings(self, identity: Column) -> DataFrame:
        """One row for each firing of each session, as `windows.firings` gives them."""
        spec = self._spec
        met = self._emitted.at(as_probes(self._told_by(identity)))
        rows = numbered(met, session_of(spec)).transform(computed)
        told = with_superseded(rows, session_of(spec)).select(
            *firing_columns(timing(), F.col(PLACE), spec),
            *("firing", "supersedes", "supersedes_windows"),
        )
        return told.where(starts_in(F.unix_millis("window_start"), self.scope.windows))

    # --------------------------------------------------------------------------------- the walk

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of all days of the records, and on which a session fired or closed."""
        region, history = self._region, self.history
        last = history.days.last_end(region.end_ms) + self._spec.allowed_lateness
        start_ms = min(region.start_ms, self.scope.windows.start_ms)
        asked = TimeRange(max(start_ms - 1, LEAST_INSTANT_MS), last)
        days = {*self._days(region), *rise_days(history, asked, self.clock)}
        return self._emissions(sorted(days)).at_hand()

    @property
    def _identity(self) -> Column:
        return identity(self._spec, self.source_columns)

    @cached_property
    def _walked(self) -> PerIdentity:
        """The accepted records walked over."""
        return PerIdentity(self._walk)

    @cached_property
    def _told_by(self) -> PerIdentity:
        """The firings that have happened, with PLACE, FIRED_AT and what they told; at hand."""
        return PerIdentity(lambda identity: self._tell(self._walked(identity)).transform(computed))

    def _walk(self, identity: Column) -> DataFrame:
        spec, session = self._spec, session_of(self._spec)
        records = self._records_in_sessions().withColumns(
            {
                c.START: F.col(c.TS),
                c.RECORD_ID: identity,
                VALUE: F.lit(None).cast("double"),
                SESSION_START: F.min(c.TS).over(Window.partitionBy(*session)),
            }
        )
        used = [SESSION_START, *columns_read(self.records, spec, self.source_columns)]
        return walked(records, session, rules_of(spec, self._until_ms), used)

    @property
    def _until_ms(self) -> int | None:
        """How far the watermark has come, so that no time is walked that may never be reached.

        None: some input has ended, and with it all times have been.
        """
        return None if self.clock.closures else self.final_watermark()

    def _records_in_sessions(self) -> DataFrame:
        """The accepted records, with the session that each is in and the WATERMARK that it met."""
        spec, of_row = self._spec, (c.SESSION, c.ENDED)
        accepted = self._rows.where(F.col(c.SESSION).isNotNull())
        if not self._ended:
            accepted = self._met.join(accepted.select(c.ROW, *of_row), c.ROW)
        rows = accepted.select(*row_key(spec), *of_row, c.WATERMARK)
        records = self._in_rows(self._days(self._region), self._region).join(rows, row_key(spec))
        if not spec.fires_by.fires_at_end:  # then the rows' own do: ahead of the watermark or not
            return records
        met = self._emitted.at(records.drop(c.WATERMARK).withColumns(met_by(records)))
        return met.drop(c.SEEN_FROM, c.RANK)

    def _tell(self, records: DataFrame) -> DataFrame:
        spec, axis, session = self._spec, self.history.axis, session_of(self._spec)
        firings = with_crossings(
            caused(records, [*session, SESSION_START]),
            F.col(REACHES),
            self._emitted,
            spec,
            axis,
            self.clock,
        )
        moment = moment_ms(F.col(c.FIRE_FROM), F.col(c.RANK), axis, self.clock)
        happened = placed(firings, moment, F.col(OWN_END), axis)
        members, firing = in_firings(records), [*session, c.FIRING]
        return with_contents(happened, members, firing, self._aggregates())

    @cached_property
    def _up_to_last(self) -> DataFrame:
        records = self._walked(self._identity)
        return up_to_last(records, self._told_by(self._identity), session_of(self._spec))
