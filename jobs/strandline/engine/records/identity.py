"""The identity of a landed row, independent of the file that contains it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.frames import executor_of
from strandline.engine.records.exact_json import OPTIONS, Field, exact_json
from strandline.engine.records.expressions import quoted
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT


@dataclass(frozen=True)
class SourceColumns:
    """The landing table's own columns, as far as they identify its rows.

    A null column counts as a missing one, so that a row keeps its identity when the table gets a
    new column.

    Attributes:
        names: the names of all columns.
        nulls_counted: columns whose nulls were part of the identity of rows that are still
            published (see docs/decisions/0007).
        of_sides: for two landing tables, by side: the name of each column in the combined table
            (`side_by_side`).
        kinds: the types of the columns, if the engine writes JSON differently from Spark (see
            `exact_json`).
    """

    names: tuple[str, ...]
    nulls_counted: frozenset[str] = frozenset()
    of_sides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kinds: Mapping[str, T.DataType] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: DataFrame, names: Iterable[str] | None = None) -> SourceColumns:
        """The columns of a landing table; only `names`, if the DataFrame has others."""
        return cls(tuple(rows.columns if names is None else names), kinds=kinds_to_write(rows))

    def of_side(self, name: str) -> Mapping[str, str]:
        """The columns of one of two landing tables; all columns, if its own are not known."""
        return self.of_sides.get(name, _as_named(self.names))


def kinds_to_write(rows: DataFrame) -> dict[str, T.DataType]:
    """The types of columns, if the engine writes JSON differently from Spark; otherwise none."""
    if executor_of(rows.sparkSession).answers_as_spark:
        return {}
    return {field.name: field.dataType for field in rows.schema.fields}


def identity(spec: PipelineSpec, source: SourceColumns) -> Column:
    """A hash of a record's identity: `source.id` (default: the whole row) and its arrival.

    Each of two sources has its own `id`, and the side is part of the identity.
    """
    arrival = F.coalesce(F.col(c.ARRIVAL).cast("string"), F.lit(""))
    text = _identifying(spec, source)
    return F.substring(F.sha2(F.concat_ws("|", text, arrival), 256), 1, 32)


def _identifying(spec: PipelineSpec, source: SourceColumns) -> Column:
    if not source.of_sides:
        names = _as_named(spec.source.id or source.names)
        return _as_text(names, source, source.nulls_counted)
    # side by side, so that nothing changes as one table gets a column that the other one has
    left, right = (_as_text(_identifying_of(spec, source, name), source) for name in SIDES)
    return F.when(F.col(INPUT) == SIDES[0], left).otherwise(right)


def _identifying_of(spec: PipelineSpec, source: SourceColumns, side: str) -> dict[str, str]:
    """The columns that identify the records of a side, with their names in the combined table."""
    columns = source.of_side(side)
    names = spec.ids_of_sides.get(side, tuple(columns))
    return {name: columns.get(name, name) for name in names} | {INPUT: INPUT}


def content(source: SourceColumns) -> Column:
    """A hash of a whole row, which orders rows that are otherwise equal."""
    return F.sha2(_as_text(_as_named(source.names), source, source.nulls_counted), 256)


def content_of(record: Column, names: Mapping[str, str], source: SourceColumns) -> Column:
    """A hash of some columns of a struct; orders rows as `content` does."""
    return F.sha2(_json(names, record.__getitem__, source, nulls=False), 256)


def _as_named(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


def _as_text(
    names: Mapping[str, str], source: SourceColumns, nulls_counted: frozenset[str] = frozenset()
) -> Column:
    """Columns as one text: first columns whose nulls count, then other columns that are not null.

    Args:
        names: each column's name in the text, and its name in the rows.
        source: all columns of the landing.
        nulls_counted: see `SourceColumns`.
    """
    before = {name: own for name, own in names.items() if name in nulls_counted}
    others = {name: own for name, own in names.items() if name not in nulls_counted}
    texts = [_json(before, quoted, source, nulls=True)] * bool(before)
    if others:
        written = _json(others, quoted, source, nulls=False)
        # null values are left out, so that a row without any of these columns keeps its text
        texts.append(F.nullif(written, F.lit("{}")) if before else written)
    return F.concat_ws("|", *texts)


def _json(
    names: Mapping[str, str],
    column: Callable[[str], Column],
    source: SourceColumns,
    *,
    nulls: bool,
) -> Column:
    if source.kinds:
        text = T.StringType()  # INPUT, which no landing table has
        fields = (Field(n, column(own), source.kinds.get(own, text)) for n, own in names.items())
        return exact_json(fields, nulls=nulls)
    options = {**OPTIONS, "ignoreNullFields": "false" if nulls else "true"}
    return F.to_json(F.struct(*(column(own).alias(n) for n, own in names.items())), options)
