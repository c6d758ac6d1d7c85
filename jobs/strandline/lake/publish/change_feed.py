"""Commits to tables with a change data feed, which must get only the changed rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from itertools import chain

import pyarrow as pa
from deltalake import DeltaTable

from strandline.engine.records.expressions import in_quotes
from strandline.errors import InputError
from strandline.lake.publish.adopt import Adoption, no_other_writer
from strandline.lake.publish.arrow_diff import DELETE, OP
from strandline.lake.store.day_conditions import in_days
from strandline.lake.store.lock import commit
from strandline.lake.store.reads import columns_of


def has_change_feed(table: DeltaTable) -> bool:
    """Whether a table's change data feed is switched on."""
    return table.metadata().configuration.get("delta.enableChangeDataFeed", "").lower() == "true"


def merge_with_feed(
    adoption: Adoption,
    table: DeltaTable,
    keys: Sequence[str],
    changes: Iterator[pa.Table],
    days: Collection[date | None],
) -> None:
    """Apply a diff to a table by a merge of delta-rs, which writes the feed.

    Replacing whole files would bring unchanged rows into the feed. Call it under the lock.

    Args:
        adoption: the table's adoption.
        table: the open table.
        keys: the columns that identify a row, by the table's names.
        changes: batches of the diff with `OP`, with the names and types of the table; the first
            batch may be empty.
        days: the partitions of the diff.

    Raises:
        InputError: delta-rs compares the values of the keys differently from a diff.
        RetryableError: another process wrote the table without the lock.
    """
    if not _as_delta_rs_compares(columns_of(table), keys):
        raise InputError(
            adoption.uri,
            "keeps a change data feed (delta.enableChangeDataFeed), which cannot be written for "
            "keys that are floating-point numbers, lists or structs",
            "switch the feed off, or give the pipeline a key of another type",
        )
    first = next(changes)
    batches = chain.from_iterable(rows.to_batches() for rows in chain([first], changes))
    row = {in_quotes(n): f"s.{in_quotes(n)}" for n in first.column_names if n != OP}
    same_key = [f"(t.{in_quotes(key)} IS NOT DISTINCT FROM s.{in_quotes(key)})" for key in keys]
    with no_other_writer(adoption.uri):
        (
            table.merge(
                pa.RecordBatchReader.from_batches(first.schema, batches),
                " AND ".join([in_days(adoption.partition, days, "t."), *same_key]),
                source_alias="s",
                target_alias="t",
                streamed_exec=True,
                commit_properties=commit(adoption.uri, adoption.attempt.run_id),
            )
            .when_matched_delete(f"s.{OP} = '{DELETE}'")
            .when_matched_update(row)
            .when_not_matched_insert(row, predicate=f"s.{OP} <> '{DELETE}'")
            .execute()
        )


def _as_delta_rs_compares(schema: pa.Schema, keys: Sequence[str]) -> bool:
    """Whether delta-rs compares the keys as a diff does; it does not for -0.0 and NaN."""
    kinds = [schema.field(key).type for key in keys]
    return not any(pa.types.is_nested(kind) or pa.types.is_floating(kind) for kind in kinds)
