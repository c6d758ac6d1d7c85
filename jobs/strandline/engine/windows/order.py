"""What the order of its records makes of a window: when it fires, and which firings hold which.

A record is held by neighbouring firings, from the first one after it came until it is let go. With
these two numbers what a firing holds is a set again.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import WindowSpec

from strandline.engine import columns as c
from strandline.engine.columns import keys_of
from strandline.engine.records.expressions import quoted, require, typed
from strandline.engine.windows import walk
from strandline.engine.windows.assign import fires_at_once
from strandline.spec.chained import ResultsSpec
from strandline.spec.evictor import CountEvictor, DeltaEvictor, TimeEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Count, Delta, Never

FIRES = "_strandline_fires"
"""Whether the window fires right after the record."""
FIRST = "_strandline_first_firing"
"""The number, from 1, of the first firing after the record came."""
UNTIL = "_strandline_until_firing"
"""The number of the first firing that does not hold it any more; `STILL_HELD`: it is held on."""
FIRINGS = "_strandline_firings"
"""How often the window has fired."""
_NTH = "_strandline_nth"
"""The place of a record among those that the window accepted, from 1."""
_ALL = "_strandline_all"
_LATE = "_strandline_late"
_FIRED = "_strandline_fired"
_TRIGGER_VALUE = "_strandline_trigger_value"
_EVICTOR_VALUE = "_strandline_evictor_value"
_MOST_AHEAD = 2**31 - 1
"""Further ahead than this no frame of a window function reaches; nor does Spark hold so many."""
_POSITION = (c.INSTANT, c.SEQUENCE, c.TS)
"""The order of the records of a window; what identifies them orders those of equal position."""
_AMONG_EQUALS = "_strandline_among_equals"
"""What identifies a record, for a walk."""
_NEEDED = (*_POSITION, _AMONG_EQUALS, c.RISE, c.WINDOW, c.ARRIVAL, c.ARRIVAL_DAY)
"""What is asked of a record later on, beside its key and what its aggregates read."""

cloudpickle.register_pickle_by_value(walk)  # type: ignore[no-untyped-call]


def needs_a_walk(spec: PipelineSpec) -> bool:
    """Whether only a walk over the records tells it, and no function of their places."""
    evictor = spec.evicts_by
    return isinstance(spec.fires_by, Delta) or isinstance(evictor, DeltaEvictor | TimeEvictor)


def in_order(
    accepted: DataFrame, spec: PipelineSpec, identity: Column, used: Iterable[str]
) -> DataFrame:
    """The accepted records with FIRES, FIRST, UNTIL and FIRINGS of their window.

    Those that fire it have their RECORD_ID, too.

    Args:
        accepted: the records, once for each window that took them, with its FIRE_FROM and FIRE_AT.
        spec: the pipeline.
        identity: orders records of equal position.
        used: the columns that its aggregates read; no other one of the landing table's is kept.

    Raises:
        InputError: a trigger or an evictor goes by what is no number.
    """
    window = [*keys_of(spec), c.WINDOW]
    if not needs_a_walk(spec):
        return _by_place(accepted, spec, identity)
    kept = dict.fromkeys([*keys_of(spec), *_NEEDED, c.NEWEST_WINDOW, c.FIRE_FROM, c.FIRE_AT, *used])
    values = {
        _TRIGGER_VALUE: value_of(accepted, spec, "trigger"),
        _EVICTOR_VALUE: value_of(accepted, spec, "evictor"),
        _LATE: fires_at_once(),
        _FIRED: F.col(c.FIRE_AT).isNotNull(),
    }
    rows = accepted.withColumns(values).withColumn(_AMONG_EQUALS, identity)
    rows = rows.select(*(quoted(name) for name in [*kept, *values] if name in rows.columns))
    names = walk.Names(
        order=(*_POSITION, _AMONG_EQUALS),
        late=_LATE,
        ts_ms=c.TS,
        trigger_value=_TRIGGER_VALUE,
        evictor_value=_EVICTOR_VALUE,
        fired=_FIRED,
        fires=FIRES,
        first=FIRST,
        until=UNTIL,
        firings=FIRINGS,
    )
    schema = T.StructType([*rows.schema.fields])
    schema.add(FIRES, T.BooleanType())
    for name in (FIRST, UNTIL, FIRINGS):
        schema.add(name, T.LongType())
    over_group = walk.walk_over_groups(rules_of(spec), names)
    told = rows.groupBy(*window).applyInArrow(over_group, schema).drop(*values)
    return told.withColumn(c.RECORD_ID, F.col(_AMONG_EQUALS))


def rules_of(spec: PipelineSpec) -> walk.Rules:
    """The trigger and the evictor of a pipeline, as a walk goes by them."""
    trigger, evictor = spec.fires_by, spec.evicts_by
    return walk.Rules(
        count=trigger.count if isinstance(trigger, Count) else None,
        delta=trigger.delta if isinstance(trigger, Delta) else None,
        never=isinstance(trigger, Never),
        purging=trigger.purging,
        last=evictor.count if isinstance(evictor, CountEvictor) else None,
        newest_ms=evictor.reach_ms if isinstance(evictor, TimeEvictor) else None,
        near=evictor.delta if isinstance(evictor, DeltaEvictor) else None,
        after=evictor is not None and evictor.after,
    )


def in_places(rows: DataFrame, spec: PipelineSpec) -> WindowSpec:
    """Each window of a key, its records in the order of those that `in_order` gives by place."""
    return Window.partitionBy(*_apart_by(rows, spec)).orderBy(*position_of(spec))


def position_of(spec: PipelineSpec) -> list[str]:
    """The columns that order the records of a window.

    What is the same for all is none of them: Spark leaves such a column out of a sort, and window
    functions that name it sort again.
    """
    has_sequence = spec.source.sequence is not None or isinstance(spec, ResultsSpec)
    return [name for name in _POSITION if has_sequence or name != c.SEQUENCE]


def _apart_by(rows: DataFrame, spec: PipelineSpec) -> list[str]:
    """The columns that tell windows of keys apart; none that is the same for all."""
    nothing = rows.sparkSession.range(0).select()

    def is_constant(text: str) -> bool:
        try:
            _ = nothing.select(F.expr(text)).schema
        except AnalysisException:
            return False  # it reads a column
        return True

    keys = (c.key_column(name) for name, text in spec.source.key.items() if not is_constant(text))
    return [*keys, c.WINDOW]


def sorted_by_place(accepted: DataFrame, spec: PipelineSpec, identity: Column) -> DataFrame:
    """The accepted records, all of a window of a key in one partition, in their order.

    They stay so: window functions (`in_places`) whose order that of the sort begins with take the
    rows as they lie. A hash of every record would cost more than all else, and in a column each has
    one. The sort asks for it where it compares two of one position.

    Args:
        accepted: the records, once for each window that took them.
        spec: the pipeline.
        identity: orders records of equal position.
    """
    apart = _apart_by(accepted, spec)
    position = [*apart, *position_of(spec)]
    return accepted.repartition(*apart).sortWithinPartitions(*position, identity)


def _by_place(accepted: DataFrame, spec: PipelineSpec, identity: Column) -> DataFrame:
    """The same by window functions: count triggers and evictors ask for places alone."""
    rows = sorted_by_place(accepted, spec, identity)
    in_window = in_places(rows, spec)
    whole = in_window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    places = {
        _NTH: F.row_number().over(in_window).cast("bigint"),
        _ALL: F.count(F.lit(1)).over(whole),
    }
    numbered = rows.withColumns(places).withColumn(FIRES, _fires(spec, in_window))
    told = numbered.withColumns(
        {
            FIRST: _fired_up_to(-1, spec, in_window) + 1,
            FIRINGS: _fired_up_to(None, spec, in_window),
        }
    )
    return (
        told.withColumn(UNTIL, _until(spec, in_window))
        .withColumn(c.RECORD_ID, F.when(F.col(FIRES), identity))
        .drop(*places)
    )


def fires_at(place: Column, trigger: Count) -> Column:
    """FIRES, by the place of a record among those that its window accepted, from 1."""
    return F.pmod(place, F.lit(trigger.count)) == 0


def first_firing_at(place: Column, trigger: Count) -> Column:
    """FIRST, by the same."""
    return F.call_function("div", place - 1, F.lit(trigger.count)) + 1


def _fires(spec: PipelineSpec, in_window: WindowSpec) -> Column:
    """FIRES: by the place, never, or at the last record on time and at each late one."""
    trigger = spec.fires_by
    if isinstance(trigger, Count):
        return fires_at(F.col(_NTH), trigger)
    if isinstance(trigger, Never):
        return F.lit(False)
    next_is_late = F.coalesce(F.lead(fires_at_once()).over(in_window), F.lit(True))
    return fires_at_once() | (next_is_late & F.col(c.FIRE_AT).isNotNull())


def _fired_up_to(ahead: int | None, spec: PipelineSpec, in_window: WindowSpec) -> Column:
    """How often a window has fired, once so many records have come after one; None: all."""
    trigger, last = spec.fires_by, Window.unboundedFollowing
    if ahead is not None:
        last = min(ahead, _MOST_AHEAD)
    if isinstance(trigger, Count):
        come = F.col(_ALL) if ahead is None else F.least(F.col(_NTH) + last, F.col(_ALL))
        return F.call_function("div", come, F.lit(trigger.count))
    return F.count_if(FIRES).over(in_window.rowsBetween(Window.unboundedPreceding, last))


def _until(spec: PipelineSpec, in_window: WindowSpec) -> Column:
    """UNTIL, where the evictor keeps the last so many, or there is none."""
    evictor, firings = spec.evicts_by, F.col(FIRINGS)
    until = F.lit(walk.STILL_HELD)
    if isinstance(evictor, CountEvictor):
        # the last firing before so many have come, the record itself among them
        last = _fired_up_to(evictor.count - 1, spec, in_window)
        until = F.when(last < firings, last + (2 if evictor.after else 1)).otherwise(until)
    if spec.fires_by.purging:
        until = F.when(F.col(FIRST) <= firings, F.least(until, F.col(FIRST) + 1)).otherwise(until)
    return until


def value_of(records: DataFrame, spec: PipelineSpec, part: str) -> Column:
    """What a trigger or an evictor compares, as a number; null where it compares nothing.

    Raises:
        InputError: it is no number.
    """
    rule = spec.fires_by if part == "trigger" else spec.evicts_by
    if not isinstance(rule, Delta | DeltaEvictor):
        return F.lit(None).cast("double")
    place = f"{spec.pipeline}: {part}.of"
    value, found = typed(records, rule.of, place)
    require("number", rule.of, found, place)
    nothing = f"{place}: {rule.of} is null for a record; leave such records out, or give a default"
    return F.coalesce(value.cast("double"), F.raise_error(F.lit(nothing)).cast("double"))
