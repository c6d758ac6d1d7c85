"""diff of little: what `diff.py` says, from Arrow's tables and without Spark.

Each query of Spark's costs a good part of a second however few its rows are; a scheduled day has
few. Whatever Arrow compares in another way, or holds in other types, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow import fs

from strandline.lake.diff import DELETE, INSERT, NOT_COMPARED, OP, TOLERANCE, UPDATE
from strandline.lake.places import path_of
from strandline.lake.reads import dataset_of

SMALL_BYTES = 8 * 2**20
"""What the files of small tables, or of the part of one that is asked for, weigh at most."""
_ROW = "row"
_Numbers: TypeAlias = npt.NDArray[np.int64]


def staged_rows(place: str) -> pa.Table | None:
    """A staged part that is small; None: it is not, or does not lie in a folder."""
    folder = path_of(place)
    files = [] if folder is None else sorted(folder.glob("*.parquet"))
    if not files or sum(file.stat().st_size for file in files) > SMALL_BYTES:
        return None
    names = [str(file) for file in files]
    return ds.dataset(names, format="parquet", filesystem=fs.LocalFileSystem()).to_table()


def published_rows(
    table: DeltaTable, wanted: ds.Expression, files: str | None = None
) -> pa.Table | None:
    """Rows of a published table; None: the files that may hold some are not small.

    `files`: in which files they may be (`dataset_of`).
    """
    log = pa.table(table.get_add_actions())
    bytes_of = dict(zip(log["path"].to_pylist(), log["size_bytes"].to_pylist(), strict=True))
    rows = dataset_of(table, files)
    # a file that the log names otherwise, as one of another folder, counts as large
    held_in = [bytes_of.get(file.path, SMALL_BYTES + 1) for file in rows.get_fragments(wanted)]
    if sum(held_in) > SMALL_BYTES:
        return None
    return rows.to_table(filter=wanted)


def small_diff(staged: pa.Table, published: pa.Table, keys: Sequence[str]) -> pa.Table | None:
    """The rows to insert, update and delete, each with its `OP`, as `diff` has them.

    Args:
        staged: what shall stand.
        published: what stands in the same scope.
        keys: the columns that identify a row; compared null-safely.

    Returns:
        The changes, with the columns and types of `published`. None: columns or their types are
        not the same on both sides, Arrow compares some values in another way than Spark, or a key
        stands twice on one side.
    """
    if not _compares_as_spark(staged.schema, published.schema, keys):
        return None
    staged = staged.select(published.schema.names).cast(published.schema)
    matched = _matched(staged.select(keys), published.select(keys))
    if matched is None:
        return None
    mine = staged.take(matched.both)
    parts = {
        INSERT: staged.take(matched.staged_alone),
        DELETE: published.take(matched.published_alone),
        UPDATE: mine.filter(_differ(mine, published.take(matched.with_staged), keys)),
    }
    return pa.concat_tables(
        rows.add_column(0, OP, pa.repeat(op, len(rows))) for op, rows in parts.items()
    )


def _compares_as_spark(staged: pa.Schema, published: pa.Schema, keys: Sequence[str]) -> bool:
    """Whether Arrow finds equal what Spark does, in keys and in all else."""
    return (
        alike(staged, published)
        and not any(map(_holds_numbers, published.types))
        and are_comparable(published, keys)
    )


def _differ(staged: pa.Table, published: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Row by row whether a column differs that is compared."""
    differs = np.zeros(len(staged), dtype=bool)
    for name in set(staged.column_names) - {*keys, *NOT_COMPARED}:
        differs |= differ(staged[name], published[name])
    return pa.array(differs)


def of_same_keys(
    rows: pa.Table, others: pa.Table, keys: Sequence[str]
) -> tuple[pa.Table, pa.Table] | None:
    """The rows of two tables whose key stands in both, those of one key in the same place.

    None: a key stands twice in one of them.
    """
    matched = _matched(rows.select(keys), others.select(keys))
    return None if matched is None else (rows.take(matched.both), others.take(matched.with_staged))


def differ(some: pa.ChunkedArray, others: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Pair by pair whether two values differ, as a diff has it."""
    different: npt.NDArray[np.bool_] = ~_equal(some, others)
    return different


@dataclass(frozen=True)
class _Matched:
    """Rows of two tables by their keys, as row numbers.

    Attributes:
        both: the staged rows whose key is published, too; `with_staged`: the published rows of
            these keys, in the same order.
        staged_alone: the staged rows whose key is not published.
        published_alone: the published rows whose key is not staged.
    """

    both: _Numbers
    with_staged: _Numbers
    staged_alone: _Numbers
    published_alone: _Numbers


def _matched(staged: pa.Table, published: pa.Table) -> _Matched | None:
    """Match the keys of two tables; None: one stands twice on one side."""
    groups = by_key(staged, published)
    first, last, count = (groups[name].to_numpy() for name in ("row_min", "row_max", "row_count"))
    behind = len(staged)  # the numbers of published rows begin here
    both, alone = count == 2, first[count == 1]
    of_one_side = (first >= behind) | (last < behind)
    if (count > 2).any() or (both & of_one_side).any():
        return None
    return _Matched(
        both=first[both],
        with_staged=last[both] - behind,
        staged_alone=alone[alone < behind],
        published_alone=alone[alone >= behind] - behind,
    )


def by_key(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Groups of rows of one key, in two tables that have no other columns; nulls are equal.

    Columns: `row_min`, `row_max`, `row_count` and `row_list`: numbers of rows, those of the second
    table behind those of the first.
    """
    names = [str(place) for place in range(rows.num_columns)]
    both = pa.concat_tables([rows.rename_columns(names), others.rename_columns(names)])
    numbered = both.append_column(_ROW, pa.array(np.arange(len(both))))
    measures = ("min", "max", "count", "list")
    return numbered.group_by(names).aggregate([(_ROW, what) for what in measures])


def are_comparable(schema: pa.Schema, keys: Sequence[str]) -> bool:
    """Whether Arrow finds just those keys equal that Spark does (not of -0.0, NaN, structs)."""
    kinds = [schema.field(key).type for key in keys]
    return not any(pa.types.is_nested(kind) or pa.types.is_floating(kind) for kind in kinds)


def alike(staged: pa.Schema, published: pa.Schema) -> bool:
    """Whether two tables have the same columns, by name and type, in whatever order."""
    return sorted(staged.names) == sorted(published.names) and all(
        staged.field(field.name).type == field.type for field in published
    )


def _holds_numbers(kind: pa.DataType) -> bool:
    """Whether a nested type holds what Python finds equal in another way than Spark: or maps."""
    if not pa.types.is_nested(kind):
        return False
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    floating = any(map(pa.types.is_floating, inner))
    return floating or pa.types.is_map(kind) or any(map(_holds_numbers, inner))


def _equal(staged: pa.ChunkedArray, published: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Pair by pair whether two values are equal; nulls are, and numbers nearly so."""
    if pa.types.is_nested(staged.type):
        pairs = zip(staged.to_pylist(), published.to_pylist(), strict=True)
        return np.array([one == other for one, other in pairs], dtype=bool)
    neither = pc.and_(pc.is_null(staged), pc.is_null(published)).to_numpy()
    equal: npt.NDArray[np.bool_] = pc.equal(staged, published).fill_null(False).to_numpy()
    equal = equal | neither
    return equal | _near(staged, published) if pa.types.is_floating(staged.type) else equal


def _near(staged: pa.ChunkedArray, published: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether two numbers differ, relatively, by no more than sums in another order do."""
    known: npt.NDArray[np.bool_] = pc.and_(pc.is_valid(staged), pc.is_valid(published)).to_numpy()
    one, other = (values.fill_null(0).to_numpy() for values in (staged, published))
    larger = np.maximum(np.abs(one), np.abs(other)).astype(float)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(larger) & (np.abs(one - other) <= TOLERANCE * larger)
    same: npt.NDArray[np.bool_] = near | (np.isnan(one) & np.isnan(other))
    return known & same
