"""Counts of accepted and refused records by slot, from staged and published rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from strandline.engine import columns as c
from strandline.engine.position.grid import Grid
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.publish.staging import Part
from strandline.lake.store.reads import in_arrow
from strandline.quality.completeness import Accepted
from strandline.tables import QUARANTINE


def accepted_by_slot(counted: DataFrame) -> dict[int, Accepted]:
    """The record counts of each slot (`Rebuild.accepted_by_slot`), by the id of its window."""
    counts = (row.asDict() for row in counted.na.fill(0).collect())
    return {int(row.pop(c.SLOT)): Accepted(**row) for row in counts}


def refused_by_newest(quarantine: Iterable[pa.Table], grid: Grid) -> dict[tuple[int, str], int]:
    """The number of records that no window accepted, by start of the newest window and reason."""
    groups = sums_by(quarantine, REFUSED_BY)
    counts = (groups[name].to_pylist() for name in ("reason", ROWS))
    by_slot = zip(_in_ms(groups["slot_start"]), *counts, strict=True)
    return {(grid.newest_ids(int(ms)), reason): int(count) for ms, reason, count in by_slot}


REFUSED_BY = ["slot_start", "reason"]
"""The columns of quarantine that `refused_by_newest` reads."""


_ALL = pc.scalar(True)


def late_in(
    quarantine: Part, since_ms: int | None, wanted: ds.Expression = _ALL
) -> Iterator[pa.Table]:
    """The staged late records of slots that start at or after an instant, with `REFUSED_BY`.

    `since_ms`: the instant; None: all.
    """
    if since_ms is not None:
        wanted &= ds.field(QUARANTINE.start) >= in_arrow(since_ms)
    return quarantine.rows(wanted, REFUSED_BY)


def _in_ms(instants: pa.ChunkedArray) -> Any:
    return pc.divide(instants.cast(pa.int64()), 1000).to_pylist()
