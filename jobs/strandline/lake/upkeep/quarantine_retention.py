"""The removal of old quarantined rows by their arrival day."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from strandline.errors import InputError
from strandline.lake.store.reads import columns_of, dataset_of
from strandline.lake.store.store import Store
from strandline.lake.upkeep.erasure import erase, in_double_quotes
from strandline.spec.source import Source
from strandline.tables import QUARANTINE


def older_rows(store: Store, source: Source, first: date | None) -> int:
    """The number of quarantined rows that arrived before a day; None if there is none.

    Raises:
        InputError: no column of quarantine has the arrival day of a row.
    """
    table = store.table(QUARANTINE.name)
    if table is None or first is None or not table.file_uris():
        return 0
    name = _arrival(table, source, store.pipeline)
    before = pa.scalar(first, pa.date32()).cast(columns_of(table).field(name).type)
    return int(dataset_of(table, _before(name, first)).count_rows(filter=ds.field(name) < before))


def drop_older(store: Store, source: Source, first: date) -> None:
    """Delete the quarantined rows that arrived before a day, in at most one commit.

    Call it under the lock.

    Raises:
        InputError: as for `older_rows`.
    """
    table = DeltaTable(store.uri(QUARANTINE.name))
    condition = _before(_arrival(table, source, store.pipeline), first)
    erase(table, QUARANTINE.partition, condition, "maintain")


def _before(name: str, first: date) -> str:
    return f"{in_double_quotes(name)} < '{first.isoformat()}'"


def _arrival(table: DeltaTable, source: Source, pipeline: str) -> str:
    """The column of quarantine with the arrival day, or the arrival time, of a row."""
    columns = columns_of(table)
    for asked in filter(None, (source.arrival_date, source.arrival_time)):
        name = f"source_{asked}" if asked.lower() in QUARANTINE.columns else asked
        if name in columns.names:
            kind = columns.field(name).type
            if kind == pa.date32() or pa.types.is_timestamp(kind):
                return name
    raise InputError(
        f"{pipeline}: quarantine_days",
        "no column of the quarantine has the day on which a row arrived",
        "let source.arrival_date or source.arrival_time be a column; or leave quarantine_days out",
    )
