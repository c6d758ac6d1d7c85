"""The landing of a join: both landing tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.pairs.columns import of_side
from strandline.engine.position.axis import Axis, Numbering
from strandline.engine.records.arithmetic import instant_of
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import SourceColumns, kinds_to_write
from strandline.engine.records.side_by_side import columns_side_by_side, side_by_side
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.table_landing import TableLanding
from strandline.lake.store.identities import in_order_of
from strandline.model.facts import DayFacts, KnownDays, LandingChanges
from strandline.model.facts_of_two import changes_of_two, facts_of_two
from strandline.model.intervals import EVERYTHING
from strandline.spec.joined import JoinedSpec, TwoSourcesSpec
from strandline.spec.pipeline import channel_of
from strandline.spec.used_expressions import TableName
from strandline.tables import INPUT

_OF_BOTH = (c.ARRIVAL_DAY, c.ARRIVAL, c.SEQUENCE, c.TS, c.CHANNEL, c.CANDIDATE, c.REASON)


@dataclass(frozen=True, kw_only=True)
class JoinedLanding(Landing):
    """Both landing tables of a join, read by the same clock.

    Attributes:
        spec: the pipeline.
        left: the left table.
        right: the right one.
    """

    spec: TwoSourcesSpec
    left: TableLanding
    right: TableLanding

    def by_log(self, log: LandingLog) -> JoinedLanding:
        """See `Landing.by_log`.

        Raises:
            TypeError: it is not a log of two tables.
        """
        if not isinstance(log, JoinedLog):
            msg = f"{self.spec.pipeline} reads two tables"
            raise TypeError(msg)
        left, right = self.left.by_log(log.left), self.right.by_log(log.right)
        return replace(self, log=log, left=left, right=right)

    @property
    def inputs(self) -> dict[str, TableLanding]:
        """See `Landing`."""
        return {"left": self.left, "right": self.right}

    def rows_over(self, table: TableName) -> DataFrame:
        """See `Landing`; the union of both sides, or their cross join."""
        sides = {name: one.frame for name, one in self.inputs.items()}
        if table == "both":
            return side_by_side(sides, self.spec)
        if table != "pairs":
            return sides[table]
        left, right = (
            rows.select(*(quoted(own).alias(of_side(name, own)) for own in rows.columns))
            for name, rows in sides.items()
        )
        return left.crossJoin(right)

    @cached_property
    def _of_sides(self) -> dict[str, dict[str, T.StructField]]:
        """The columns of the combined rows, by side and name."""
        schemas = {name: one.frame.schema for name, one in self.inputs.items()}
        return columns_side_by_side(schemas, self.spec)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of both tables, and the column with the side of a row."""
        both = (column.name for side in self._of_sides.values() for column in side.values())
        return (*dict.fromkeys(both), INPUT)

    @property
    def source_columns(self) -> SourceColumns:
        """See `Landing.source_columns`; in a row the columns of the other table are null.

        Raises:
            InputError: see `columns_side_by_side`.
        """
        sides = self._of_sides
        names = in_order_of(self.published, self.columns)
        places = {name: place for place, name in enumerate(names)}
        of_sides = {
            side: {own: of[own].name for own in sorted(of, key=lambda own: places[of[own].name])}
            for side, of in sides.items()
        }
        kinds = {f.name: f.dataType for of_side in sides.values() for f in of_side.values()}
        written = kinds if kinds_to_write(self.left.frame) else {}
        return SourceColumns(names, of_sides=of_sides, kinds=written)

    @cached_property
    def facts(self) -> dict[date | None, DayFacts]:
        """See `Landing.facts`; combined over both tables."""
        left, right = self.left.facts, self.right.facts
        return {
            day: facts_of_two(left.get(day), right.get(day), self.version, self.table_id)
            for day in {**left, **right}
        }

    def changes(self, known: KnownDays) -> LandingChanges:
        """See `Landing.changes`; combined over both tables."""
        landed = {name: one.landed_days for name, one in self.inputs.items()}
        return changes_of_two(known, landed)

    def weight(self, days: Sequence[date]) -> dict[str, int]:
        """See `Landing.weight`."""
        left, right = self.left.weight(days), self.right.weight(days)
        return {what: count + right[what] for what, count in left.items()}

    def records(self, days: Sequence[date | None] | None = None) -> DataFrame:
        """The rows of both tables as one table, on the common axis.

        For an interval join they are without the tables' own columns, whose types may conflict.

        Raises:
            InputError: for windows over both, columns of the same name have conflicting types.
        """
        numbering = Numbering.of_spec(self.spec)
        rows = {}
        for name, one in self.inputs.items():
            own = one.records(days)
            if isinstance(self.spec, JoinedSpec):
                own = own.select(*_OF_BOTH)
            rows[name] = own.withColumns(
                {
                    c.CHANNEL: F.concat(F.lit(channel_of(name, "")), c.CHANNEL),
                    c.INSTANT: instant_of(numbering, F.col(c.ARRIVAL), F.col(c.SEQUENCE)),
                }
            )
        return side_by_side(rows, self.spec)

    def axis_of(self, name: str, axis: Axis) -> Axis:
        """The axis of one side, with the clock of the common axis."""
        return Axis.of(self.spec.sides[name], axis.start_ms)

    def horizon_after(self, axis: Axis) -> int:
        """See `Landing.horizon_after`; the later one of both sides."""
        horizons = [
            one.horizon_after(self.axis_of(name, axis)) for name, one in self.inputs.items()
        ]
        return max(horizons, default=EVERYTHING.start_ms)
