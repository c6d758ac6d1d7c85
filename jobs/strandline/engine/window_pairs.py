"""Windows over two inputs whose firings tell of pairs: each left record beside each right one.

Flink: `JoinedStreams`, a co-group whose function loops over both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import PerIdentity, computed
from strandline.engine.past.history import History
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import identity
from strandline.engine.results.aggregates import aggregate_columns
from strandline.engine.scope import Rebuild
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT


@dataclass(frozen=True)
class WindowPairsRebuild(Rebuild):
    """A rebuild of windows that tell of pairs.

    Attributes:
        of_records: the same windows, each firing with the records of both sides.
    """

    of_records: Rebuild

    @classmethod
    def of(cls, of_records: Rebuild, history: History) -> WindowPairsRebuild:
        """The pairs of such windows, by the rules of a history."""
        common = {of.name: getattr(of_records, of.name) for of in fields(Rebuild)}
        return replace(cls(**common, of_records=of_records), history=history)

    def windows(self) -> DataFrame:
        """The windows, with what their last firing told; `firings` are those that told of a pair.

        ACCEPTED counts the records of both sides, `records` the pairs.
        """
        spec, window = self.history.spec, _window(self.history.spec)
        counted = self.of_records.windows().drop(c.OF_FIRING)
        if c.ACCEPTED not in counted.columns:
            counted = counted.withColumn(c.ACCEPTED, F.col("records"))
        own = [name for name in counted.columns if name not in {"records", "firings", "fired_at"}]
        told = self._told(identity(spec, self.source_columns))
        whole = Window.partitionBy(*window)
        first_at = F.min("fired_at").over(whole)
        ends = F.col("firing") == F.max("firing").over(whole)
        told = told.withColumns({"fired_at": first_at, _LAST: ends}).where(_LAST)
        aggregates = (quoted(name) for name in spec.aggregates)
        firings = F.col("firing").alias("firings")
        last = told.select(*window, *aggregates, "records", "fired_at", firings)
        none = F.lit(0).cast("bigint")
        return (
            counted.select(*own)
            .join(last, window, "left")
            .withColumns({name: F.coalesce(name, none) for name in ("records", "firings")})
        )

    def held(self) -> DataFrame:
        """What the windows hold: the records of both sides, OF_FIRING those themselves."""
        return self.of_records.held()

    def accepted_by_slot(self) -> DataFrame | None:
        """See `Rebuild`: the records of both sides."""
        return self.of_records.accepted_by_slot()

    def late(self) -> DataFrame:
        """See `Rebuild`: the records of both sides."""
        return self.of_records.late()

    def firings(self, identity: Column) -> DataFrame:
        """The firings that told of a pair, each with what is counted of its pairs."""
        return self._told(identity)

    @cached_property
    def _told(self) -> PerIdentity:
        """The firings that told of a pair, once."""
        return PerIdentity(self._tell)

    def _tell(self, identity: Column) -> DataFrame:
        spec = self.history.spec
        firing = [*_window(spec), "firing"]
        rows = self.of_records.firings(identity)
        pairs = self._pairs(rows, firing)
        aggregates = aggregate_columns(pairs, spec)
        contents = pairs.groupBy(*firing).agg(
            *(column.alias(name) for name, column in aggregates.items()),
            F.count(F.lit(1)).alias("records"),
        )
        kept = rows.drop(c.OF_FIRING, "records", "supersedes").join(contents, firing)
        nth = F.row_number().over(Window.partitionBy(*_window(spec)).orderBy("firing"))
        replaces = F.lit(not spec.empties_as_it_fires) & (F.col("firing") > 1)
        return (
            kept.withColumn("firing", nth.cast("bigint"))
            .withColumn("supersedes", F.when(replaces, F.col("firing") - 1))
            .transform(computed)
        )

    def _pairs(self, rows: DataFrame, firing: Sequence[str]) -> DataFrame:
        """Each left record of a firing beside each right one, columns under their side's name."""
        sides = {name: _SIDE + name for name in SIDES}
        pairs = rows.select(*firing, *(_of(name).alias(side) for name, side in sides.items()))
        for side in sides.values():
            pairs = pairs.withColumn(side, F.explode(side))
        columns = [
            F.col(side)[column].alias(f"{name}_{column}")
            for name, side in sides.items()
            for column in self.source_columns.names
            if column != INPUT
        ]
        return pairs.select(*firing, *columns)


_LAST = "_strandline_last"
_SIDE = "_strandline_side_"


def _window(spec: PipelineSpec) -> list[str]:
    return ["window_start", "window_end", *spec.source.key]


def _of(name: str) -> Column:
    """The records of one side that a firing holds."""
    return F.filter(c.OF_FIRING, lambda record: record[INPUT] == name)
