"""What workers do with the records of a group: walk over them, and add what becomes of each.

It goes to the workers by value, for this library is not installed there: functions here name no
other module of it but `walk`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from strandline.engine import columns as c
from strandline.engine.walks import walk

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
POSITION = (c.INSTANT, c.SEQUENCE, c.TS, c.END, c.RECORD_ID)
"""The order of the records of a group."""
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
ADDED = pa.schema(
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
"""What a walk adds to its records."""
_ORDER = [(name, "ascending") for name in POSITION]
_OF_RECORDS = (c.START, c.END, c.TS, c.WATERMARK, VALUE)
_OF_FATE = {
    IN_START: "start_ms",
    IN_END: "end_ms",
    LATE: "late",
    FOUND_BY: "found_by",
    TOLD_BY: "told_by",
    GONE_BY: "gone_by",
}
_OF_CAUSE = {
    c.FIRING: "number",
    c.START: "start_ms",
    c.END: "end_ms",
    TIME: "time_ms",
    REACHES: "reaches_ms",
    LATE: "late",
    SUPERSEDES: "supersedes",
}


def walk_over(group: pa.Table, rules: walk.Rules) -> pa.Table:
    """The records of a group in their order, with what becomes of them."""
    ordered = group.sort_by(_ORDER)
    records = walk.Records(*(ordered[name].to_pylist() for name in _OF_RECORDS))
    done = walk.Walk(records, rules)
    added = dict(_fates(done)) | {CAUSES: _causes(done)}
    for column in ADDED:
        ordered = ordered.append_column(column, pa.array(added[column.name], column.type))
    return ordered


def _fates(done: walk.Walk) -> Iterator[tuple[str, list[Any]]]:
    """The columns that tell what becomes of each record."""
    for name, attribute in _OF_FATE.items():
        yield name, [getattr(fate, attribute) for fate in done.fates]


def _causes(done: walk.Walk) -> list[list[dict[str, Any]]]:
    """For each record the firings that it causes, or that come between it and the next one."""
    caused: list[list[dict[str, Any]]] = [[] for _ in done.fates]
    for firing in done.firings:
        told = {name: getattr(firing, attribute) for name, attribute in _OF_CAUSE.items()}
        caused[firing.after].append(told)
    return caused
