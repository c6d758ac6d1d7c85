"""Rows that must leave a table: found by a condition, and deleted without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from strandline.errors import InputError, problem_of
from strandline.lake.reads import columns_of
from strandline.lake.rewrite import in_days
from strandline.spec.join import SIDES

_MEETS = "_strandline_meets"
_OWN = "_strandline_own_"
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_NO_PREDICATE = re.compile(r";|--|/\*|\bselect\b|\bover\b|['\"`]", re.IGNORECASE)
"""What ends a predicate, asks a question of its own, or opens a quotation that nothing closes."""


def require_predicate(expression: str) -> None:
    """Refuse what is more than a condition on a row, before anything parses it.

    Raises:
        InputError: it is empty, or holds a statement, a comment, a subquery or an open quotation.
    """
    rest = _QUOTED.sub("", expression)
    found = _NO_PREDICATE.search(rest)
    what = f"{found.group()!r} outside of quotes" if found else None
    if not rest.strip():
        what = "nothing is compared"
    depths = [*accumulate({"(": 1, ")": -1}.get(sign, 0) for sign in rest)]
    if min(depths, default=0) < 0:
        what = "a parenthesis that nothing opens"
    if what is not None:
        raise InputError(
            "--where", f"no condition on a row ({what})", "write one such as device = 'd-1'"
        )


def matching(table: DeltaTable, expression: str, sides: Sequence[str] = ()) -> int:
    """How many rows of a table meet a condition.

    Args:
        table: whose rows.
        expression: the condition.
        sides: of a table of pairs: a pair counts if the record of one of these sides meets it.

    Raises:
        InputError: it is none on a row of this table.
    """
    judged = _judged(table, expression, sides)
    found = pa.table(_asked(table, f"SELECT count(*) AS found FROM ({judged}) WHERE {_MEETS}"))
    return int(found["found"][0].as_py())


def sides_with_columns(table: DeltaTable, expression: str) -> list[str]:
    """The sides of a table of pairs whose records have all columns that a condition names."""
    found = []
    for side in SIDES:
        with suppress(InputError):
            matching(table, expression, [side])
            found.append(side)
    return found


def erase(
    table: DeltaTable, partition: str, expression: str, by: str, sides: Sequence[str] = ()
) -> None:
    """Delete the rows that meet a condition, in one commit; none if no row does.

    The dates of such rows are written anew, a few rows at a time: what delta-rs itself deletes from
    leaves files whose texts are of a type that Arrow does not compare with others.

    Args:
        table: partitioned by one date; call it under the lock.
        partition: that column.
        expression: the condition.
        by: named in the commit.
        sides: see `matching`.

    Raises:
        InputError: it is none on a row of this table.
    """
    judged = _judged(table, expression, sides)
    dates = f'SELECT DISTINCT "{partition}" AS day FROM ({judged}) WHERE {_MEETS}'
    days = pa.table(_asked(table, dates))["day"].combine_chunks()
    if not len(days):
        return
    of_days, schema = in_days(partition, days), columns_of(table)
    kept = _asked(table, f"SELECT * FROM ({judged}) WHERE ({of_days}) AND NOT {_MEETS}")
    rows = (pa.record_batch(batch).select(schema.names).cast(schema) for batch in kept)
    write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(schema, rows),
        mode="overwrite",
        predicate=of_days,
        commit_properties=CommitProperties({"userMetadata": by}),
    )


def _judged(table: DeltaTable, expression: str, sides: Sequence[str]) -> str:
    """A query for the rows of a table, with `_MEETS`: whether a row meets a condition.

    Of a pair the record of one side is looked at after the other's, as a row of its own.
    """
    require_predicate(expression)
    names = columns_of(table).names
    own = {name: f"{_OWN}{name}" for name in names}
    seen_as = [_record_of(side, names) for side in sides] or [{name: name for name in names}]
    query = f"SELECT *, false AS {_MEETS} FROM rows"
    for record in seen_as:
        aside = _renamed({hidden: name for name, hidden in own.items()})
        query = (
            f"SELECT {_renamed(own)}, {_MEETS} OR coalesce(({expression}\n), false) AS {_MEETS} "
            f"FROM (SELECT {aside}, {_renamed(record)}, {_MEETS} FROM ({query}))"
        )
    return query


def _renamed(columns: Mapping[str, str]) -> str:
    """Columns in a query, by the names that they get there."""
    return ", ".join(f"{_quoted(column)} AS {_quoted(name)}" for name, column in columns.items())


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _record_of(side: str, names: Sequence[str]) -> dict[str, str]:
    """The columns of one side's record in a pair by its own names, with those of the pair."""
    prefixes = tuple(f"{name}_" for name in SIDES)
    of_pair = {name: name for name in names if not name.startswith(prefixes)}
    of_side = {name.removeprefix(f"{side}_"): name for name in names if name.startswith(f"{side}_")}
    return of_pair | of_side


def _asked(table: DeltaTable, question: str) -> Any:
    try:
        return QueryBuilder().register("rows", table).execute(question)
    except Exception as error:  # noqa: BLE001 - whatever the parser says, it is about the condition
        raise _refused(error) from None


def _refused(error: Exception) -> InputError:
    return InputError(
        "--where",
        f"no condition on a row of this table ({problem_of(error)})",
        "compare columns as strandline read PIPELINE quarantine shows them, texts in single quotes",
    )
