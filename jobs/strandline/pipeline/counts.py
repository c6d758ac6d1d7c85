"""What staged and published rows say of their slots: counted by Spark or, of few rows, by Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.grid import Grid
from strandline.quality.completeness import Accepted

Rows: TypeAlias = DataFrame | pa.Table
_COUNTS = (c.ACCEPTED, c.IN_NEWEST_WINDOW, c.MISSED_PAIRS, c.UNFIRED)
"""What is staged with windows to be counted, where they have it, and is no column of theirs."""


def fired(windows: Rows) -> Any:
    """The staged windows that Flink has emitted; the others were staged to be counted."""
    if isinstance(windows, DataFrame):
        emitted = windows.where((F.col("state") != "open") & (F.col("firings") > 0))
        return emitted.drop(*_COUNTS)
    emitted = windows.filter((ds.field("state") != "open") & (ds.field("firings") > 0))
    return emitted.select([name for name in emitted.column_names if name not in _COUNTS])


def told(part: str, rows: Rows) -> Any:
    """What of a staged part there is to be published: of windows those that Flink has emitted."""
    return fired(rows) if part == "windows" else rows


def starting_from(rows: Rows, start: str, since_ms: int | None) -> Rows:
    """The rows whose window or slot starts at an instant or later; None: all."""
    if since_ms is None:
        return rows
    if isinstance(rows, DataFrame):
        return rows.where(F.col(start) >= F.timestamp_millis(F.lit(since_ms)))
    return rows.filter(ds.field(start) >= pa.scalar(since_ms * 1000, pa.timestamp("us", "UTC")))


def accepted_by_window(windows: Rows, grid: Grid) -> dict[int, Accepted]:
    """What each window accepted, over all keys, by its id.

    Of published windows without the last counts: these are known for what is staged only.
    """
    names = windows.columns if isinstance(windows, DataFrame) else windows.column_names
    accepted = c.ACCEPTED if c.ACCEPTED in names else "records"
    counts = [accepted, "late_accepted", c.IN_NEWEST_WINDOW, c.MISSED_PAIRS, c.UNFIRED]
    known = [name for name in counts if name in names]
    sums = _summed(windows, "window_end" if grid.cumulative else "window_start", known)
    return {int(id_): Accepted(*map(int, counts)) for id_, *counts in sums}


def accepted_by_slot(counted: DataFrame) -> dict[int, Accepted]:
    """What became of the records of each slot of a sessions' calendar.

    See `SessionRebuild.accepted_by_slot`. A slot accepts nothing itself: its records belong to
    sessions that may begin elsewhere.
    """
    return {
        int(slot): Accepted(int(accepted), int(late), in_newest=int(accepted), unfired=sum(unfired))
        for slot, accepted, late, *unfired in counted.collect()
    }


def refused_by_newest(quarantine: Rows, grid: Grid) -> dict[tuple[int, str], int]:
    """How many records no window accepted, by the start of their newest window and the reason."""
    ahead = grid.size_ms if grid.cumulative else 0
    if isinstance(quarantine, DataFrame):
        groups = quarantine.groupBy(F.unix_millis("slot_start"), "reason")
        counted = [(row[0], row[1], row[2]) for row in groups.count().collect()]
    else:
        groups = quarantine.group_by(["slot_start", "reason"]).aggregate([([], "count_all")])
        counts = (groups[name].to_pylist() for name in ("reason", "count_all"))
        counted = [*zip(_in_ms(groups["slot_start"]), *counts, strict=True)]
    return {(int(start_ms) + ahead, reason): int(count) for start_ms, reason, count in counted}


def _summed(rows: Rows, instant: str, names: Sequence[str]) -> Iterable[Sequence[Any]]:
    """The sums of some columns by an instant of each row, behind that in milliseconds."""
    if isinstance(rows, DataFrame):
        groups = rows.groupBy(F.unix_millis(instant))
        return groups.agg(*(F.sum(name) for name in names)).collect()
    groups = rows.group_by(instant).aggregate([(name, "sum") for name in names])
    sums = (groups[f"{name}_sum"].to_pylist() for name in names)
    return zip(_in_ms(groups[instant]), *sums, strict=True)


def _in_ms(instants: pa.ChunkedArray) -> Any:
    return pc.divide(instants.cast(pa.int64()), 1000).to_pylist()
