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
from strandline.engine.frames import PerIdentity, computed, long
from strandline.engine.pairs.of_range import refuse_names_in_use
from strandline.engine.pairs.rebuild import of_side
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import content_of, identity
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

    def require_names(self) -> None:
        """Refuse landing columns that have no name of their own among the columns of `pairs`.

        Raises:
            InputError: two of these would have one name.
        """
        of_window = ("window_start", "window_end")
        refuse_names_in_use(self.history.spec, self._columns_of_sides, of_window)

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
        none = long(0)
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
        return self._told(identity).drop(_FIRING)

    def pairs(self, windows: DataFrame) -> DataFrame:
        """The pairs that the last firing of each of some windows told, as rows of `pairs`.

        Args:
            windows: rows that tell these windows; a session that a later one covers is none.
        """
        spec, window = self.history.spec, window_key(self.history.spec)
        by = identity(spec, self.source_columns)
        last = last_firings(self._told(by), spec).select(*window, _FIRING)
        last = last.join(windows, window, "left_semi")
        named = _named(window)
        pairs = _beside_each_other(self._with_records(by).join(last, [*window, _FIRING]), named)
        records = [F.col(side) for side in _SIDES.values()]
        pair_ts = F.timestamp_millis(F.greatest(*(record[c.TS] for record in records)))
        ids = {f"{name}_record_id": F.col(side)[c.RECORD_ID] for name, side in _SIDES.items()}
        equal = Window.partitionBy(*named.values(), *ids.values()).orderBy(*self._among_equals)
        return pairs.select(
            pair_ts.alias("pair_ts"),
            F.to_date(pair_ts).alias("pair_date"),
            *(F.col(own).alias(name) for name, own in named.items()),
            *self._columns_of_a_pair,
            *(id_.alias(name) for name, id_ in ids.items()),
            F.row_number().over(equal).cast("bigint").alias("pair"),
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        )

    @property
    def _among_equals(self) -> list[Column]:
        """What pairs whose records have the same ids go by: their times, and then whole rows.

        Where whole rows identify records, those of one id are equal in all.
        """
        if not self.history.spec.ids_of_sides:
            return [F.lit(0)]
        records = {name: F.col(side) for name, side in _SIDES.items()}
        times = [record[c.TS] for record in records.values()]
        columns = self._columns_of_sides
        source = self.source_columns
        rows = (content_of(record, columns[name], source) for name, record in records.items())
        return [*times, *rows]

    @property
    def _columns_of_sides(self) -> dict[str, dict[str, str]]:
        """The landing columns of each side, with their names among those of both."""
        sides = {name: self.source_columns.of_side(name) for name in SIDES}
        return {
            name: {own: of_both for own, of_both in columns.items() if own != INPUT}
            for name, columns in sides.items()
        }

    @cached_property
    def _with_records(self) -> PerIdentity:
        """The firings of the windows with the records of both sides, once."""
        return PerIdentity(
            lambda by: (
                self.of_records.firings(by).withColumnRenamed("firing", _FIRING).transform(computed)
            )
        )

    @cached_property
    def _told(self) -> PerIdentity:
        """The firings that told of a pair, with _FIRING, once."""
        return PerIdentity(self._tell)

    def _tell(self, identity: Column) -> DataFrame:
        spec, rows = self.history.spec, self._with_records(identity)
        firing = [*window_key(spec), _FIRING]
        kept = rows.drop(c.OF_FIRING, "records").join(self._contents(rows, firing), firing)
        told = numbered(kept, [_FIRING], spec)
        if _SUPERSEDED in told.columns:
            told = _of_those_told(told, spec)
        return told.transform(computed)

    def _contents(self, rows: DataFrame, firing: Sequence[str]) -> DataFrame:
        """What is counted of the pairs of each firing that has some; `records` are the pairs."""
        named = _named(firing)
        pairs = _beside_each_other(rows, named).select(*named.values(), *self._columns_of_a_pair)
        aggregates = aggregate_columns(pairs, self.history.spec)
        counted = pairs.groupBy(*named.values()).agg(
            *(column.alias(name) for name, column in aggregates.items()),
            F.count(F.lit(1)).alias("records"),
        )
        return counted.withColumnsRenamed({own: name for name, own in named.items()})

    @property
    def _columns_of_a_pair(self) -> list[Column]:
        """The landing columns of both records, under their side's name."""
        return [
            F.col(_SIDES[name])[of_both].alias(of_side(name, own))
            for name, columns in self._columns_of_sides.items()
            for own, of_both in columns.items()
        ]


_ACCEPTS = "_strandline_accepts"
_FIRING = "_strandline_nth_with_records"
"""The number of a firing among all of its window, those without a pair too."""
_OWN = "_strandline_of_window_"
_NAMED = "_strandline_named"
_SUPERSEDED = "supersedes_windows"
_SIDES = {name: f"_strandline_side_{name}" for name in SIDES}
"""The record of each side of a pair."""


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


def _named(columns: Sequence[str]) -> dict[str, str]:
    """Names for a firing's own columns beside those of its records: none of a table has them."""
    return {name: f"{_OWN}{number}" for number, name in enumerate(columns)}


def _beside_each_other(rows: DataFrame, named: Mapping[str, str]) -> DataFrame:
    """Each left record of a firing beside each right one: the columns `named`, and `_SIDES`."""

    def of_side(name: str) -> Column:
        return F.filter(c.OF_FIRING, lambda record: record[INPUT] == name)

    pairs = rows.select(
        *(quoted(name).alias(own) for name, own in named.items()),
        *(of_side(name).alias(side) for name, side in _SIDES.items()),
    )
    for side in _SIDES.values():
        pairs = pairs.withColumn(side, F.explode(side))
    return pairs
