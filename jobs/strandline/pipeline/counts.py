"""Counts of accepted and refused records by slot, from staged and published rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline.engine import columns as c
from strandline.engine.position.grid import Grid
from strandline.lake.staging import Part, Staging
from strandline.lake.sums import ROWS, sums_by
from strandline.quality.completeness import Accepted
from strandline.tables import QUARANTINE

_COUNTS = (c.ACCEPTED, c.IN_NEWEST_WINDOW, c.MISSED_PAIRS, c.UNFIRED)
"""What is staged with windows to be counted, where they have it, and is no column of theirs."""


def fired(windows: DataFrame) -> DataFrame:
    """The staged windows that Flink has emitted; others are staged only to be counted."""
    emitted = windows.where((F.col("state") != "open") & (F.col("firings") > 0))
    return emitted.drop(*_COUNTS)


def published_part(staging: Staging, name: str, schema: StructType | None = None) -> Part:
    """The part of staged rows that will be published; for windows, those that Flink has emitted.

    Args:
        staging: the staging.
        name: the name of the part.
        schema: a schema with its columns; None: read from its files.
    """
    part = staging.part(name, schema)
    if name != "windows":
        return part
    own = [field for field in part.schema.fields if field.name not in _COUNTS]
    emitted = (ds.field("state") != "open") & (ds.field("firings") > 0)
    return Part(staging, name, StructType(own), emitted)


def starting_from(start: str, since_ms: int | None) -> ds.Expression | None:
    """The rows whose window or slot starts at or after an instant; None: all rows."""
    if since_ms is None:
        return None
    return ds.field(start) >= pa.scalar(since_ms * 1000, pa.timestamp("us", "UTC"))


def counted_columns(names: Iterable[str], grid: Grid) -> list[str]:
    """The columns of windows that `accepted_by_window` reads, among those that exist."""
    there = {*names}
    accepted = c.ACCEPTED if c.ACCEPTED in there else "records"
    counts = [accepted, "late_accepted", c.IN_NEWEST_WINDOW, c.MISSED_PAIRS, c.UNFIRED]
    return [_id_of(grid), *(name for name in counts if name in there)]


def accepted_by_window(windows: Iterable[pa.Table], columns: Sequence[str]) -> dict[int, Accepted]:
    """The number of records that each window accepted, over all keys, by window id.

    Published windows lack the last counts, which only staged windows have.

    Args:
        windows: the rows, in batches.
        columns: see `counted_columns`.
    """
    id_, *counts = columns
    sums = sums_by(windows, [id_], counts)
    values = (sums[name].to_pylist() for name in counts)
    return {
        int(ms): Accepted(*map(int, of_one))
        for ms, *of_one in zip(_in_ms(sums[id_]), *values, strict=True)
    }


def accepted_by_slot(counted: DataFrame) -> dict[int, Accepted]:
    """The number of records accepted in each slot of a sessions' calendar.

    See `SessionRebuild.accepted_by_slot`. The records belong to sessions that may begin in another
    slot.
    """
    return {
        int(slot): Accepted(int(accepted), int(late), in_newest=int(accepted), unfired=sum(unfired))
        for slot, accepted, late, *unfired in counted.collect()
    }


def slots_accepting(windows: DataFrame, grid: Grid) -> set[int]:
    """The ids of the windows that have accepted a record of any key, without staging them."""
    _, accepted, *_ = counted_columns(windows.columns, grid)
    accepting = windows.where(F.col(accepted) > 0)
    ids = accepting.select(F.unix_millis(_id_of(grid))).distinct().collect()
    return {int(row[0]) for row in ids}


def refused_by_newest(quarantine: Iterable[pa.Table], grid: Grid) -> dict[tuple[int, str], int]:
    """The number of records that no window accepted, by start of the newest window and reason."""
    ahead = grid.size_ms if grid.cumulative else 0
    groups = sums_by(quarantine, REFUSED_BY)
    counts = (groups[name].to_pylist() for name in ("reason", ROWS))
    by_slot = zip(_in_ms(groups["slot_start"]), *counts, strict=True)
    return {(int(start_ms) + ahead, reason): int(count) for start_ms, reason, count in by_slot}


REFUSED_BY = ["slot_start", "reason"]
"""The columns of quarantine that `refused_by_newest` asks for."""


def late_in(
    quarantine: Part, since_ms: int | None, wanted: ds.Expression | None = None
) -> Iterator[pa.Table]:
    """The staged late records of slots that start at or after an instant, with `REFUSED_BY`.

    Args:
        quarantine: all staged late records.
        since_ms: the instant; None: all.
        wanted: a further condition; None: none.
    """
    since = starting_from(QUARANTINE.start, since_ms)
    both = since if wanted is None else wanted if since is None else wanted & since
    return quarantine.rows(both, REFUSED_BY)


def _id_of(grid: Grid) -> str:
    return "window_end" if grid.cumulative else "window_start"


def _in_ms(instants: pa.ChunkedArray) -> Any:
    return pc.divide(instants.cast(pa.int64()), 1000).to_pylist()
