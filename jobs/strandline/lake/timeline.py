"""The timeline table: the cells of every observed day, written once for each whole day."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import write_deltalake

from strandline.engine.history import CELL_COLUMNS, History
from strandline.lake.store import Store, dataset_of
from strandline.model.intervals import DAY_MS, midnight_of

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
        ("timeline_fingerprint", pa.string()),
    ]
)


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
    fingerprint: str,
    days: Collection[date],
    *,
    replace: bool,
    violations: pd.DataFrame | None = None,
) -> None:
    """Write what whole days say, in the one commit that makes them count; call it under the lock.

    Args:
        store: the pipeline's tables.
        history: holds the cells of these days (others are left out).
        fingerprint: of the timeline that the days belong to.
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
    # a day on which nothing counts has been observed all the same
    silent = sorted(set(days) - set(cells["arrival_date"]))
    if silent:
        parts.append(pd.DataFrame({"arrival_date": silent, "kind": "day", "records": 0}))
    rows = pa.concat_tables(
        [_table(part.assign(timeline_fingerprint=fingerprint)) for part in parts]
    )
    write_deltalake(
        store.uri("timeline"),
        rows,
        mode="overwrite" if replace else "append",
        schema_mode="overwrite" if replace else "merge",
        partition_by=["arrival_date"],
    )


def _table(rows: pd.DataFrame) -> pa.Table:
    """Rows of one kind; the columns that the kind does not have are null."""
    columns = [
        pa.array(rows[field.name], field.type, from_pandas=True)
        if field.name in rows
        else pa.nulls(len(rows), field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
