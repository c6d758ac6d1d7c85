"""The landing of files, each exactly once, in a Delta table partitioned by arrival day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from strandline.errors import InputError
from strandline.lake.jars import sha256_of
from strandline.lake.store.store import storage_errors
from strandline.model.intervals import DAY_MS
from strandline.proposal.files import batches_of
from strandline.proposal.roles import Roles
from strandline.proposal.table import Table, as_typed
from strandline.proposal.times import NONE_MS, Millis

_DATE, _DAY = "arrival_date", "arrival_day"
SURE_OF_ARRIVAL = 0.99
"""The share of rows above which a column of days is taken for the day of arrival."""
_APP = "strandline-init/"
"""The prefix of the transaction id of a landed file; the file's SHA-256 follows."""


def partition_of(table: Table, roles: Roles) -> str:
    """The partition column of the table that `init` lands: `arrival_date`, the files' or a new one.

    If the files have a column of this name that is not the UTC day of arrival, it is the first free
    one of `arrival_day`, `arrival_day_2` and so on.
    """
    names = {name.lower() for name in table.schema.names}
    own = [one.name for one in table.schema if (one.name, one.type) == (_DATE, pa.date32())]
    if _DATE not in names or shares_of_arrival(table, roles, own).get(_DATE, 0) > SURE_OF_ARRIVAL:
        return _DATE
    others = (f"{_DAY}_{number}" for number in count(2))
    return next(name for name in chain([_DAY], others) if name not in names)


def arrival_days(roles: Roles, rows: pa.Table) -> pa.Array:
    """The UTC day of each arrival time, or else of the event time; null if neither is known."""
    arrival = roles.arrival or roles.event
    found_ms = arrival.read(rows.column(arrival.name))
    event_ms = roles.event.read(rows.column(roles.event.name))
    return _days(np.where(found_ms == NONE_MS, event_ms, found_ms))


def shares_of_arrival(table: Table, roles: Roles, names: Iterable[str]) -> dict[str, float]:
    """The share of the rows for which a column of days is the UTC day of arrival, by its name.

    Rows without a day or an arrival do not count.
    """
    days, shares = arrival_days(roles, table.sample), {}
    for name in names:
        try:
            values = table.sample.column(name).cast(pa.date32()).to_pylist()
        except pa.ArrowException:
            continue
        pairs = zip(values, days.to_pylist(), strict=True)
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        shares[name] = sum(a == b for a, b in both) / max(1, len(both))
    return shares


def _days(instants_ms: Millis) -> pa.Array:
    days = np.where(instants_ms == NONE_MS, 0, instants_ms // DAY_MS).astype(np.int32)
    return pa.array(days, pa.int32(), mask=instants_ms == NONE_MS).cast(pa.date32())


def land(table: Table, roles: Roles, uri: str) -> tuple[int, int]:
    """Append the files that the table does not contain yet, each in a separate commit.

    A file is identified by its content, so that a repeated call lands only new files.

    Args:
        table: the files and their columns.
        roles: the time columns, from which the arrival day follows.
        uri: the URI of the Delta table, which is created if it does not exist.

    Returns:
        The number of landed files, and the number of files that were there before.

    Raises:
        InputError: the URI has another table, or a file cannot be read.
        RetryableError: the store failed.
    """
    day, schema = partition_of(table, roles), table.schema
    schema = schema if day in schema.names else schema.append(pa.field(day, pa.date32()))
    landed = landed_before = 0
    for path in table.files:
        digest = sha256_of(path)
        found = _table_at(uri)
        if found is not None:
            _require_ours(found, schema, day, uri)
            if found.transaction_version(_APP + digest) is not None:
                landed_before += 1
                continue
        rows = pa.RecordBatchReader.from_batches(schema, _rows(path, table, roles, schema))
        transaction = CommitProperties(app_transactions=[Transaction(_APP + digest, 1)])
        with storage_errors(uri):
            write_deltalake(
                uri, rows, mode="append", partition_by=[day], commit_properties=transaction
            )
        landed += 1
    return landed, landed_before


def _rows(path: Path, table: Table, roles: Roles, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for block in batches_of(path):
        rows = as_typed(block, table.schema)
        if schema != table.schema:
            rows = rows.append_column(schema.names[-1], arrival_days(roles, rows))
        yield from rows.cast(schema).to_batches()


def _table_at(uri: str) -> DeltaTable | None:
    try:
        return DeltaTable(uri)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise InputError(uri, f"no table ({str(error).splitlines()[0]})", "clear it") from None


def _require_ours(found: DeltaTable, schema: pa.Schema, day: str, uri: str) -> None:
    """Refuse an existing table with other columns or another partition.

    Raises:
        InputError: the table is different.
    """
    names = [field.name for field in found.schema().fields]
    partitions = found.metadata().partition_columns
    if partitions != [day]:
        by = ", ".join(partitions) or "no column"
        problem = f"a table partitioned by {by} lies there, and these files are landed by {day}"
    elif set(names) != set(schema.names):
        problem = f"a table of other columns lies there ({', '.join(names)})"
    else:
        return
    raise InputError(uri, problem, "give another --name, or remove it")
