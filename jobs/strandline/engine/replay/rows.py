"""Records that are replayed group by group, in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from strandline.engine import columns as c
from strandline.engine.records.expressions import quoted, require, typed
from strandline.engine.records.met import risen
from strandline.engine.replay import in_workers, plain, windows
from strandline.engine.replay.in_workers import TYPES, Names, replay_partition
from strandline.engine.replay.rules import rules_of
from strandline.spec.evictor import DeltaEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Delta

cloudpickle.register_pickle_by_value(plain)  # type: ignore[no-untyped-call]
cloudpickle.register_pickle_by_value(windows)  # type: ignore[no-untyped-call]
cloudpickle.register_pickle_by_value(in_workers)  # type: ignore[no-untyped-call]

_ADDED = {name: f"_strandline_replay_{name}" for name in TYPES}
IN_START, IN_END, LATE, FIRST, UNTIL, IS_HELD, IS_UNFIRED, SHOWN_IN, FIRINGS = _ADDED.values()
"""See `in_workers.TYPES`."""
TRIGGER_VALUE = "_strandline_trigger_value"
EVICTOR_VALUE = "_strandline_evictor_value"
UNTIL_MS = "_strandline_until_ms"
"""How far the watermark comes for the group of a record; null: beyond all times."""
POSITION = (c.INSTANT, c.SEQUENCE, c.TS, c.END, c.RECORD_ID)
"""The order of the records of a group."""
_OF_RECORDS = (c.START, c.END, c.TS, c.WATERMARK, TRIGGER_VALUE, EVICTOR_VALUE)
_ROWS_OF_A_WORKER = 400_000
"""So many records at once, roughly, are sorted and replayed by a worker."""


@dataclass(frozen=True)
class Groups:
    """Records as groups to be replayed.

    Attributes:
        by: the columns that tell a group from every other one.
        records: about how many records there are, once for each of their windows.
    """

    by: Sequence[str]
    records: int

    def together(self, rows: DataFrame) -> DataFrame:
        """The rows, all of a group in one partition, which a worker can hold."""
        return rows.repartition(1 + self.records // _ROWS_OF_A_WORKER, *self.by)


def replayed(
    records: DataFrame, groups: Groups, spec: PipelineSpec, used: Iterable[str]
) -> DataFrame:
    """The records with the outcome of their replay, the columns of `in_workers.TYPES`.

    Args:
        records: the accepted ones, with START and END of the window of each alone, the WATERMARK at
            its arrival, UNTIL_MS, the values of `values_of`, and RECORD_ID.
        groups: the groups that they form.
        spec: the pipeline.
        used: what else is kept of the records, as the columns that aggregates read.
    """
    needed = (*groups.by, *POSITION, *risen(spec), *_OF_RECORDS, UNTIL_MS, c.ARRIVAL)
    kept = dict.fromkeys([*needed, c.ARRIVAL_DAY, *used])
    rows = records.select(*(quoted(name) for name in kept))
    names = Names(
        group=tuple(groups.by),
        order=POSITION,
        records=_OF_RECORDS,
        until_ms=UNTIL_MS,
        added=tuple(_ADDED.values()),
        compared=tuple(_compared(spec)),
    )
    added = pa.schema([(_ADDED[name], kind) for name, kind in TYPES.items()])
    schema = T.StructType([*rows.schema.fields, *from_arrow_schema(added).fields])

    rules = rules_of(spec)

    def over_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_partition(batches, names, rules)

    return groups.together(rows).mapInArrow(over_partition, schema)


def _rules_with_values(spec: PipelineSpec) -> Iterator[tuple[str, str, str | None]]:
    """The trigger and the evictor: the column of their values, their place, their expression."""
    rules = (TRIGGER_VALUE, "trigger", spec.fires_by), (EVICTOR_VALUE, "evictor", spec.evicts_by)
    for column, part, rule in rules:
        yield column, f"{part}.of", rule.of if isinstance(rule, Delta | DeltaEvictor) else None


def _compared(spec: PipelineSpec) -> Iterator[tuple[str, str]]:
    for column, place, text in _rules_with_values(spec):
        if text is not None:
            yield column, f"{place}: {text} is null for a record"


def values_of(records: DataFrame, spec: PipelineSpec) -> dict[str, Column]:
    """The values that the trigger and the evictor compare, as columns; null: they compare none.

    Raises:
        InputError: one is no number.
    """
    return {
        column: F.lit(None).cast("double") if text is None else _number(records, spec, place, text)
        for column, place, text in _rules_with_values(spec)
    }


def _number(records: DataFrame, spec: PipelineSpec, place: str, text: str) -> Column:
    value, found = typed(records, text, f"{spec.pipeline}: {place}")
    require("number", text, found, f"{spec.pipeline}: {place}")
    return value.cast("double")
