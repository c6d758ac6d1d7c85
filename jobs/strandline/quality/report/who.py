"""The column values that are frequent among late or malformed rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from strandline.quality.figures import percent

_MOST_COLUMNS = 8
_MOST_VALUES = 4
_STANDS_OUT = 0.2
"""How far above an equal part the share of a value is that stands out."""


@dataclass(frozen=True)
class Culprit:
    """A value of a column, and the number of rows with it."""

    value: str
    records: int
    share: str


@dataclass(frozen=True)
class Culprits:
    """The most frequent values of a column among late or malformed rows.

    Attributes:
        column: the column.
        values: its most frequent values, the most frequent first.
        distinct: the number of its values, or at least of the counted ones.
        stands_out: whether the first value is far more frequent than an equal part, or the only
            one.
        is_least: whether the records may be more, and so may the values.
    """

    column: str
    values: tuple[Culprit, ...]
    distinct: int
    stands_out: bool
    is_least: bool = False


@dataclass(frozen=True)
class Who:
    """The columns with frequent values among late or malformed rows.

    Attributes:
        group: `late` or `malformed`.
        records: the number of rows in the group.
        columns: the columns by the frequency of their most frequent value, descending.
    """

    group: str
    records: int
    columns: tuple[Culprits, ...]

    @property
    def found(self) -> Culprits | None:
        """The column whose first value stands out most; None: no value stands out."""
        return next((column for column in self.columns if column.stands_out), None)


def who(values: pd.DataFrame, always: Collection[str] = ()) -> tuple[Who, ...]:
    """The frequent values of late and of malformed rows.

    Args:
        values: the counts of values of columns with more than one: `group`, `column`, `value`
            (text; None: null), `records`, `of`: the rows of the group, `is_least`: whether there
            may be more records.
        always: columns that are listed even without a frequent value.
    """
    return tuple(
        Who(str(group), _records(of_group), columns)
        for group, of_group in values.groupby("group")
        if (columns := _columns(of_group, always))
    )


def _records(of_group: pd.DataFrame) -> int:
    return int(of_group["of"].max())


def _columns(of_group: pd.DataFrame, always: Collection[str]) -> tuple[Culprits, ...]:
    found: list[tuple[float, Culprits]] = []
    for column, rows in of_group.groupby("column"):
        ordered = rows.sort_values("records", ascending=False, kind="stable")
        total, distinct = int(ordered["of"].iloc[0]), len(ordered)
        # how far the first value is above an equal part
        above = ordered["records"].iloc[0] / total - 1 / distinct
        stands_out = distinct == 1 or above >= _STANDS_OUT
        if not stands_out and column not in always:
            continue
        is_least = bool(ordered["is_least"].any())
        of_column = Culprits(str(column), _first(ordered), distinct, stands_out, is_least)
        found.append((above, of_column))
    found.sort(key=lambda one: -one[0])
    return tuple(culprits for _, culprits in found[:_MOST_COLUMNS])


def _first(ordered: pd.DataFrame) -> tuple[Culprit, ...]:
    """The first values of a column that is ordered by records."""
    first = ordered[["value", "records", "of"]].head(_MOST_VALUES)
    return tuple(
        Culprit("(null)" if value is None else str(value), int(many), percent(many, total))
        for value, many, total in first.itertuples(index=False)
    )
