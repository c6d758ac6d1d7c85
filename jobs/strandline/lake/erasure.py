"""Rows that must leave a table: found by a condition, and deleted without Spark."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from strandline.errors import InputError, problem_of
from strandline.lake.reads import columns_of
from strandline.lake.rewrite import in_days

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_NO_PREDICATE = re.compile(r";|--|/\*|\bselect\b|['\"`]", re.IGNORECASE)
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


def matching(table: DeltaTable, expression: str) -> int:
    """How many rows of a table meet a condition.

    Raises:
        InputError: it is none on a row of this table.
    """
    require_predicate(expression)
    found = pa.table(_asked(table, f"SELECT count(*) AS found FROM rows WHERE ({expression}\n)"))
    return int(found["found"][0].as_py())


def erase(table: DeltaTable, partition: str, expression: str, by: str) -> None:
    """Delete the rows that meet a condition, in one commit; none if no row does.

    The dates of such rows are written anew, a few rows at a time: what delta-rs itself deletes from
    leaves files whose texts are of a type that Arrow does not compare with others.

    Args:
        table: partitioned by one date; call it under the lock.
        partition: that column.
        expression: the condition.
        by: named in the commit.

    Raises:
        InputError: it is none on a row of this table.
    """
    require_predicate(expression)
    dates = f'SELECT DISTINCT "{partition}" AS day FROM rows WHERE ({expression}\n)'
    days = pa.table(_asked(table, dates))["day"].combine_chunks()
    if not len(days):
        return
    of_days, schema = in_days(partition, days), columns_of(table)
    kept = _asked(table, f"SELECT * FROM rows WHERE ({of_days}) AND ({expression}\n) IS NOT TRUE")
    rows = (pa.record_batch(batch).select(schema.names).cast(schema) for batch in kept)
    write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(schema, rows),
        mode="overwrite",
        predicate=of_days,
        commit_properties=CommitProperties({"userMetadata": by}),
    )


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
