"""The rebuild of windows by a replay: of windows on a grid, global and counting windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import columns_read, parts_of, with_contents_of_none
from strandline.engine.columns import window_of
from strandline.engine.frames import computed, fields_of, long, named
from strandline.engine.records.arithmetic import is_window_fired
from strandline.engine.records.expressions import quoted
from strandline.engine.replay.dataframe import (
    FIRST,
    IS_IN_STATE,
    IS_SHOWN,
    IS_UNFIRED,
    LATE,
    UNTIL_MS,
    Groups,
    position_of,
    replayed,
    rules_of,
    values_of,
)
from strandline.engine.replay.rebuild import (
    REACHES,
    ReplayedRebuild,
    contents,
    firings_of,
    placed_in,
)
from strandline.engine.result_rows import (
    FIRED_AT,
    causes_of,
    state_of,
    window_columns,
    window_rows,
)
from strandline.engine.watermark_values.emissions import Emissions
from strandline.engine.watermark_values.of_windows import FIRES, crossed_at_ms, with_crossings
from strandline.engine.windows.assign import is_kept_elsewhere
from strandline.engine.windows.firings import FIRST_FIRING, LAST_FIRING, grown
from strandline.engine.windows.rebuild import GridRebuild
from strandline.errors import InputError
from strandline.model.intervals import TimeRange
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.runnable import MOST_TIMES
from strandline.spec.trigger import Continuous

_CONTENT = "_strandline_content"
_IS_CLOSED = "_strandline_is_closed"
_AT_MS = "_strandline_reached_at_ms"


@dataclass(frozen=True)
class ReplayedWindows(ReplayedRebuild, GridRebuild):
    """The rebuild of windows with an evictor or with another trigger than the default."""

    def windows(self) -> DataFrame:
        """The windows of every key, including windows that have not fired yet.

        They have the contents of their last firing, which may lack accepted records. A window that
        has not fired is `open`, even if the watermark has passed its end.
        """
        spec, window, aggregates = self._spec, self.group, self._aggregates
        parts = self.replayed.groupBy(*window, IS_SHOWN).agg(
            *named(aggregates),
            F.count(F.lit(1)).alias("records"),
            F.count_if(LATE).alias("late_accepted"),
        )
        shown = F.struct(*map(quoted, aggregates), "records")
        counted = parts.groupBy(*window).agg(
            F.first(F.when(F.col(IS_SHOWN), shown), ignorenulls=True).alias(_CONTENT),
            F.sum("late_accepted").alias("late_accepted"),
        )
        filled = counted.select(*window, "late_accepted", *fields_of(counted, _CONTENT))
        if _may_hold_nothing(spec):
            filled = with_contents_of_none(filled, self.replayed, aggregates)
        fired = self._fired.groupBy(*window)
        both = filled.join(
            fired.agg(F.count(F.lit(1)).alias("firings"), F.min(FIRED_AT).alias(FIRED_AT)),
            window,
            "left",
        )
        none = long(0)
        both = both.withColumns({n: F.coalesce(n, none) for n in ("records", "firings")})
        placed = both.join(F.broadcast(self._windows), c.WINDOW)
        bounds = (c.SLOT, c.SLOT_END)
        return window_rows(placed, bounds, F.col(FIRED_AT), F.col(c.CLOSE_AT), spec)

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: each window is a slot."""
        closed = self._windows.select(c.WINDOW, F.col(c.CLOSE_AT).isNotNull().alias(_IS_CLOSED))
        counted = (
            self.replayed.join(F.broadcast(closed), c.WINDOW)
            .groupBy(F.col(c.WINDOW).alias(c.SLOT))
            .agg(
                F.count(F.lit(1)).alias("records"),
                F.count_if(LATE).alias("late_accepted"),
                F.count_if(self._is_newest()).alias("in_newest"),
                F.count_if(F.col(_IS_CLOSED) & F.col(IS_UNFIRED)).alias("unfired"),
            )
        )
        if self.history.grid.one_window_each:
            return counted
        refused = self._pairs.where(is_kept_elsewhere())
        missed = refused.groupBy(F.col(c.WINDOW).alias(c.SLOT)).agg(
            F.count(F.lit(1)).alias("missed_pairs")
        )
        return counted.join(missed, c.SLOT, "full")

    def in_state(self) -> DataFrame:
        """The contents of the windows that have not closed, each with the `state` of its slot."""
        records = self.replayed.where(IS_IN_STATE)
        shown = contents(records, self.group, self._aggregates).join(
            F.broadcast(self._windows), c.WINDOW
        )
        columns = window_columns(c.SLOT, c.SLOT_END, self._spec)
        state = state_of(F.col(c.FIRE_AT), F.col(c.CLOSE_AT)).alias("state")
        return shown.where(F.col(c.CLOSE_AT).isNull()).select(*columns, "records", state)

    def _filled(self, rows: DataFrame) -> DataFrame:
        """See `ReplayedRebuild`; only an evictor can remove all records of a firing."""
        if _may_hold_nothing(self._spec):
            return super()._filled(rows)
        return rows.withColumn("records", F.coalesce("records", long(0)))

    # ------------------------------------------------------------------------------- the replay

    def _replay(self) -> DataFrame:
        spec, accepted = self._spec, self._accepted
        own = {
            c.START: F.col(c.SLOT),
            c.END: F.col(c.SLOT_END),
            **values_of(accepted, spec),
        }
        records = self._with_watermarks(accepted).withColumns(own)
        used = [] if self.history.grid.one_window_each else [c.NEWEST_WINDOW]
        used += causes_of(spec) + columns_read(self.records, spec, self.source_columns)
        by, identifying = self._identity, self.source_columns.names
        return replayed(records, self.groups, spec, rules_of(spec), by, used, identifying)

    @property
    def groups(self) -> Groups:
        """See `ReplayedRebuild`: windows of a key."""
        about = int(self.slots["records"].sum()) * self.history.grid.most_windows
        return Groups(window_of(self._spec), position_of(self._spec), about)

    def _with_watermarks(self, accepted: DataFrame) -> DataFrame:
        """The records with the WATERMARK at their arrival, and UNTIL_MS.

        If it only matters whether the watermark has reached the window's end, WATERMARK is the
        window's maximum timestamp or MIN_WATERMARK instead.
        """
        if self._spec.fires_at_times:
            records = self._emitted.at_arrival(accepted, self._spec)
            until_ms = F.lit(self._until_ms).cast("bigint")
            return records.withColumn(UNTIL_MS, F.when(F.col(c.ENDED_AT).isNull(), until_ms))
        max_timestamp, none = F.col(c.SLOT_END) - 1, long(MIN_WATERMARK)
        return accepted.withColumns(
            {
                c.WATERMARK: F.when(is_window_fired(), max_timestamp).otherwise(none),
                UNTIL_MS: F.when(F.col(c.FIRE_AT).isNotNull(), max_timestamp).otherwise(none),
            }
        )

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of all days with a record or a possible firing of a window."""
        within = self.scope.windows
        days = {*self.history.days.of_windows(within)}
        if self._spec.fires_at_times:
            events = self.history.grid.events_of(within)
            asked = TimeRange(events.start_ms - 1, events.end_ms)
            days.update(self.history.advance_days(asked, self.clock))
        days.update(self._fired_days)
        return self._emissions(sorted(days)).computed_once()

    def _is_newest(self) -> Column:
        """Whether a record's window is its newest one, in which it is counted."""
        if self.history.grid.one_window_each:
            return F.lit(True)
        return F.col(c.WINDOW) == F.col(c.NEWEST_WINDOW)

    @property
    def _until_ms(self) -> int:
        """The watermark that the replay ends with, in ms."""
        return self.watermark_before_end()

    # ------------------------------------------------------------------------------ its firings

    def _place(self) -> DataFrame:
        causes = [*self.group, *causes_of(self._spec), c.RECORD_ID]
        fired = firings_of(self.replayed, causes)
        timed = self._reached(fired) if self._spec.fires_at_times else self._at_ends(fired)
        own_window = -F.col(c.END)  # a record fires its newest window first
        return placed_in(timed, F.col(_AT_MS), own_window, self._spec)

    def _at_ends(self, fired: DataFrame) -> DataFrame:
        """Firings with the position at which the watermark reached the end of their window."""
        ends = self._windows.select(c.WINDOW, c.FIRE_FROM, c.RANK, F.col(c.FIRE_AT).alias(_AT_MS))
        return fired.join(F.broadcast(ends), c.WINDOW)

    def _reached(self, fired: DataFrame) -> DataFrame:
        """Firings with the position at which the watermark reached REACHES, or the input ended."""
        ends = self._windows.select(c.WINDOW, F.col(c.ENDED_AT).alias(c.ENDED))
        fired = computed(fired).drop(c.ENDED).join(F.broadcast(ends), c.WINDOW)
        timed = with_crossings(fired, {FIRES: F.col(REACHES)}, self._emitted)
        return timed.withColumn(_AT_MS, crossed_at_ms(FIRES, self._emitted))

    def _contents_of_firings(self) -> DataFrame:
        """See `ReplayedRebuild`; running aggregates, where a firing has all records so far."""
        window = self.group
        keeps_all = self._spec.evicts_by is None and not self._spec.fires_by.purging
        partials = self._partials
        if not keeps_all or partials is None:
            return super()._contents_of_firings()
        _ = self._aggregates  # checked
        last = self._fired.groupBy(*window).agg(F.max(c.FIRING).alias(LAST_FIRING))
        units = (
            self.replayed.groupBy(*window, F.col(FIRST).alias(FIRST_FIRING))
            .agg(F.count(F.lit(1)).alias(c.RECORDS), *parts_of(partials))
            .join(last, window)
        )
        return grown(units, window, partials)


@dataclass(frozen=True)
class ReplayedOfAllTime(ReplayedWindows):
    """The rebuild of global and counting windows, which only the end of the input closes."""

    @property
    def _until_ms(self) -> int:
        """The watermark that the replay ends with, in ms.

        Raises:
            InputError: the windows would fire for ever, as the input has ended; or they would have
                fired too often by now, each time with all of their records.
        """
        if self.clock.closures:
            ends, way_out = ", as in Flink", "let the input go on"
            if not self.clock.closes_now:
                ends, way_out = ", as an earlier run has ended the input", "give backfill --reopen"
            raise InputError(
                f"{self._spec.pipeline}: trigger.continuous",
                f"a global window would fire at every multiple up to the end of time{ends}",
                f"{way_out}, or choose another trigger",
            )
        until_ms = super()._until_ms
        self._refuse_too_many_times(until_ms)
        return until_ms

    def _refuse_too_many_times(self, until_ms: int) -> None:
        spec, events = self._spec, self.history.days.events
        trigger = spec.fires_by
        if events is None or trigger.purging or not isinstance(trigger, Continuous):
            return
        times = (until_ms - events.start_ms) // trigger.continuous
        if times > MOST_TIMES:
            raise InputError(
                f"{spec.pipeline}: trigger.continuous",
                f"a window of all time that holds the earliest record would have fired {times:,} "
                f"times by now, more than {MOST_TIMES:,}, and emits all of its records each time",
                "give a longer interval, let it be purging, or choose windows that end",
            )


def _may_hold_nothing(spec: PipelineSpec) -> bool:
    """Whether a firing may have no records: its evictor may remove them all before it."""
    return spec.evicts_by is not None and not spec.evicts_by.after
