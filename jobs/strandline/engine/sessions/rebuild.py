"""The rebuild of sessions under the default trigger: digest → runs → chains → replay.

A run of rows that is alone in its chain is a session that fires once, with all its records. All
other rows are replayed, chain by chain; they are few, however many records they have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.frames import computed, first_of_cases, long, named
from strandline.engine.records.arithmetic import date_of, lies_in, slot_of
from strandline.engine.replay.dataframe import (
    IN_STATE_AS,
    IS_REFUSED,
    LATE,
    SHOWN_IN,
    UNTIL_MS,
    Groups,
    replayed,
)
from strandline.engine.replay.rebuild import (
    IS_SHOWN,
    NUMBER,
    firings_of,
    is_by_record,
    is_in_state,
)
from strandline.engine.result_rows import FIRED_AT, POSITION, as_probes, firing_columns
from strandline.engine.sessions.condense import AT, AT_SEQUENCE, is_refused, row_key
from strandline.engine.sessions.replayed import SessionReplay
from strandline.engine.sessions.session_rows import broadcast_if_few
from strandline.engine.watermark_values.of_windows import CLOSES, FIRES

_SUPERSEDED = "array<struct<window_start:timestamp,window_end:timestamp,firing:bigint>>"


@dataclass(frozen=True)
class SessionRebuild(SessionReplay):
    """The rebuild of sessions under the default trigger."""

    # ------------------------------------------------------------------------------ windows

    def windows(self) -> DataFrame:
        """The sessions that were emitted and not superseded by a longer one, and open sessions."""
        return self._with_contents(self._windows.where(IS_SHOWN))

    def in_state(self) -> DataFrame:
        """The sessions still in state, each with all records that remain in it."""
        in_state = self._with_contents(self._windows.where(is_in_state()))
        return in_state.where(F.col("state") != "closed")

    def _with_contents(self, windows: DataFrame) -> DataFrame:
        """Windows of the range as rows, with the aggregates of their rows."""
        windows = self._starts_in_range(windows)
        return self._as_rows(windows.join(self._contents, [c.CHAIN, c.FIRING]))

    @cached_property
    def _contents(self) -> DataFrame:
        """The aggregates and `records` of each window of `_windows`, by CHAIN and FIRING."""
        aggregates, members = self._aggregates, broadcast_if_few(self._members)
        if self._partials is None:
            records = self._records_with(self._keyed_rows)
            whole = {**aggregates, "records": F.count(F.lit(1))}
        else:
            records = self._at_arrival
            whole = {name: partial.whole for name, partial in self._partials.items()}
            whole["records"] = F.sum("records")
        return records.join(members, c.ROW).groupBy(c.CHAIN, c.FIRING).agg(*named(whole))

    @cached_property
    def _windows(self) -> DataFrame:
        """The windows of all chains: the firings of sessions, and the sessions in state."""
        return self._alone.unionByName(self._refired) if self._others else self._alone

    @property
    def _members(self) -> DataFrame:
        """The ROW, CHAIN and FIRING of each row of a window in force or in state."""
        alone = self._rows.where(c.ALONE).select(c.ROW, c.CHAIN, long(0).alias(c.FIRING))
        if not self._others:
            return alone
        numbers = F.array_compact(F.concat(SHOWN_IN, F.array(IN_STATE_AS)))
        others = self._outcome.select(c.ROW, c.CHAIN, F.explode(numbers).alias(c.FIRING))
        return alone.unionByName(others)

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`; a session counts in the slot that it begins in."""
        slot = slot_of(F.col(c.START), self.history.grid).alias(c.SLOT)
        accepted = self._at_arrival.join(broadcast_if_few(self._refused), c.ROW, "left_anti")
        counted = accepted.select(slot, c.START, "records", long(0).alias("late_accepted"))
        if self._others:
            late = self._outcome.where(LATE)
            as_late = F.col("records").alias("late_accepted")
            counted = counted.unionByName(
                late.select(slot, c.START, long(0).alias("records"), as_late)
            )
        return (
            self._starts_in_range(counted)
            .groupBy(c.SLOT)
            .agg(
                *(F.sum(name).alias(name) for name in ("records", "late_accepted")),
                F.sum("records").alias("in_newest"),
            )
        )

    @property
    def _refused(self) -> DataFrame:
        """The ROW of each row of `_rows` that no session has accepted."""
        refused = self._rows.where(is_refused()).select(c.ROW)
        return refused.unionByName(self._late_rows.select(c.ROW))

    @property
    def _late_rows(self) -> DataFrame:
        """See `SessionRows`."""
        columns = (*row_key(self._spec), c.ROW, c.START, c.WATERMARK)
        if not self._others:
            return self._rows.where(F.lit(False)).select(*columns)
        return self._outcome.where(IS_REFUSED).select(*columns)

    # ------------------------------------------------------------------------------ alone in chain

    @cached_property
    def _alone(self) -> DataFrame:
        """The sessions of one run that is ALONE, in the form of `_refired`; computed."""
        closures = enumerate(self._closures)
        ended = (
            ((F.col(c.ERA) <= number) & lies_in(F.col(c.START), one.windows), long(one.at_ms))
            for number, one in closures
        )
        rows = self._rows.where(c.ALONE).withColumns(
            {c.FIRING: long(0), c.ENDED: first_of_cases(ended, long(None))}
        )
        timed = self._with_times(rows, F.col(c.END) - 1)
        return computed(
            timed.select(
                *self._columns,
                F.lit(True).alias(IS_SHOWN),
                long(0).alias("late_accepted"),
                long(1).alias("firings"),
                self._crossed_at_ms().alias(FIRED_AT),
            )
        )

    @property
    def _columns(self) -> list[str]:
        """The columns of a window of a chain, and of the crossings that fire and close it."""
        of_chain = (c.CHAIN, c.FIRING, c.START, c.END, c.ENDED)
        return [*keys_of(self._spec), *of_chain, *FIRES, *CLOSES]

    # ------------------------------------------------------------------------------ replayed

    @property
    def _not_alone(self) -> DataFrame:
        """The rows of chains that are no single run."""
        return self._rows.where(~F.col(c.ALONE) & ~is_refused())

    @cached_property
    def _others(self) -> int:
        """The number of rows that are not alone; if there are none, nothing is replayed."""
        return self._not_alone.count()

    @cached_property
    def _outcome(self) -> DataFrame:
        """The rows that are not alone, with the outcome of their replay, computed."""
        spec = self._spec
        order = [*([c.ERA] if self._ended else []), AT, AT_SEQUENCE, c.START, c.END]
        groups = Groups([c.CHAIN], order, self._others)
        used = [c.ROW, "records", *row_key(spec), c.START, c.END, c.WATERMARK]
        rows = self._not_alone.withColumns({c.TS: F.col(c.START), UNTIL_MS: self._until})
        rules = replace(self._rules, lists_superseded=False)
        return computed(replayed(rows, groups, spec, rules, None, used))

    @cached_property
    def _refired(self) -> DataFrame:
        """The firings of the replayed chains, and their windows in state; computed."""
        causes = [*keys_of(self._spec), c.CHAIN, AT, "records"]
        timed = self._timed(firings_of(self._outcome, causes, in_state=True))
        window = Window.partitionBy(c.CHAIN, c.START, c.END)
        has_fired, is_late = ~is_in_state(), is_by_record()
        at_ms = F.when(is_late, F.col(AT)).otherwise(self._crossed_at_ms())
        # records with one position and gap are one row, and each of them fires the session
        times = F.when(is_late, F.col("records")).otherwise(long(1))
        of_window = {
            FIRED_AT: F.min(F.when(has_fired, at_ms)).over(window),
            "firings": F.coalesce(F.sum(F.when(has_fired, times)).over(window), long(1)),
            "late_accepted": F.sum(F.when(is_late, F.col("records")).otherwise(0)).over(window),
        }
        columns = (IS_SHOWN, "late_accepted", "firings", FIRED_AT)
        return computed(timed.withColumns(of_window).select(*self._columns, *columns))

    # ------------------------------------------------------------------------------ firings

    def firings(self) -> DataFrame:
        """One row for each firing of each session, as `windows.firings` gives them."""
        alone = self._firings_alone()
        return alone.unionByName(super().firings()) if self._others else alone

    def _firings_alone(self) -> DataFrame:
        """The firings of the sessions that are ALONE."""
        axis, nothing = self.history.axis, long(None)
        fired = self._starts_in_range(self._alone).where(
            F.col(c.FIRE_FROM) < axis.literal(axis.never)
        )
        place = F.struct(
            F.col(c.FIRE_FROM).alias("instant"),
            F.col(c.RANK).alias("rank"),
            nothing.alias("sequence"),
            nothing.alias("ts_ms"),
            F.col(c.END).alias("window_ms"),
        )
        reported = self.reported(fired.withColumn(POSITION, place))
        filled = reported.join(self._contents, [c.CHAIN, c.FIRING])
        filled = filled.withColumn(c.RECORD_ID, F.lit(None).cast("string"))
        return filled.select(
            *firing_columns(F.lit("ON_TIME"), self._spec),
            long(1).alias(NUMBER),
            nothing.alias("supersedes"),
            F.lit(None).cast(_SUPERSEDED).alias("supersedes_windows"),
        )

    def reported(self, fired: DataFrame) -> DataFrame:
        """See `ReplayedRebuild`; a session may fire on a day without rows in `_emitted`."""
        days = [row[0] for row in fired.select(date_of(F.col(FIRED_AT))).distinct().collect()]
        return self._emissions(sorted(days)).at(as_probes(fired))

    @property
    def _to_replay(self) -> DataFrame:
        """See `SessionReplay`: the records of the rows of `_outcome`."""
        return self._records_of(broadcast_if_few(self._outcome.select(c.ROW, c.CHAIN)))

    @property
    def _probed_days(self) -> set[date]:
        """See `SessionRows`: the watermark is looked up only for rows behind it."""
        return self._parts_of(self._region).behind_days & {*self._days(self._region)}
