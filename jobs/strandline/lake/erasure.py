"""Rows that must leave a table for good: found by a predicate, deleted, and no old version kept."""

from __future__ import annotations

import re
from itertools import accumulate

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder

from strandline.errors import InputError, problem_of

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
    question = f"SELECT count(*) AS found FROM rows WHERE ({expression}\n)"
    try:
        answer = QueryBuilder().register("rows", table).execute(question).read_all()
    except Exception as error:  # noqa: BLE001 - whatever the parser says, it is about the condition
        raise _refused(error) from None
    return int(pa.table(answer)["found"][0].as_py())


def erase(table: DeltaTable, expression: str) -> None:
    """Delete the rows that meet a condition, in one commit; call it under the lock.

    Raises:
        InputError: it is none on a row of this table, or some of the rows would stay.
    """
    if not matching(table, expression):
        return
    try:
        table.delete(expression, commit_properties=CommitProperties({"userMetadata": "erase"}))
    except Exception as error:  # noqa: BLE001 - the same
        raise _refused(error) from None
    if left := matching(table, expression):
        raise InputError(
            "--where", f"{left:,} rows that meet it were not deleted", "write it in other words"
        )


def _refused(error: Exception) -> InputError:
    return InputError(
        "--where",
        f"no condition on a row of this table ({problem_of(error)})",
        "compare columns as strandline read PIPELINE quarantine shows them, texts in single quotes",
    )
