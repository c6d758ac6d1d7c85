"""The replay of a DataFrame of records: group by group and in order, in workers of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from strandline.engine import columns as c
from strandline.engine.frames import all_of
from strandline.engine.records.expressions import NESTED, column_and_type, quoted, require_type
from strandline.engine.replay import (
    added_columns,
    in_flight,
    in_workers,
    operator_io,
    window_operator,
)
from strandline.engine.replay.added_columns import ADDED, types_of
from strandline.engine.replay.in_workers import Names, replay_partition
from strandline.engine.replay.operator_io import EndedRange, Rules
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.runnable import MOST_TIMES
from strandline.spec.trigger import Continuous, Count, Delta

for _shipped in (added_columns, operator_io, in_flight, window_operator, in_workers):
    cloudpickle.register_pickle_by_value(_shipped)  # type: ignore[no-untyped-call]

IN_START, IN_END, LATE, FIRST, UNTIL, IS_IN_STATE, IS_UNFIRED, IS_SHOWN, SHOWN_IN, FIRINGS = (
    f"{ADDED}{name}"
    for name in (
        *("in_start_ms", "in_end_ms", "late", "first", "until", "is_in_state", "is_unfired"),
        *("is_shown", "shown_in", "firings"),
    )
)
IS_REFUSED, SESSION, IN_STATE_AS, IN_STATE = (
    f"{ADDED}{name}" for name in ("is_refused", "session", "in_state_as", "in_state")
)
"""See `added_columns.types_of`."""
TRIGGER_VALUE = "_strandline_trigger_value"
EVICTOR_VALUE = "_strandline_evictor_value"
UNTIL_MS = "_strandline_until_ms"
"""The watermark, in ms, at which the replay of a record's group ends; null: MAX_WATERMARK."""
_ROWS_OF_A_WORKER = 400_000
"""The number of rows, roughly, that a worker sorts and replays at once."""


def rules_of(spec: PipelineSpec, closures: Iterable[EndedRange] = ()) -> Rules:
    """The rules of a pipeline's windows; `closures`: see `Rules`."""
    trigger, evictor = spec.fires_by, spec.evicts_by
    return Rules(
        at_end=trigger.fires_at_end,
        interval_ms=trigger.continuous if isinstance(trigger, Continuous) else None,
        count=trigger.count if isinstance(trigger, Count) else None,
        delta=trigger.delta if isinstance(trigger, Delta) else None,
        purging=trigger.purging,
        last=evictor.count if isinstance(evictor, CountEvictor) else None,
        newest_ms=evictor.reach_ms if isinstance(evictor, TimeEvictor) else None,
        near=evictor.delta if isinstance(evictor, DeltaEvictor) else None,
        after=evictor is not None and evictor.after,
        merging=spec.window.merging,
        allowed_lateness_ms=spec.allowed_lateness if spec.window.merging else 0,
        closures=tuple(closures),
    )


@dataclass(frozen=True)
class Groups:
    """The grouping of records for a replay.

    Attributes:
        by: the columns that identify a group.
        order: the columns that order the records of a group; equal ones are ordered by identity.
        records: the estimated number of pairs of a record and one of its windows.
    """

    by: Sequence[str]
    order: Sequence[str]
    records: int

    def partitioned(self, rows: DataFrame) -> DataFrame:
        """The rows partitioned by group, into partitions that fit a worker."""
        return rows.repartition(1 + self.records // _ROWS_OF_A_WORKER, *self.by)

    def with_texts(self, rows: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows, and the columns that identify their groups in a worker.

        Arrow cannot sort by a nested column, so its JSON is added.
        """
        nested = {field.name for field in rows.schema.fields if isinstance(field.dataType, NESTED)}
        texts = {name: f"{ADDED}text_of_{name}" for name in self.by if name in nested}
        for name, text in texts.items():
            as_json = F.to_json(F.struct(quoted(name)), {"ignoreNullFields": "false"})
            rows = rows.withColumn(text, as_json)
        return rows, tuple(texts.get(name, name) for name in self.by)


def replayed(
    records: DataFrame,
    groups: Groups,
    spec: PipelineSpec,
    rules: Rules,
    identity: Column | None,
    used: Iterable[str],
    identifying: Iterable[str] = (),
) -> DataFrame:
    """The records with the outcome of their replay: the columns of `added_columns.types_of`.

    RECORD_ID is set for records that cause a firing or share their position with another record.

    Args:
        records: the records, each with START and END of its own window (before any merge), the
            WATERMARK at arrival, UNTIL_MS, and the values of `values_of`.
        groups: the grouping of the records.
        spec: the pipeline.
        rules: the trigger and the evictor.
        identity: orders records of one position; None: no two records have one.
        used: further columns to keep, such as the columns that aggregates read.
        identifying: further columns that `identity` reads.
    """
    position = groups.order
    kept = [*groups.by, *position, *used]
    read = [*filter(None, _columns_of(rules)), UNTIL_MS]
    rows = records.select(*map(quoted, dict.fromkeys([*kept, *read, *identifying])))
    rows = _in_order(groups.partitioned(rows), groups.by, position, identity)
    # computed once, since mapInArrow reads the columns of the same rows again
    rows, group = groups.with_texts(rows)
    added = pa.schema([(f"{ADDED}{name}", kind) for name, kind in types_of(rules).items()])
    schema = T.StructType([*rows.schema.fields, *from_arrow_schema(added).fields])
    names = Names(
        group=group,
        order=(*position, c.RECORD_ID),
        records=tuple(_columns_of(rules)),
        until_ms=UNTIL_MS,
        compared=tuple(_compared(spec)),
        longest_ms=_longest_ms(spec),
    )

    def over_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_partition(batches, names, rules)

    done = rows.mapInArrow(over_partition, schema)
    if identity is not None:
        is_cause = F.when(F.size(FIRINGS) > 0, identity)
        done = done.withColumn(c.RECORD_ID, F.coalesce(c.RECORD_ID, is_cause))
    return done.select(*map(quoted, dict.fromkeys([*kept, *added.names, c.RECORD_ID])))


def _columns_of(rules: Rules) -> list[str | None]:
    """The columns for the fields of `Records`, in that order; None: the rules read none."""
    return [
        c.START,
        c.END,
        c.TS if rules.reads_ts else None,
        c.WATERMARK,
        TRIGGER_VALUE if rules.delta is not None else None,
        EVICTOR_VALUE if rules.near is not None else None,
        c.ERA if rules.closures else None,
    ]


def _in_order(
    rows: DataFrame, group: Sequence[str], position: Sequence[str], identity: Column | None
) -> DataFrame:
    """The rows ordered by group and position; rows that may be tied have their RECORD_ID.

    Hashing every record would cost more than everything else.
    """
    if identity is None:
        by_position = rows.sortWithinPartitions(*group, *position)
        return by_position.withColumn(c.RECORD_ID, F.lit(None).cast("string"))
    tied = rows.withColumn(c.RECORD_ID, _is_tied(group, position))
    return tied.withColumn(c.RECORD_ID, F.when(F.col(c.RECORD_ID), identity))


def _is_tied(group: Sequence[str], position: Sequence[str]) -> Column:
    """Whether another record of the group may have the same position.

    The neighbours in order are compared with a window function, which keeps a group in a partition.
    """
    in_order = Window.partitionBy(*group).orderBy(*position)
    instant = [name for name in position if name in {c.INSTANT, c.SEQUENCE}]
    return reduce(
        Column.__or__,
        (
            all_of(F.col(name).eqNullSafe(of(name).over(in_order)) for name in instant)
            for of in (F.lag, F.lead)
        ),
    )


def position_of(spec: PipelineSpec) -> list[str]:
    """The columns that order the records of a group, without the identity that breaks ties.

    A sequence that no record has is left out: engines drop a constant column from a sort, and would
    sort again for a plan that names it.
    """
    has_sequence = spec.source.sequence is not None or spec.reads_results_of is not None
    own_end = [c.END] if spec.window.merging else []
    return [c.INSTANT, *([c.SEQUENCE] if has_sequence else []), c.TS, *own_end]


def _rules_with_values(spec: PipelineSpec) -> Iterator[tuple[str, str, str | None]]:
    """The value columns of the trigger and the evictor: column, place in the file, expression."""
    rules = (TRIGGER_VALUE, "trigger", spec.fires_by), (EVICTOR_VALUE, "evictor", spec.evicts_by)
    for column, part, rule in rules:
        yield column, f"{part}.of", rule.of if isinstance(rule, Delta | DeltaEvictor) else None


def _compared(spec: PipelineSpec) -> Iterator[tuple[str, str]]:
    for column, place, text in _rules_with_values(spec):
        if text is not None:
            yield column, f"{place}: {text} is null for a record"


def _longest_ms(spec: PipelineSpec) -> tuple[int, str] | None:
    """See `Names`; gaps that the pipeline's file gives are checked by `spec.runnable`."""
    trigger, gap = spec.fires_by, spec.window.gap_of_record
    if gap is None or not isinstance(trigger, Continuous):
        return None
    problem = (
        f"window.session: {gap} gives a record so long a gap that its session could fire more than "
        f"{MOST_TIMES:,} times before its end, by trigger.continuous"
    )
    return MOST_TIMES * trigger.continuous, problem


def values_of(records: DataFrame, spec: PipelineSpec) -> dict[str, Column]:
    """The values that the trigger and the evictor compare, as columns; null: they read none.

    Raises:
        InputError: a value is not a number.
    """
    return {
        column: F.lit(None).cast("double") if text is None else _number(records, spec, place, text)
        for column, place, text in _rules_with_values(spec)
    }


def _number(records: DataFrame, spec: PipelineSpec, place: str, text: str) -> Column:
    value, found = column_and_type(records, text, f"{spec.pipeline}: {place}")
    require_type("number", text, found, f"{spec.pipeline}: {place}")
    return value.cast("double")
