"""Windows whose results a user's function computes: one call for each firing, in the workers.

Flink: `ProcessWindowFunction`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.frames import computed, union_by_name
from strandline.engine.records.expressions import quoted
from strandline.engine.replay import calls
from strandline.engine.replay.calls import Calls, call_partition
from strandline.engine.replay.dataframe import FIRST, UNTIL, position_of
from strandline.engine.replay.rebuild import IS_SHOWN, NUMBER, OverReplay
from strandline.engine.result_rows import fired_with
from strandline.errors import InputError
from strandline.spec import functions
from strandline.spec.pipeline import PipelineSpec

cloudpickle.register_pickle_by_value(functions)  # type: ignore[no-untyped-call]
cloudpickle.register_pickle_by_value(calls)  # type: ignore[no-untyped-call]

_RECORD, _FIRING = "_strandline_record", "_strandline_called_for"


@dataclass(frozen=True)
class ProcessFunctionRebuild(OverReplay):
    """A rebuild that passes the records of each firing to a function."""

    def windows(self) -> DataFrame:
        """The windows of `replay`, with the function's result for their last firing."""
        rows = self.replay.windows()
        last = self._returned.withColumnRenamed(NUMBER, "firings")
        both = rows.join(last, [*self._window, "firings"], "left")
        return both.select(*rows.columns, *self._spec.returns)

    def firings(self) -> DataFrame:
        """The firings, each with the function's result."""
        return self.replay.firings().join(self._returned, [*self._window, NUMBER])

    @cached_property
    def _returned(self) -> DataFrame:
        """The function's result for each reported firing, by `window_key` and NUMBER; computed."""
        spec, groups, order = self._spec, self.replay.groups, self._order
        both = self._records_and_firings()
        rows, group = groups.with_texts(groups.partitioned(both))
        calls = calls_of(spec, group, order)

        def over_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return call_partition(batches, calls)

        schema = T.StructType([both.schema[name] for name in (*c.keys_of(spec), _FIRING)])
        for name, kind in spec.returns.items():
            schema.add(name, T.DataType.fromDDL(kind))
        firing = F.col(_FIRING)
        called = rows.mapInArrow(over_partition, schema).select(
            F.timestamp_millis(firing["start_ms"]).alias("window_start"),
            F.timestamp_millis(firing["end_ms"]).alias("window_end"),
            *(F.col(c.key_column(name)).alias(name) for name in spec.source.key),
            firing["nth"].alias(NUMBER),
            *map(quoted, spec.returns),
        )
        return computed(called)

    @property
    def _order(self) -> tuple[str, ...]:
        return (*position_of(self._spec), c.RECORD_ID)

    def _records_and_firings(self) -> DataFrame:
        """The input rows of `Calls`: records, and the firings for which the function is called."""
        spec, replay = self._spec, self.replay
        record = F.struct(*map(quoted, self.source_columns.names)).alias(_RECORD)
        records = replay.replayed.select(*replay.group, *self._order, FIRST, UNTIL, record)
        fired = replay.fired
        reported = replay.reported(fired if spec.firings else fired.where(IS_SHOWN))
        firings = reported.select(*replay.group, _firing_struct().alias(_FIRING))
        return union_by_name(records, firings)


def _firing_struct() -> Column:
    """A firing of `ReplayedRebuild.reported` as `Calls.firing`, with its number in its window."""
    return F.struct(
        F.col(c.FIRING).alias("number"),
        F.col(NUMBER).alias("nth"),
        F.col(c.START).alias("start_ms"),
        F.col(c.END).alias("end_ms"),
        fired_with(),
    )


def calls_of(spec: PipelineSpec, group: tuple[str, ...], order: tuple[str, ...]) -> Calls:
    """The calls of a pipeline's function; `group` and `order`: see `Calls`.

    Raises:
        InputError: the source of the function's module is missing.
    """
    if spec.process is None or not spec.process.files:
        problem = "the source of the function's module is missing"
        raise InputError(f"{spec.pipeline}: process", problem, "load the pipeline from its file")
    return Calls(
        function=spec.process.name,
        files=dict(spec.process.files),
        returns=dict(spec.returns),
        keys={name: c.key_column(name) for name in spec.source.key},
        group=group,
        order=order,
        lifetime=(c.TS, FIRST, UNTIL),
        record=_RECORD,
        firing=_FIRING,
    )
