"""Which columns of quarantine keep the identity that their rows were given before.

Once, a null counted for more in a row's identity than a column that is not there, so that all rows
got another one when the landing table got a column. Columns that were published so keep it, for the
rows that stand; each column that came later is marked in the table's schema, and its nulls are not
counted.
"""

from __future__ import annotations

from deltalake import DeltaTable
from pyspark.sql import types as T

from strandline.lake.second_columns import SECOND_OF

_MARK = "strandline.nulls_not_told"


def marked(field: T.StructField) -> T.StructField:
    """A quarantine column whose nulls are not counted; of its metadata only `SECOND_OF` stays."""
    second_of = (field.metadata or {}).get(SECOND_OF)
    mark = {_MARK: "true"} | ({} if second_of is None else {SECOND_OF: second_of})
    return T.StructField(field.name, field.dataType, nullable=True, metadata=mark)


def nulls_counted(quarantine: DeltaTable | None) -> frozenset[str]:
    """Quarantine's columns, in lower case, whose nulls are counted; none if there is no table."""
    if quarantine is None:
        return frozenset()
    fields = quarantine.schema().fields
    return frozenset(f.name.lower() for f in fields if not (f.metadata or {}).get(_MARK))
