"""The timeline table: the cells of every observed day, written once for each whole day."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import write_deltalake

from strandline.engine.axis import Axis
from strandline.engine.history import CELL_COLUMNS, History
from strandline.engine.idleness import Carried
from strandline.engine.observed import KnownSteps, ObservedDay
from strandline.engine.steps import steps_from, steps_to
from strandline.lake.store import Store, dataset_of
from strandline.model.intervals import DAY_MS, day_of, midnight_of
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


def read_cells(store: Store, fingerprint: str, *, before_ms: int | None = None) -> pd.DataFrame:
    """The cells of the whole days observed before an instant, under this fingerprint only."""
    table = store.table("timeline")
    if table is None:
        return pd.DataFrame(columns=[*CELL_COLUMNS])
    rows = dataset_of(table)
    wanted = (ds.field("timeline_fingerprint") == fingerprint) & (ds.field("kind") == "cell")
    cells: pd.DataFrame = rows.to_table(columns=list(CELL_COLUMNS), filter=wanted).to_pandas(
        types_mapper={_LONG: pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get
    )
    if before_ms is None:
        return cells
    whole = cells["arrival_date"].map(lambda day: midnight_of(day) + DAY_MS <= before_ms)
    return cells[whole.astype(bool)]


def read_violations(store: Store, fingerprint: str, *, before_ms: int) -> int:
    """The violations of an ascending order on the whole days observed before an instant."""
    table = store.table("timeline")
    if table is None or "violations" not in {field.name for field in table.schema().fields}:
        return 0
    wanted = (ds.field("timeline_fingerprint") == fingerprint) & ds.field("violations").is_valid()
    found = dataset_of(table).to_table(columns=["arrival_date", "violations"], filter=wanted)
    return sum(
        row["violations"]
        for row in found.to_pylist()
        if midnight_of(row["arrival_date"]) + DAY_MS <= before_ms
    )


def read_steps(
    store: Store, spec: PipelineSpec, axis: Axis, *, before_ms: int | None = None
) -> KnownSteps:
    """The steps of the whole days observed before an instant, and where the source stands then."""
    carried = read_source(store, spec.timeline_fingerprint, before_ms=before_ms)
    table = store.table("timeline")
    if table is None or carried is None or carried.until_ms is None:
        return KnownSteps.none(spec, axis)
    names = ["arrival_date", "first_arrival_ms", "first_sequence", "until_arrival_ms", "rank"]
    wanted = (ds.field("timeline_fingerprint") == spec.timeline_fingerprint) & (
        ds.field("kind") == "step"
    )
    until = ds.field("arrival_date") < day_of(carried.until_ms)
    rows = dataset_of(table).to_table(columns=[*names, "watermark_ms"], filter=wanted & until)
    steps = steps_from(rows.to_pandas(types_mapper={_LONG: pd.Int64Dtype()}.get), axis)
    return KnownSteps(steps, carried)


def read_source(
    store: Store, fingerprint: str | None = None, *, before_ms: int | None = None
) -> Carried | None:
    """Where the source stands after the last whole day observed before an instant.

    None: its channels do not go idle, or no day is observed. `fingerprint`: None means any.
    """
    table = store.table("timeline")
    if table is None or "source_state" not in table.schema().to_arrow().names:
        return None
    wanted = ds.field("kind") == "source"
    if fingerprint is not None:
        wanted &= ds.field("timeline_fingerprint") == fingerprint
    rows = dataset_of(table).to_table(columns=["arrival_date", "source_state"], filter=wanted)
    states = {row["arrival_date"]: row["source_state"] for row in rows.to_pylist()}
    whole = [d for d in states if before_ms is None or midnight_of(d) + DAY_MS <= before_ms]
    return Carried.from_json(states[max(whole)]) if whole else None


def channel_days(store: Store) -> pd.DataFrame:
    """What each channel has offered on each observed day: settled by midnight, and pending."""
    names, table = ["channel", "arrival_date", "settled_ms", "pending_ms"], store.table("timeline")
    if table is None:
        return pd.DataFrame(columns=names)
    wanted = ds.field("kind") == "channel"
    rows: pd.DataFrame = dataset_of(table).to_table(columns=names, filter=wanted).to_pandas()
    return rows


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
