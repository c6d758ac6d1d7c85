"""The rebuild of an interval join for a run: pairs, late records and counts as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import long
from strandline.engine.history.inputs import HistoryOfTwo
from strandline.engine.pairs.rebuild import PAIR, PAIR_TS, PairRebuild, of_side
from strandline.engine.records.arithmetic import slot_of
from strandline.engine.records.expressions import quoted
from strandline.engine.records.quarantine import of_inputs, quarantine_late
from strandline.engine.scope import Rebuild
from strandline.errors import InputError
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT

_OF_TABLE = ("pair_ts", "pair_date", "pair", "run_id", "spec_fingerprint")


class PairsOfRange(Rebuild):
    """The pairs of a range, and the late records of both sides, also for older slots."""

    history: HistoryOfTwo

    def windows(self) -> DataFrame:
        """The pairs as rows of the table `pairs`.

        Raises:
            InputError: two of its columns would have one name.
        """
        spec = self.history.spec
        refuse_names_in_use(spec, self._columns)
        return self._pairs.pairs().select(
            PAIR_TS,
            F.to_date(PAIR_TS).alias("pair_date"),
            *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
            *(quoted(of_side(name, column)) for name in SIDES for column in self._columns[name]),
            *(F.col(of_side(name, c.RECORD_ID)).alias(_id_of(name)) for name in SIDES),
            PAIR,
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        )

    def late(self) -> DataFrame:
        """The late records of the range, and all late arrivals for older slots, with their INPUT.

        Raises:
            InputError: the columns of the two landing tables conflict.
        """
        return of_inputs({name: self._late_of(name) for name in SIDES}, self.history.spec)

    def accepted_by_input(self) -> dict[str, Counter[int]]:
        """The number of records of each side that are not late, by the start of their slot."""
        counted: dict[str, Counter[int]] = {name: Counter() for name in SIDES}
        for name, slot, count in self._accepted.groupBy(INPUT, c.SLOT).count().collect():
            counted[name][int(slot)] = int(count)
        return counted

    def accepted_by_slot(self) -> DataFrame:
        """See `Rebuild`: the records of both sides that are not late."""
        count = F.count(F.lit(1))
        by_slot = self._accepted.groupBy(c.SLOT)
        return by_slot.agg(count.alias("records"), count.alias("in_newest"))

    @property
    def _accepted(self) -> DataFrame:
        """The records of both sides that are not late, with their INPUT and SLOT."""
        slot = slot_of(F.col(c.TS), self.history.grid)
        return _of_both(self._pairs.accepted).withColumn(c.SLOT, slot)

    def in_state(self) -> DataFrame:
        """The records that still wait for partners, with their INPUT."""
        return _of_both(self._pairs.in_state)

    def firings(self) -> DataFrame:
        """Not applicable: an interval join has no firings.

        Raises:
            TypeError: always.
        """
        msg = "pairs have no firings"
        raise TypeError(msg)

    def _late_of(self, name: str) -> DataFrame:
        """The late records of a side as quarantine rows; their slots end after their event time."""
        since_ms, given = self.scope.older_since_ms, self.history.inputs[name]
        late = self._pairs.late(name)
        if since_ms is not None:
            older = self._pairs.late_since(name, since_ms, self.scope.older_end_ms)
            late = late.unionByName(older, allowMissingColumns=True)
        slots = {
            c.SLOT: slot_of(F.col(c.TS), self.history.grid),
            c.SLOT_END: F.col(c.TS) + 1,
            c.MISSED: long(1),
            c.ENDED_AT: long(None),
        }
        rows = quarantine_late(late.withColumns(slots), given.history.spec, given.source_columns)
        return rows.withColumn("missed_windows", long(None))

    @cached_property
    def _pairs(self) -> PairRebuild:
        return PairRebuild(self.history, self.clock, self.scope.windows)

    @property
    def _columns(self) -> dict[str, tuple[str, ...]]:
        """The landing columns of each side."""
        return {name: one.source_columns.names for name, one in self.history.inputs.items()}


def refuse_names_in_use(
    spec: PipelineSpec, columns: Mapping[str, Iterable[str]], of_window: Sequence[str] = ()
) -> None:
    """Refuse landing columns and keys whose names would occur twice among the columns of `pairs`.

    Args:
        spec: the pipeline.
        columns: the landing columns of each side.
        of_window: the columns of a pair's window.

    Raises:
        InputError: there is such a name.
    """
    in_use = {*_OF_TABLE, *of_window, *(_id_of(name) for name in SIDES)}
    named = [(f"sources.left.key.{key}", key) for key in spec.source.key]
    for name in SIDES:
        place = f"sources.{name}.table"
        named += [(place, of_side(name, column)) for column in columns[name]]
    for place, column in named:
        if column.lower() in in_use:
            raise InputError(
                f"{spec.pipeline}: {place}",
                f"the table pairs would have two columns {column}",
                "rename the landing table's column, or the key",
            )
        in_use.add(column.lower())


def _of_both(of_side: Callable[[str], DataFrame]) -> DataFrame:
    """Records of both sides, with their INPUT and TS alone."""
    sides = (of_side(name).select(F.lit(name).alias(INPUT), c.TS) for name in SIDES)
    return reduce(DataFrame.unionByName, sides)


def _id_of(name: str) -> str:
    return of_side(name, "record_id")
