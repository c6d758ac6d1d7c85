"""The deletion of rows by a condition, without Spark, and of quarantined rows by their age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from strandline.errors import InputError, problem_of
from strandline.lake.store.day_conditions import in_days
from strandline.lake.store.lock import commit
from strandline.lake.store.reads import columns_of, dataset_of
from strandline.lake.store.second_columns import second_columns
from strandline.lake.store.store import Store
from strandline.spec.join import SIDES
from strandline.spec.source import Source
from strandline.tables import QUARANTINE

_OWN = "_strandline_own_"
_NO_COLUMN = "No field named"


def matching(table: DeltaTable, expression: str, sides: Sequence[str] = ()) -> int:
    """The number of rows of a table that meet a condition.

    Args:
        table: the table.
        expression: the condition from `condition_on_row`.
        sides: for a table of pairs: a pair counts if the record of one of these sides meets it.

    Raises:
        InputError: the condition does not apply to the rows of this table.
    """
    left = f"SELECT count(*) FROM ({_kept(table, expression, sides)})"
    found = _answer(table, f"SELECT count(*) - ({left}) AS found FROM rows")
    return int(found["found"][0].as_py())


def sides_with_columns(table: DeltaTable, expression: str) -> list[str]:
    """The sides of a table of pairs whose records have all columns of a condition."""
    return [side for side in SIDES if has_columns(table, expression, [side])]


def has_columns(table: DeltaTable, expression: str, sides: Sequence[str] = ()) -> bool:
    """Whether the rows of a table, or the records of its pairs, have the columns of a condition.

    It reads no rows.
    """
    try:
        _asked(table, f"{_kept(table, expression, sides)} LIMIT 0")
    except InputError as error:
        if _NO_COLUMN in str(error):
            return False
        raise
    return True


def erase(
    table: DeltaTable, partition: str, expression: str, by: str, sides: Sequence[str] = ()
) -> None:
    """Delete the rows that meet a condition, in one commit; none if no row does.

    The dates of such rows are written again, a few rows at a time: delta-rs itself would leave
    files whose texts are of a type that Arrow does not compare with others.

    Args:
        table: a table partitioned by one date; call it under the lock.
        partition: the partition column.
        expression: the condition from `condition_on_row`.
        by: the author that the commit names.
        sides: see `matching`.

    Raises:
        InputError: the condition does not apply to the rows of this table.
    """
    days = _days_of(table, partition, expression, sides)
    if not len(days):
        return
    of_days = in_days(partition, days.to_pylist())
    schema = columns_of(table)
    rows_of_days = f"SELECT * FROM rows WHERE {of_days}"
    kept = _asked(table, _kept(table, expression, sides, rows_of_days))
    rows = (pa.record_batch(batch).select(schema.names).cast(schema) for batch in kept)
    write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(schema, rows),
        mode="overwrite",
        predicate=of_days,
        commit_properties=commit(table.table_uri, by),
    )


def _days_of(table: DeltaTable, partition: str, expression: str, sides: Sequence[str]) -> pa.Array:
    """The dates with rows that meet a condition."""
    day = _in_double_quotes(_OWN + partition)
    dates = (
        f"SELECT {day} AS day FROM ({_seen(table, record, 'rows')}) WHERE {condition}"
        for record, condition in _records_in(table, expression, sides)
    )
    found = _answer(table, f"SELECT DISTINCT day FROM ({' UNION ALL '.join(dates)})")
    return found["day"].combine_chunks()


def _kept(
    table: DeltaTable, expression: str, sides: Sequence[str], rows: str = "SELECT * FROM rows"
) -> str:
    """A query for the rows that do not meet a condition, with the columns of the table.

    For a pair, the condition is applied to the record of each side as if it were a row.
    """
    back = _renamed({name: _in_double_quotes(_OWN + name) for name in columns_of(table).names})
    for record, condition in _records_in(table, expression, sides):
        view = _seen(table, record, f"({rows})")
        rows = f"SELECT {back} FROM ({view}) WHERE ({condition}) IS NOT TRUE"
    return rows


def _seen(table: DeltaTable, record: Mapping[str, str], rows: str) -> str:
    """A query for rows with the columns of a condition; original names get the prefix `_OWN`."""
    aside = _renamed({_OWN + name: _in_double_quotes(name) for name in columns_of(table).names})
    return f"SELECT {aside}, {_renamed(record)} FROM {rows}"


def _records_in(
    table: DeltaTable, expression: str, sides: Sequence[str]
) -> Iterator[tuple[dict[str, str], str]]:
    """The records in a row, each with the condition under which the row is erased for it.

    A record maps the names of its columns to SQL over the row. A column with second columns for
    values of other types gives a record for each, since a row has its value in one of them.
    """
    names, second = columns_of(table).names, second_columns(table)
    for record in [_record_of(side, names) for side in sides] or [{name: name for name in names}]:
        columns_by_name = {
            name: [column, *second[column]]
            for name, column in record.items()
            if column in second and name.lower() in expression.lower()
        }
        own = {name: _in_double_quotes(column) for name, column in record.items()}
        for columns in product(*columns_by_name.values()):
            chosen = dict(zip(columns_by_name, columns, strict=True))
            found = {
                name: _comparable(table, columns_by_name[name][0], column)
                for name, column in chosen.items()
            }
            if all(found.values()):
                others = _others_are_null(columns_by_name, chosen)
                yield own | found, " AND ".join([f"({expression}\n)", *others])


def _others_are_null(
    columns_by_name: Mapping[str, Sequence[str]], chosen: Mapping[str, str]
) -> Iterator[str]:
    """The condition, as SQL, that a row has its values in the chosen columns."""
    for name, columns in columns_by_name.items():
        for column in columns:
            if column != chosen[name]:
                yield f"{_in_double_quotes(_OWN + column)} IS NULL"


def _comparable(table: DeltaTable, column: str, second: str) -> str:
    """A second column as SQL in a type comparable with its column; empty if there is none."""
    kinds = columns_of(table)
    of_column, of_second = kinds.field(column).type, kinds.field(second).type
    name = _in_double_quotes(second)
    if second == column:
        return name
    if pa.types.is_nested(of_column) or pa.types.is_nested(of_second):
        return ""
    return f"CAST({name} AS VARCHAR)" if _is_text(of_column) else name


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _renamed(columns: Mapping[str, str]) -> str:
    """The columns of a query: SQL by the name that each gets."""
    return ", ".join(f"{value} AS {_in_double_quotes(name)}" for name, value in columns.items())


def _in_double_quotes(name: str) -> str:
    """A column's name, of any characters, quoted for a query of delta-rs."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _record_of(side: str, names: Sequence[str]) -> dict[str, str]:
    """The columns of one side's record under their original names, with the pair's own columns."""
    prefixes = tuple(f"{name}_" for name in SIDES)
    of_pair = {name: name for name in names if not name.startswith(prefixes)}
    of_side = {name.removeprefix(f"{side}_"): name for name in names if name.startswith(f"{side}_")}
    return of_pair | of_side


def _answer(table: DeltaTable, question: str) -> pa.Table:
    """The whole result of a query; errors of expressions on values are raised here."""
    rows = _asked(table, question)
    try:
        return pa.table(rows)
    except Exception as error:  # noqa: BLE001 - the class is the reader's own
        raise _refused(error) from None


def _asked(table: DeltaTable, question: str) -> Any:
    try:
        return QueryBuilder().register("rows", table).execute(question)
    except Exception as error:  # noqa: BLE001 - whatever the parser says, it is about the condition
        raise _refused(error) from None


def _refused(error: Exception) -> InputError:
    return InputError(
        "--where",
        f"no condition on a row of this table ({problem_of(error)})",
        "compare columns as strandline read PIPELINE quarantine shows them, texts in single "
        "quotes; TRY_CAST gives null where CAST fails",
    )


def older_rows(store: Store, source: Source, first: date | None) -> int:
    """The number of quarantined rows that arrived before a day; None if there is none.

    Raises:
        InputError: no column of quarantine has the arrival day of a row.
    """
    table = store.table(QUARANTINE.name)
    if table is None or first is None or not table.file_uris():
        return 0
    name = _arrival(table, source, store.pipeline)
    before = pa.scalar(first, pa.date32()).cast(columns_of(table).field(name).type)
    return int(dataset_of(table, _before(name, first)).count_rows(filter=ds.field(name) < before))


def drop_older(store: Store, source: Source, first: date) -> None:
    """Delete the quarantined rows that arrived before a day, in at most one commit.

    Call it under the lock.

    Raises:
        InputError: as for `older_rows`.
    """
    table = DeltaTable(store.uri(QUARANTINE.name))
    condition = _before(_arrival(table, source, store.pipeline), first)
    erase(table, QUARANTINE.partition, condition, "maintain")


def _before(name: str, first: date) -> str:
    return f"{_in_double_quotes(name)} < '{first.isoformat()}'"


def _arrival(table: DeltaTable, source: Source, pipeline: str) -> str:
    """The column of quarantine with the arrival day, or the arrival time, of a row."""
    columns = columns_of(table)
    for asked in filter(None, (source.arrival_date, source.arrival_time)):
        name = f"source_{asked}" if asked.lower() in QUARANTINE.columns else asked
        if name in columns.names:
            kind = columns.field(name).type
            if kind == pa.date32() or pa.types.is_timestamp(kind):
                return name
    raise InputError(
        f"{pipeline}: quarantine_days",
        "no column of the quarantine has the day on which a row arrived",
        "let source.arrival_date or source.arrival_time be a column; or leave quarantine_days out",
    )
