"""The frequent values of columns among late and among malformed rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
"""The largest number of distinct values of a column whose values are all counted."""
_MOST_RAW_VALUES = 4 * _MOST_VALUES
"""The same within one batch, before long values are shortened, which may make them equal."""
_FREQUENT = 0.2
"""The least share of the rows of a frequent value, in a column with more values."""
_MOST_COLUMNS = 60
_LONGEST = 60
"""The characters of a value that are kept."""
_COLUMNS = ["group", "column", "value", "records", "of", "is_least"]


@dataclass
class _Counted:
    """The counts of a column's values in a group of rows.

    Attributes:
        few: the rows by value, shortened; None: the column has too many values.
        frequent: the rows by value, of the values that are frequent so far and not long.
        is_least: whether `frequent` is without some rows, since their value is long, or was rare
            when they were read.
    """

    few: Counter[str | None] | None = field(default_factory=Counter)
    frequent: Counter[str | None] = field(default_factory=Counter)
    is_least: bool = False

    def count(self, values: pa.Array) -> None:
        """Count the values of a batch."""
        found = values.value_counts()
        counts, shown = found.field("counts"), min(len(found), _MOST_RAW_VALUES)
        most = pc.array_sort_indices(counts, order="descending")[:shown]
        of_batch = [
            (None if value is None else str(value), int(count))
            for value, count in zip(
                found.field("values").take(most).to_pylist(),
                counts.take(most).to_pylist(),
                strict=True,
            )
        ]
        if self.few is not None:
            for value, count in of_batch:
                self.few[None if value is None else value[:_LONGEST]] += count
            if shown < len(found) or len(self.few) > _MOST_VALUES:
                self.few = None
        kept = [one for one in of_batch if one[0] is None or len(one[0]) <= _LONGEST]
        for value, count in kept:
            self.frequent[value] += count
        self.is_least |= len(kept) < len(found)
        if len(self.frequent) > 2 * _MOST_RAW_VALUES:
            self.frequent = Counter(dict(self.frequent.most_common(_MOST_RAW_VALUES)))
            self.is_least = True

    def most_frequent(self, rows: int) -> Counter[str | None]:
        """The values of a column with many, if one of them is frequent among some rows."""
        most = max(self.frequent.values(), default=0)
        return self.frequent if most and most >= _FREQUENT * rows else Counter()


@dataclass
class _Groups:
    """The late and the malformed rows, and their values by column.

    Attributes:
        rows: the number of rows by group.
        counted: the counts by group and column.
    """

    rows: Counter[str] = field(default_factory=Counter)
    counted: dict[tuple[str, str], _Counted] = field(default_factory=lambda: defaultdict(_Counted))

    def count(self, batch: pa.RecordBatch, names: Sequence[str]) -> None:
        """Count the rows of a batch, and the values of some columns."""
        is_late = pc.is_in(batch["reason"], pa.array(REFUSED))
        of_groups = {"late": is_late, "malformed": pc.invert(is_late)}
        for group, is_in_group in of_groups.items():
            of_group = batch.filter(is_in_group)
            self.rows[group] += of_group.num_rows
            for name in names if of_group.num_rows else ():
                self.counted[group, name].count(of_group.column(name))

    def shown(self) -> Iterator[tuple[str, str, str | None, int, int, bool]]:
        """The rows of `frequent_values`; a column has many values if it has in any group."""
        many = {name for (_, name), one in self.counted.items() if one.few is None}
        for (group, name), one in self.counted.items():
            rows = self.rows[group]
            values = one.few
            if values is None or name in many:
                values = one.most_frequent(rows)
            for value, count in values.items():
                yield group, name, value, count, rows, name in many and one.is_least


def frequent_values(store: Store, days: Days, spec: PipelineSpec) -> pd.DataFrame | None:
    """The number of quarantine rows by value; None: no quarantine.

    Columns: `group` (late or malformed), `column`, `value`, `records`, `of`: the rows of the group,
    `is_least`: whether there may be more records. Only text, integer and boolean columns of the
    source count; of a column with many values the frequent ones, if one has a fifth of the rows.
    The rows are read batch by batch, so that only a bounded number of counts is in memory.
    """
    table = store.table(QUARANTINE.name)
    if table is None:
        return None
    dataset, rows = days_of(table, QUARANTINE.name, days)
    names = _candidates(columns_of(table), spec)
    groups = _Groups()
    for batch in dataset.to_batches(columns=["reason", *names], filter=rows):
        groups.count(batch, names)
    return pd.DataFrame([*groups.shown()], columns=_COLUMNS)


def _candidates(schema: pa.Schema, spec: PipelineSpec) -> list[str]:
    """The columns that may have frequent values: columns of the source, but no times."""
    ours = {*QUARANTINE.columns, spec.source.arrival_date}

    def is_plain(kind: pa.DataType) -> bool:
        texts = pt.is_string(kind) or pt.is_large_string(kind)
        return bool(texts or pt.is_boolean(kind) or pt.is_integer(kind))

    names = [f.name for f in schema if f.name not in ours and is_plain(f.type)]
    return names[:_MOST_COLUMNS]
