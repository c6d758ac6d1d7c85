"""Windows that are walked over, as they fire at times: global ones, and those that go by order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.calendar.tables import window_table
from strandline.engine.calendar.timers import end_columns
from strandline.engine.frames import PerIdentity, computed, long
from strandline.engine.past.history import History
from strandline.engine.records.arithmetic import event_ms
from strandline.engine.records.met import met_by
from strandline.engine.results.aggregates import columns_read
from strandline.engine.results.rows import FIRED_AT, firing_columns
from strandline.engine.values.emissions import Emissions
from strandline.engine.values.of_days import emissions
from strandline.engine.walks.in_workers import LATE, REACHES, VALUE
from strandline.engine.walks.told import (
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
)
from strandline.engine.walks.walked import rules_of, walked
from strandline.engine.windows import by_order
from strandline.engine.windows.assign import is_newest
from strandline.engine.windows.first_firings import window_of
from strandline.engine.windows.order import value_of
from strandline.engine.windows.rebuild import GridRebuild
from strandline.errors import InputError
from strandline.spec.runnable import MOST_TIMES
from strandline.spec.trigger import Continuous

_MOMENT = "_strandline_moment_ms"


@dataclass(frozen=True)
class WalkedWindows(GridRebuild):
    """The rebuild of windows, other than sessions, over whose records a walk goes."""

    def windows(self) -> DataFrame:
        """The windows of every key, those that have not fired yet included."""
        spec, window = self.history.spec, window_of(self.history.spec)
        counted = self._up_to_last.groupBy(*window).agg(
            F.count(F.lit(1)).alias(c.ACCEPTED),
            F.count_if(is_newest(self._up_to_last)).alias(c.IN_NEWEST_WINDOW),
            F.count_if(LATE).alias("late_accepted"),
            F.count_if(is_unfired()).alias(c.UNFIRED),
        )
        last = last_told(self._told_by(self._identity), self._walked(self._identity), window)
        told = last.select(*window, *spec.aggregates, "records", "firings", FIRED_AT)
        none = long(0)
        both = counted.join(told, window, "left").withColumns(
            {name: F.coalesce(name, none) for name in ("records", "firings")}
        )
        return self._with_refused(by_order.as_windows(both, self._windows, spec), self._windows)

    def held(self) -> DataFrame:
        """What the windows that have not closed hold."""
        left = self._up_to_last.where(is_left())
        return by_order.held(left, self._windows, self.history.spec, self._aggregates())

    def firings(self, identity: Column) -> DataFrame:
        """The firings of the range's windows; `identity` orders records of equal position."""
        spec = self.history.spec
        met = self._emitted.at(as_probes(self._told_by(identity)))
        columns = firing_columns(timing(), F.col(PLACE), spec)
        return numbered(met, window_of(spec)).select(*columns, "firing", "supersedes")

    # --------------------------------------------------------------------------------- the walk

    @cached_property
    def _emitted(self) -> Emissions:
        """The emissions of all days of the records, and on which a window can fire."""
        days = {*self.history.days.of_windows(self.scope.windows), *self._rise_days}
        probed = emissions(self.spark, self.records, self._probed, self.clock, sorted(days))
        return probed.at_hand()

    def _window_table(self, history: History) -> DataFrame:
        """The windows of the range, with where their input ends."""
        ends = end_columns(self.slots, history, self.clock)
        return window_table(self.spark, self.slots, history.axis, ends)

    @cached_property
    def _walked(self) -> PerIdentity:
        """The accepted records walked over."""
        return PerIdentity(self._walk)

    @cached_property
    def _told_by(self) -> PerIdentity:
        """The firings that have happened, with PLACE, FIRED_AT and what they told; at hand."""
        return PerIdentity(lambda identity: self._tell(self._walked(identity)).transform(computed))

    def _walk(self, identity: Column) -> DataFrame:
        spec, accepted = self.history.spec, self._accepted(self._windows)
        records = self._emitted.at(accepted.withColumns(met_by(accepted))).withColumns(
            {
                c.START: F.col(c.SLOT),
                c.END: F.col(c.SLOT_END),
                c.RECORD_ID: identity,
                VALUE: value_of(accepted, spec, "evictor"),
            }
        )
        used = [name for name in (c.NEWEST_WINDOW,) if name in records.columns]
        used += columns_read(self.records, spec, self.source_columns)
        rules = rules_of(spec, until_ms=self._until_ms)
        return walked(records, window_of(spec), rules, used)

    @property
    def _until_ms(self) -> int | None:
        """How far the watermark has come, for windows that never end.

        Raises:
            InputError: the input has ended, and such windows fire for ever then; or they would fire
                too often by now, and tell all of their records each time.
        """
        if not self.history.grid.all_time:
            return None
        if self.clock.closures:
            raise InputError(
                f"{self.history.spec.pipeline}: trigger.continuous",
                "a global window would fire at every multiple up to the end of time, as in Flink",
                "let the input go on, or choose another trigger",
            )
        until_ms = self.final_watermark()
        self._refuse_too_many_times(until_ms)
        return until_ms

    def _refuse_too_many_times(self, until_ms: int) -> None:
        spec, events = self.history.spec, self.history.days.events
        trigger = spec.fires_by
        if events is None or trigger.purging or not isinstance(trigger, Continuous):
            return
        times = (until_ms - events.start_ms) // trigger.continuous
        if times > MOST_TIMES:
            raise InputError(
                f"{spec.pipeline}: trigger.continuous",
                f"a window of all time that holds the earliest record would have fired {times:,} "
                f"times by now, more than {MOST_TIMES:,}, and tells all of its records each time",
                "give a longer interval, let it be purging, or choose windows that end",
            )

    def _tell(self, records: DataFrame) -> DataFrame:
        window = window_of(self.history.spec)
        bounded = self._reached(caused(records, window).transform(computed))
        own_window = -F.col(c.END)  # a record fires its newest window first
        happened = placed(bounded, F.col(_MOMENT), own_window, self.history.axis)
        members, firing = in_firings(records), [*window, c.FIRING]
        return with_contents(happened, members, firing, self._aggregates())

    def _reached(self, causes: DataFrame) -> DataFrame:
        """Firings with where the watermark reaches what they wait for, or their input ends."""
        asked = causes.select(F.col(REACHES).alias(c.THRESHOLD)).where(F.col(REACHES).isNotNull())
        reached = self._emitted.crossings(asked).withColumnRenamed(c.SEEN_FROM, c.FIRE_FROM)
        ends = F.broadcast(self._windows.select(c.WINDOW, c.ENDS_FROM, c.ENDS_AT))
        timed = causes.withColumn(c.THRESHOLD, F.col(REACHES)).join(reached, c.THRESHOLD, "left")
        at_end = F.col(c.FIRE_FROM) >= F.col(c.ENDS_FROM)
        at_ms = event_ms(self.history.axis, F.col(c.FIRE_FROM), F.col(c.RANK))
        return timed.join(ends, c.WINDOW).withColumns(
            {
                _MOMENT: F.when(at_end, F.col(c.ENDS_AT)).otherwise(at_ms),
                c.FIRE_FROM: F.least(c.FIRE_FROM, c.ENDS_FROM),
            }
        )

    @cached_property
    def _up_to_last(self) -> DataFrame:
        window = window_of(self.history.spec)
        return up_to_last(self._walked(self._identity), self._told_by(self._identity), window)
