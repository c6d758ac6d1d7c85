"""Windows over two inputs whose firings tell of pairs: each left record beside each right one.

Flink: `JoinedStreams`, a co-group whose function loops over both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import PerIdentity, computed
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import identity
from strandline.engine.results.aggregates import aggregate_columns
from strandline.engine.results.rows import last_firings, numbered, window_key
from strandline.engine.scope import Rebuild
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT


@dataclass(frozen=True)
class WindowPairsRebuild(Rebuild):
    """A rebuild of windows that tell of pairs.

    Attributes:
        plain: the same windows, as they count the records of both sides.
        of_records: the same, each firing with the records of both sides.
    """

    plain: Rebuild
    of_records: Rebuild

    def windows(self) -> DataFrame:
        """The windows, with what their last firing told; `firings` are those that told of a pair.

        ACCEPTED counts the records of both sides, `records` the pairs.
        """
        spec, window = self.history.spec, window_key(self.history.spec)
        counted = self.plain.windows()
        if c.ACCEPTED not in counted.columns:
            counted = counted.withColumn(c.ACCEPTED, F.col("records"))
        # rows that only count what a window has refused tell nothing
        counted = counted.drop("records", "firings", "fired_at").withColumns(
            {"spec_fingerprint": F.lit(spec.spec_fingerprint), _ACCEPTS: F.col(c.ACCEPTED) > 0}
        )
        last = self._last(self._told(identity(spec, self.source_columns)))
        both = counted.join(last.withColumn(_ACCEPTS, F.lit(True)), [*window, _ACCEPTS], "left")
        none = F.lit(0).cast("bigint")
        filled = {name: F.coalesce(name, none) for name in ("records", "firings")}
        return both.withColumns(filled).drop(_ACCEPTS)

    def _last(self, told: DataFrame) -> DataFrame:
        """Of each window the last firing, with how many there were, and when the first one was."""
        spec = self.history.spec
        window = window_key(spec)
        first_at = F.min("fired_at").over(Window.partitionBy(*window))
        last = last_firings(told.withColumn("fired_at", first_at), spec)
        firings = F.col("firing").alias("firings")
        return last.select(*window, *map(quoted, spec.aggregates), "records", "fired_at", firings)

    def held(self) -> DataFrame:
        """What the windows hold: the records of both sides, OF_FIRING those themselves."""
        return self.of_records.held()

    def accepted_by_slot(self) -> DataFrame | None:
        """See `Rebuild`: the records of both sides."""
        return self.plain.accepted_by_slot()

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
        spec, rows = self.history.spec, self.of_records.firings(identity)
        firing = [*window_key(spec), _FIRING]
        rows = rows.withColumnRenamed("firing", _FIRING)
        kept = rows.drop(c.OF_FIRING, "records").join(self._contents(rows, firing), firing)
        told = numbered(kept, _FIRING, spec)
        if _SUPERSEDED in told.columns:
            told = _of_those_told(told, spec)
        return told.drop(_FIRING).transform(computed)

    def _contents(self, rows: DataFrame, firing: Sequence[str]) -> DataFrame:
        """What is counted of the pairs of each firing that has some; `records` are the pairs."""
        named = {name: f"{_OWN}{number}" for number, name in enumerate(firing)}
        pairs = self._pairs(rows, named)
        aggregates = aggregate_columns(pairs, self.history.spec)
        counted = pairs.groupBy(*named.values()).agg(
            *(column.alias(name) for name, column in aggregates.items()),
            F.count(F.lit(1)).alias("records"),
        )
        return counted.withColumnsRenamed({own: name for name, own in named.items()})

    def _pairs(self, rows: DataFrame, named: Mapping[str, str]) -> DataFrame:
        """Each left record of a firing beside each right one, columns under their side's name.

        The firing's own columns have names that no column of a table has.
        """
        sides = {name: _SIDE + name for name in SIDES}
        pairs = rows.select(
            *(quoted(name).alias(own) for name, own in named.items()),
            *(_of(name).alias(side) for name, side in sides.items()),
        )
        for side in sides.values():
            pairs = pairs.withColumn(side, F.explode(side))
        columns = [
            F.col(side)[column].alias(f"{name}_{column}")
            for name, side in sides.items()
            for column in self.source_columns.of_side(name)
            if column != INPUT
        ]
        return pairs.select(*named.values(), *columns)


_ACCEPTS = "_strandline_accepts"
_FIRING = "_strandline_nth_with_records"
"""The number of a firing among all of its window, those without a pair too."""
_OWN = "_strandline_of_window_"
_NAMED = "_strandline_named"
_SUPERSEDED = "supersedes_windows"
_SIDE = "_strandline_side_"


def _of_those_told(told: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Firings that name those whose place they take: by their new numbers, if these told of pairs.

    Sessions alone do: an earlier firing under another start or end is one that they cover.
    """
    keys, firing = list(spec.source.key), [*window_key(spec), _FIRING]
    edges = ("window_start", "window_end")
    earlier = told.select(
        *keys,
        F.struct(*edges, F.col(_FIRING).alias("firing")).alias(_SUPERSEDED),
        F.struct(*edges, "firing").alias(_NAMED),
    )
    named = (
        told.select(*firing, F.explode(_SUPERSEDED).alias(_SUPERSEDED))
        .join(earlier, [*keys, _SUPERSEDED])
        .groupBy(*firing)
        .agg(F.array_sort(F.collect_list(_NAMED)).alias(_SUPERSEDED))
    )
    return told.drop(_SUPERSEDED).join(named, firing, "left")


def _of(name: str) -> Column:
    """The records of one side that a firing holds."""
    return F.filter(c.OF_FIRING, lambda record: record[INPUT] == name)
