"""The columns of quarantine whose order and whose nulls are part of a row's identity.

A landing table's columns may move, as delta-rs moves a partition column when it merges schemas. So
columns are hashed in the order of quarantine, which adds new ones behind the others.

In early versions a null was hashed into the identity of a row, so that the identity of all rows
changed when the landing table got a new column. Columns published by these versions are still
hashed like that, so that identities of existing rows stay. Later columns are marked in the table's
schema, and their nulls are not hashed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltalake import DeltaTable
from pyspark.sql import types as T

from strandline.engine.records.quarantine import result_names
from strandline.lake.store.second_columns import SECOND_OF

_MARK = "strandline.nulls_not_told"


def marked(field: T.StructField) -> T.StructField:
    """A column whose metadata says that its nulls are not hashed.

    Of its own metadata only `SECOND_OF` stays.
    """
    second_of = (field.metadata or {}).get(SECOND_OF)
    mark = {_MARK: "true"} | ({} if second_of is None else {SECOND_OF: second_of})
    return T.StructField(field.name, field.dataType, nullable=True, metadata=mark)


def nulls_counted(quarantine: DeltaTable | None) -> frozenset[str]:
    """The columns of quarantine, in lower case, whose nulls are hashed; none without a table."""
    if quarantine is None:
        return frozenset()
    fields = quarantine.schema().fields
    return frozenset(f.name.lower() for f in fields if not (f.metadata or {}).get(_MARK))


def columns_of(quarantine: DeltaTable | None) -> tuple[str, ...]:
    """The columns of quarantine, in lower case and in its order; none without a table."""
    return () if quarantine is None else tuple(f.name.lower() for f in quarantine.schema().fields)


def in_order_of(published: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """Landing columns in the order of quarantine's columns, then the others in their own order."""
    results = result_names(names := tuple(names))
    places = {name: place for place, name in enumerate(published)}
    return tuple(sorted(names, key=lambda name: places.get(results[name].lower(), len(places))))
