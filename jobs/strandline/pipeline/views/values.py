"""The frequent values of columns among late and among malformed rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
        frequent: the rows by value, shortened, and hash of the whole value, of the values that are
            frequent so far.
        is_least: whether `frequent` is without some rows, whose value was rare when they were read.
    """

    few: Counter[str | None] | None = field(default_factory=Counter)
    frequent: Counter[tuple[str | None, int]] = field(default_factory=Counter)
    is_least: bool = False

    def count(self, values: pa.Array) -> None:
        """Count the values of a batch."""
        found = values.value_counts()
        counts, shown = found.field("counts"), min(len(found), _MOST_RAW_VALUES)
        most = pc.array_sort_indices(counts, order="descending")[:shown]
        counted = zip(
            found.field("values").take(most).to_pylist(),
            counts.take(most).to_pylist(),
            strict=True,
        )
        self._add(((None if value is None else str(value), count) for value, count in counted))
        if shown < len(found) or len(self.few or ()) > _MOST_VALUES:
            self.few = None
        self.is_least |= shown < len(found)
        if len(self.frequent) > 2 * _MOST_RAW_VALUES:
            self.frequent = Counter(dict(self.frequent.most_common(_MOST_RAW_VALUES)))
            self.is_least = True

    def _add(self, counted: Iterable[tuple[str | None, int]]) -> None:
        for value, count in counted:
            shortened = None if value is None else value[:_LONGEST]
            self.frequent[shortened, hash(value)] += count
            if self.few is not None:
                self.few[shortened] += count

    def shown(self, rows: int) -> Counter[str | None]:
        """The rows by value, shortened; of many values none, unless one is frequent among rows."""
        if self.few is not None:
            return self.few
        found: Counter[str | None] = Counter()
        if max(self.frequent.values()) >= _FREQUENT * rows:
            for (value, _), count in self.frequent.items():
                found[value] += count
        return found


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
        """The rows of `frequent_values`."""
        for (group, name), one in self.counted.items():
            rows, is_least = self.rows[group], one.few is None and one.is_least
            for value, count in one.shown(rows).items() if self._varies(name) else ():
                yield group, name, value, count, rows, is_least

    def _varies(self, name: str) -> bool:
        """Whether a column has more than one value, shortened, among the rows of both groups."""
        found: set[str | None] = set()
        for (_, column), one in self.counted.items():
            if column == name:
                if one.few is None:
                    return True
                found.update(one.few)
        return len(found) > 1


def frequent_values(store: Store, days: Days, spec: PipelineSpec) -> pd.DataFrame | None:
    """The number of quarantine rows by value; None: no quarantine.

    Columns: `group` (late or malformed), `column`, `value`, `records`, `of`: the rows of the group,
    `is_least`: whether there may be more records. Only text, integer and boolean columns of the
    source count, if they have more than one value in both groups together; of a column with many
    values in a group the frequent ones, if one has a fifth of the group's rows.
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
