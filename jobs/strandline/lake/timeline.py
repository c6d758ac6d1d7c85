"""The timeline table: the cells of every observed day, written once for each whole day."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from operator import itemgetter

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import write_deltalake

from strandline.engine.axis import Axis
from strandline.engine.frames import to_pandas
from strandline.engine.history import CELL_COLUMNS, History
from strandline.engine.idleness import Carried
from strandline.engine.observed import KnownSteps, ObservedDay
from strandline.engine.steps import steps_from, steps_to
from strandline.lake.store import Store, dataset_of
from strandline.model.intervals import DAY_MS
from strandline.spec.pipeline import PipelineSpec

_LONG = pa.int64()
SCHEMA = pa.schema(
    [
        ("arrival_date", pa.date32()),
        ("kind", pa.string()),
        ("reason", pa.string()),
        ("channel", pa.string()),
        ("event_date", pa.date32()),
        ("slot_ms", _LONG),
        ("threshold_ms", _LONG),
        ("pending", pa.bool_()),
        ("records", _LONG),
        ("least_ts_ms", _LONG),
        ("largest_ts_ms", _LONG),
        ("largest_end_ms", _LONG),
        ("largest_candidate_ms", _LONG),
        ("first_arrival_ms", _LONG),
        ("first_sequence", _LONG),
        ("settled_ms", _LONG),
        ("pending_ms", _LONG),
        ("violations", _LONG),
        ("until_arrival_ms", _LONG),
        ("rank", _LONG),
        ("watermark_ms", _LONG),
        ("source_state", pa.string()),
        ("timeline_fingerprint", pa.string()),
    ]
)
"""Kinds of rows: cell, channel and day; where channels can go idle also step (`first_*`: the first
instant that sees it) and source (where the source stands after the day)."""
_STEP_COLUMNS = (
    "arrival_date",
    "first_arrival_ms",
    "first_sequence",
    "until_arrival_ms",
    "rank",
    "watermark_ms",
)


def read_cells(store: Store, fingerprint: str, *, before_ms: int) -> pd.DataFrame:
    """The cells of the whole days observed before an instant, under this fingerprint only."""
    return to_pandas(_rows(store, "cell", CELL_COLUMNS, fingerprint, before_ms=before_ms))


def read_violations(store: Store, fingerprint: str, *, before_ms: int) -> int:
    """The violations of an ascending order on the whole days observed before an instant."""
    rows = _rows(store, "channel", ["violations"], fingerprint, before_ms=before_ms)
    return pc.sum(rows["violations"]).as_py() or 0


def read_steps(store: Store, spec: PipelineSpec, axis: Axis, *, before_ms: int) -> KnownSteps:
    """The steps of the whole days observed before an instant, and where the source stands then."""
    fingerprint = spec.timeline_fingerprint
    carried = read_source(store, fingerprint, before_ms=before_ms)
    if carried is None or carried.until_ms is None:
        return KnownSteps.none(spec, axis)
    rows = _rows(store, "step", _STEP_COLUMNS, fingerprint, before_ms=carried.until_ms)
    return KnownSteps(steps_from(to_pandas(rows), axis), carried)


def read_source(
    store: Store, fingerprint: str | None = None, *, before_ms: int | None = None
) -> Carried | None:
    """Where the source stands after the last whole day observed before an instant.

    None: its channels do not go idle, or no day is observed. `fingerprint`: None means any.
    """
    names = ["arrival_date", "source_state"]
    rows = _rows(store, "source", names, fingerprint, before_ms=before_ms).to_pylist()
    if not rows:
        return None
    return Carried.from_json(max(rows, key=itemgetter("arrival_date"))["source_state"])


def channel_days(store: Store) -> pd.DataFrame:
    """What each channel has offered on each observed day: settled by midnight, and pending."""
    names = ["channel", "arrival_date", "settled_ms", "pending_ms"]
    return to_pandas(_rows(store, "channel", names))


def _rows(
    store: Store,
    kind: str,
    names: Sequence[str],
    fingerprint: str | None = None,
    *,
    before_ms: int | None = None,
) -> pa.Table:
    """Some columns of the rows of a kind; null where a table is from before there were such.

    Args:
        store: the pipeline's tables.
        kind: of rows.
        names: of columns.
        fingerprint: that the days were observed under; None: any.
        before_ms: only of days that were over by then; None: of all.
    """
    table = store.table("timeline")
    if table is None:
        return pa.schema([SCHEMA.field(name) for name in names]).empty_table()
    wanted = ds.field("kind") == kind
    if fingerprint is not None:
        wanted &= ds.field("timeline_fingerprint") == fingerprint
    if before_ms is not None:
        wanted &= ds.field("arrival_date") < pa.scalar(before_ms // DAY_MS, pa.date32())
    rows = dataset_of(table).replace_schema(SCHEMA)
    return rows.to_table(columns=list(names), filter=wanted)


def observed_days(store: Store) -> dict[str, set[date]]:
    """The whole days that have been observed, by the fingerprint that they were observed under."""
    table = store.table("timeline")
    if table is None:
        return {}
    named = ["timeline_fingerprint", "arrival_date"]
    days = dataset_of(table).to_table(columns=named).group_by(named).aggregate([]).to_pylist()
    observed: dict[str, set[date]] = {}
    for row in days:
        observed.setdefault(row["timeline_fingerprint"], set()).add(row["arrival_date"])
    return observed


def commit_days(
    store: Store,
    history: History,
    followed: Sequence[ObservedDay],
    days: Collection[date],
    *,
    replace: bool,
    violations: pd.DataFrame | None = None,
) -> None:
    """Write what whole days say, in the one commit that makes them count; call it under the lock.

    Args:
        store: the pipeline's tables.
        history: holds the cells of these days (others are left out).
        followed: where channels can go idle, holds their steps; later days go then.
        days: the whole days to write.
        replace: whether the table holds another fingerprint's days, which go.
        violations: `arrival_date`, `channel`, `violations`, where these are counted.
    """
    cells = history.cells[history.cells["arrival_date"].isin(list(days))].assign(kind="cell")
    channels = history.channel_days.assign(kind="channel")
    if violations is not None:
        counted = violations[["arrival_date", "channel", "violations"]]
        channels = channels.merge(counted, on=["arrival_date", "channel"], how="left")
    day_map = history.day_map.assign(kind="day")
    parts = [part[part["arrival_date"].isin(list(days))] for part in (cells, channels, day_map)]
    for observed in followed:
        if observed.day in days:
            steps = steps_to(observed.steps, history.axis)
            state = {"arrival_date": observed.day, "source_state": observed.carried.to_json()}
            parts += [steps.assign(kind="step"), pd.DataFrame([state]).assign(kind="source")]
    # a day on which nothing counts has been observed all the same
    silent = sorted(set(days) - set(cells["arrival_date"]))
    if silent:
        parts.append(pd.DataFrame({"arrival_date": silent, "kind": "day", "records": 0}))
    fingerprint = history.spec.timeline_fingerprint
    rows = pa.concat_tables(
        [_table(part.assign(timeline_fingerprint=fingerprint)) for part in parts]
    )
    uri, parted = store.uri("timeline"), ["arrival_date"]
    if replace:
        write_deltalake(uri, rows, mode="overwrite", partition_by=parted, schema_mode="overwrite")
    elif history.spec.days_follow_each_other and days:
        later = f"arrival_date >= '{min(days)}'"
        write_deltalake(
            uri, rows, mode="overwrite", predicate=later, partition_by=parted, schema_mode="merge"
        )
    else:
        write_deltalake(uri, rows, mode="append", partition_by=parted, schema_mode="merge")


def _table(rows: pd.DataFrame) -> pa.Table:
    """Rows of one kind; the columns that the kind does not have are null."""
    columns = [
        pa.array(rows[field.name], field.type, from_pandas=True)
        if field.name in rows
        else pa.nulls(len(rows), field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
