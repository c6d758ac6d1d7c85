"""Records that were walked over, group by group in the workers: their fates, and the firings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from strandline.engine import columns as c
from strandline.engine.frames import computed
from strandline.engine.records.expressions import quoted
from strandline.engine.records.met import risen
from strandline.engine.walks import walk
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Continuous, Count
from strandline.spec.window import Session, WindowOfAllTime

IN_START = "_strandline_in_start_ms"
"""Where the window begins that took a record."""
IN_END = "_strandline_in_end_ms"
LATE = "_strandline_late"
"""Whether the watermark had reached the window's end, as a record came or a firing happened."""
FOUND_BY = "_strandline_found_by"
"""The number of the first firing that found a record in its window; null: there is none."""
TOLD_BY = "_strandline_told_by"
"""The numbers of the firings that tell a record."""
GONE_BY = "_strandline_gone_by"
"""The number of the firing that takes a record out of its window; null: none does."""
CAUSES = "_strandline_causes"
"""The firings that a record causes, or that the watermark does between it and the next one."""
TIME = "_strandline_time_ms"
"""The time that a firing was waiting for; null: a record causes it."""
REACHES = "_strandline_reaches_ms"
"""What the watermark must reach for a firing; null: a record causes it."""
SUPERSEDES = "_strandline_supersedes"
"""The numbers of the firings whose place one takes."""
VALUE = "_strandline_evictor_value"
_POSITION = (c.INSTANT, c.SEQUENCE, c.TS, c.END, c.RECORD_ID)
_LONGS = pa.list_(pa.int64())
_CAUSE = pa.struct(
    [
        (c.FIRING, pa.int64()),
        (c.START, pa.int64()),
        (c.END, pa.int64()),
        (TIME, pa.int64()),
        (REACHES, pa.int64()),
        (LATE, pa.bool_()),
        (SUPERSEDES, _LONGS),
    ]
)
_ADDED = pa.schema(
    [
        (IN_START, pa.int64()),
        (IN_END, pa.int64()),
        (LATE, pa.bool_()),
        (FOUND_BY, pa.int64()),
        (TOLD_BY, _LONGS),
        (GONE_BY, pa.int64()),
        (CAUSES, pa.list_(_CAUSE)),
    ]
)

cloudpickle.register_pickle_by_value(walk)  # type: ignore[no-untyped-call]


def needs_a_walk(spec: PipelineSpec) -> bool:
    """Whether only a walk over records and rises of the watermark tells the firings of windows.

    Of sessions it does that fire early, or are emptied by their evictor and stay in flight; of
    others that fire at times, and never end or let records go by their order.
    """
    evictor = spec.evicts_by
    if isinstance(spec.window, Session):
        evicts_all = isinstance(evictor, TimeEvictor) and evictor.time == 0
        return spec.fires_by.fires_early or evicts_all
    return spec.fires_at_times and (spec.goes_by_order or isinstance(spec.window, WindowOfAllTime))


def rules_of(spec: PipelineSpec, until_ms: int | None = None) -> walk.Rules:
    """The trigger and the evictor of a pipeline, as a walk goes by them; see `Rules.until_ms`."""
    trigger, evictor = spec.fires_by, spec.evicts_by
    return walk.Rules(
        at_end=trigger.fires_at_end,
        interval_ms=trigger.continuous if isinstance(trigger, Continuous) else None,
        count=trigger.count if isinstance(trigger, Count) else None,
        purging=trigger.purging,
        last=evictor.count if isinstance(evictor, CountEvictor) else None,
        newest_ms=evictor.time if isinstance(evictor, TimeEvictor) else None,
        near=evictor.delta if isinstance(evictor, DeltaEvictor) else None,
        after=evictor is not None and evictor.after,
        until_ms=until_ms,
    )


def walked(
    records: DataFrame, group: Sequence[str], rules: walk.Rules, used: Iterable[str]
) -> DataFrame:
    """The records with what becomes of them, and with the firings; at hand.

    Args:
        records: the accepted ones, with START and END of the window of each alone, the WATERMARK
            that it met, its VALUE for the evictor, and its RECORD_ID.
        group: what the records of one walk have in common.
        rules: of `rules_of`.
        used: what else is kept of the records, as the columns that aggregates read.
    """
    needed = (*group, *_POSITION, *risen(records), c.START, c.ARRIVAL, c.WATERMARK, VALUE)
    kept = dict.fromkeys([*needed, *used])
    rows = records.select(*(quoted(name) for name in kept))
    schema = T.StructType([*rows.schema.fields, *from_arrow_schema(_ADDED).fields])
    over_group = _over_group(rules)
    return rows.groupBy(*group).applyInArrow(over_group, schema).transform(computed)


def _over_group(rules: walk.Rules) -> Callable[[pa.Table], pa.Table]:
    """What `applyInArrow` calls with the records of each group."""
    added_columns, causes = _ADDED, CAUSES
    order = [(name, "ascending") for name in _POSITION]
    of_records = (c.START, c.END, c.TS, c.WATERMARK, VALUE)
    of_fate = {
        IN_START: "start_ms",
        IN_END: "end_ms",
        LATE: "late",
        FOUND_BY: "found_by",
        TOLD_BY: "told_by",
        GONE_BY: "gone_by",
    }
    of_cause = {
        c.FIRING: "number",
        c.START: "start_ms",
        c.END: "end_ms",
        TIME: "time_ms",
        REACHES: "reaches_ms",
        LATE: "late",
        SUPERSEDES: "supersedes",
    }

    def over_group(group: pa.Table) -> pa.Table:
        ordered = group.sort_by(order)

        def column(name: str) -> list[Any]:
            values: list[Any] = ordered[name].to_pylist()
            return values

        done = walk.Walk(walk.Records(*map(column, of_records)), rules)
        caused: list[list[dict[str, Any]]] = [[] for _ in done.fates]
        for firing in done.firings:
            told = {name: getattr(firing, attribute) for name, attribute in of_cause.items()}
            caused[firing.after].append(told)
        added: dict[str, list[Any]] = {
            name: [getattr(fate, attribute) for fate in done.fates]
            for name, attribute in of_fate.items()
        }
        added[causes] = caused
        for column_of in added_columns:
            values = pa.array(added[column_of.name], column_of.type)
            ordered = ordered.append_column(column_of, values)
        return ordered

    return over_group
