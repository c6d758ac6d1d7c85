"""Records that were walked over, group by group in the workers: their fates, and the firings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from strandline.engine import columns as c
from strandline.engine.frames import computed
from strandline.engine.records.expressions import quoted
from strandline.engine.records.met import risen
from strandline.engine.walks import in_workers, walk
from strandline.engine.walks.in_workers import ADDED, POSITION, VALUE, walk_over
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Continuous, Count
from strandline.spec.window import Session, WindowOfAllTime

cloudpickle.register_pickle_by_value(walk)  # type: ignore[no-untyped-call]
cloudpickle.register_pickle_by_value(in_workers)  # type: ignore[no-untyped-call]


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
        newest_ms=evictor.reach_ms if isinstance(evictor, TimeEvictor) else None,
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
    needed = (*group, *POSITION, *risen(records), c.START, c.ARRIVAL, c.WATERMARK, VALUE)
    kept = dict.fromkeys([*needed, *used])
    rows = records.select(*(quoted(name) for name in kept))
    schema = T.StructType([*rows.schema.fields, *from_arrow_schema(ADDED).fields])

    def over_group(of_group: pa.Table) -> pa.Table:
        return walk_over(of_group, rules)

    return rows.groupBy(*group).applyInArrow(over_group, schema).transform(computed)
