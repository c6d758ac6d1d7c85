"""The frequent values of columns among late and among malformed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from strandline.lake.store.days import Days, days_of
from strandline.lake.store.reads import columns_of
from strandline.lake.store.store import Store
from strandline.quality.report.quarantine import REFUSED
from strandline.spec import PipelineSpec
from strandline.tables import QUARANTINE

_MOST_VALUES = 150
"""The largest number of distinct values of a column with frequent values."""
_MOST_RAW_VALUES = 4 * _MOST_VALUES
"""The same within one batch, before long values are shortened, which may make them equal."""
_MOST_COLUMNS = 60
_LONGEST = 60
"""The characters of a value that are kept."""
_COLUMNS = ["group", "column", "value", "records"]


def frequent_values(store: Store, days: Days, spec: PipelineSpec) -> pd.DataFrame | None:
    """The number of quarantine rows by value, for columns with few values; None: no quarantine.

    Columns: `group` (late or malformed), `column`, `value`, `records`. Only text, integer and
    boolean columns of the source count. The rows are read batch by batch, so that only the counts
    are in memory.
    """
    table = store.table(QUARANTINE.name)
    if table is None:
        return None
    dataset, rows = days_of(table, QUARANTINE.name, days)
    names = _candidates(columns_of(table), spec)
    counts: dict[tuple[str, str], Counter[str | None]] = {}
    for batch in dataset.to_batches(columns=["reason", *names], filter=rows):
        is_late = pc.is_in(batch["reason"], pa.array(REFUSED))
        for group, of_group in (
            ("late", batch.filter(is_late)),
            ("malformed", batch.filter(pc.invert(is_late))),
        ):
            _count(of_group, group, names, counts)
    return pd.DataFrame(
        [
            (group, column, value, count)
            for (group, column), of_column in counts.items()
            if column in names
            for value, count in of_column.items()
        ],
        columns=_COLUMNS,
    )


def _candidates(schema: pa.Schema, spec: PipelineSpec) -> list[str]:
    """The columns that may have few values: columns of the source, but no times."""
    ours = {*QUARANTINE.columns, spec.source.arrival_date}

    def is_plain(kind: pa.DataType) -> bool:
        texts = pt.is_string(kind) or pt.is_large_string(kind)
        return bool(texts or pt.is_boolean(kind) or pt.is_integer(kind))

    names = [f.name for f in schema if f.name not in ours and is_plain(f.type)]
    return names[:_MOST_COLUMNS]


def _count(
    rows: pa.RecordBatch,
    group: str,
    names: list[str],
    counts: dict[tuple[str, str], Counter[str | None]],
) -> None:
    """Count the values of a batch; a column with too many values is removed from `names`."""
    for name in [*names] if rows.num_rows else ():
        counted = counts.setdefault((group, name), Counter())
        found = rows.column(name).value_counts()
        if len(found) <= _MOST_RAW_VALUES:
            for value, count in _shortened(found):
                counted[value] += count
        if len(found) > _MOST_RAW_VALUES or len(counted) > _MOST_VALUES:
            names.remove(name)


def _shortened(value_counts: pa.Array) -> Iterable[tuple[str | None, int]]:
    for one in value_counts.to_pylist():
        value = one["values"]
        yield None if value is None else str(value)[:_LONGEST], int(one["counts"])
