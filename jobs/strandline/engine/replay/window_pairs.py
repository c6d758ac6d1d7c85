"""Windows over two inputs whose firings contain pairs: each left record with each right one.

Flink: `JoinedStreams`, a co-group whose function loops over both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.aggregates import aggregate_columns
from strandline.engine.frames import computed, long, named
from strandline.engine.pairs.columns import id_of, of_side, refuse_names_in_use
from strandline.engine.records.expressions import quoted
from strandline.engine.records.identity import content_of, identity
from strandline.engine.replay.rebuild import NUMBER, OverReplay, contents
from strandline.engine.result_rows import last_firings, numbered, window_key
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT


@dataclass(frozen=True)
class WindowPairsRebuild(OverReplay):
    """A rebuild of windows whose results are pairs, on top of the replay of both sides' records."""

    def windows(self) -> DataFrame:
        """The windows, with the result of their last firing.

        `records` are its pairs, `firings` the firings with a pair.

        Raises:
            InputError: two columns of `pairs` would have one name.
        """
        refuse_names_in_use(self._spec, self._columns_of_sides, ("window_start", "window_end"))
        replayed = self.replay.windows().drop("records", "firings", "fired_at")
        both = replayed.join(self._last(), self._window, "left")
        none = long(0)
        return both.withColumns({name: F.coalesce(name, none) for name in ("records", "firings")})

    def _last(self) -> DataFrame:
        """The last firing of each window, with the number of firings and the time of the first."""
        spec, window = self._spec, self._window
        first_at = F.min("fired_at").over(Window.partitionBy(*window))
        last = last_firings(self._results.withColumn("fired_at", first_at), spec)
        firings = F.col("firing").alias("firings")
        return last.select(*window, *map(quoted, spec.aggregates), "records", "fired_at", firings)

    def firings(self) -> DataFrame:
        """The firings with a pair, each with the aggregates of its pairs."""
        return self._results.drop(_NTH, *self._which)

    def pairs(self, windows: DataFrame) -> DataFrame:
        """See `Rebuild`; a session that was merged into a longer one is not among the windows."""
        spec, window = self._spec, self._window
        results = (
            last_firings(self._results, spec)
            .join(windows, window, "left_semi")
            .select(*self._firing, *window, c.START, c.END)
        )
        record_id = identity(spec, self.source_columns)
        contained = self.replay.records_in(results).withColumn(c.RECORD_ID, record_id)
        pairs = _beside_each_other(contained, self._firing).join(results, self._firing)
        records = [F.col(side) for side in _SIDES.values()]
        pair_ts = F.timestamp_millis(F.greatest(*(record[c.TS] for record in records)))
        ids = {id_of(name): F.col(side)[c.RECORD_ID] for name, side in _SIDES.items()}
        equal = Window.partitionBy(*window, *ids.values()).orderBy(*self._among_equals)
        return pairs.select(
            pair_ts.alias("pair_ts"),
            F.to_date(pair_ts).alias("pair_date"),
            *map(quoted, window),
            *self._columns_of_a_pair,
            *named(ids),
            F.row_number().over(equal).cast("bigint").alias("pair"),
            F.lit(spec.spec_fingerprint).alias("spec_fingerprint"),
        )

    @property
    def _among_equals(self) -> list[Column]:
        """The order of pairs whose records have the same ids: by times, then by whole rows.

        If whole rows identify records, records with one id are equal.
        """
        if not self._spec.ids_of_sides:
            return [F.lit(0)]
        records = {name: F.col(side) for name, side in _SIDES.items()}
        times = [record[c.TS] for record in records.values()]
        columns = self._columns_of_sides
        source = self.source_columns
        rows = (content_of(record, columns[name], source) for name, record in records.items())
        return [*times, *rows]

    @property
    def _columns_of_sides(self) -> dict[str, dict[str, str]]:
        """The landing columns of each side, with their names in the table of both."""
        sides = {name: self.source_columns.of_side(name) for name in SIDES}
        return {
            name: {own: of_both for own, of_both in columns.items() if own != INPUT}
            for name, columns in sides.items()
        }

    @cached_property
    def _results(self) -> DataFrame:
        """The firings with a pair, with the aggregates of their pairs and `_which`; computed.

        `records` counts the pairs.
        """
        spec, firing = self._spec, self._firing
        fired = self.replay.fired
        records = self.replay.records_in(fired)
        pairs = _beside_each_other(records, firing).select(*firing, *self._columns_of_a_pair)
        aggregates = aggregate_columns(pairs, spec)
        results = self.replay.reported(fired).join(contents(pairs, firing, aggregates), firing)
        rows = self.replay.firing_rows(results, *self._which, *aggregates)
        return computed(_numbered_again(rows.withColumnRenamed(NUMBER, _NTH), spec))

    @property
    def _firing(self) -> list[str]:
        """The columns that identify a firing of the replay."""
        return [*self.replay.group, c.FIRING]

    @property
    def _which(self) -> list[str]:
        """The columns of a firing of the replay, with the start and end of its window."""
        return [*self._firing, c.START, c.END]

    @property
    def _columns_of_a_pair(self) -> list[Column]:
        """The landing columns of both records, prefixed by side."""
        return [
            F.col(_SIDES[name])[of_both].alias(of_side(name, own))
            for name, columns in self._columns_of_sides.items()
            for own, of_both in columns.items()
        ]


_NTH = "_strandline_nth_with_records"
"""The number of a firing in its window, counting also firings without a pair."""
_NAMED = "_strandline_named"
_SUPERSEDED = "supersedes_windows"
_SIDES = {name: f"_strandline_side_{name}" for name in SIDES}
"""The record of each side of a pair."""


def _numbered_again(results: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Firings with a pair, numbered without the firings that have none.

    The columns with superseded firings get the same numbers. A firing has all pairs of an earlier
    firing with a pair if and only if it has all of its records. So it supersedes the firings that
    it supersedes as a co-group.
    """
    before = F.lag(_NTH).over(Window.partitionBy(*window_key(spec)).orderBy(_NTH))
    replaced = F.when(F.col("supersedes") == before, F.col("firing") - 1)
    results = numbered(results, [_NTH], spec).withColumn("supersedes", replaced)
    if _SUPERSEDED not in results.columns:
        return results
    keys, firing = list(spec.source.key), [*window_key(spec), _NTH]
    edges = ("window_start", "window_end")
    earlier = results.select(
        *keys,
        F.struct(*edges, F.col(_NTH).alias("firing")).alias(_SUPERSEDED),
        F.struct(*edges, "firing").alias(_NAMED),
    )
    named = (
        results.select(*firing, F.explode(_SUPERSEDED).alias(_SUPERSEDED))
        .join(earlier, [*keys, _SUPERSEDED])
        .groupBy(*firing)
        .agg(F.array_sort(F.collect_list(_NAMED)).alias(_SUPERSEDED))
    )
    return results.drop(_SUPERSEDED).join(named, firing, "left")


def _beside_each_other(records: DataFrame, firing: list[str]) -> DataFrame:
    """Each left record of a firing with each right one: the columns of the firing, `_SIDES`.

    Args:
        records: records, once for each firing that contains them.
        firing: the columns that identify a firing.
    """
    left, right = (
        records.where(F.col(INPUT) == name).select(*firing, F.struct("*").alias(side))
        for name, side in _SIDES.items()
    )
    return left.join(right, firing)
