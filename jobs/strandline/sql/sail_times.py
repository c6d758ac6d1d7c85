"""Operations on times, and casts of texts, as SQL with which Sail gives Spark's results.

Each function takes an operation with the types of its operands and returns the SQL to compute it
by; None if Sail computes it as Spark does.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.sql.column_types import WHOLE
from strandline.sql.operations import Operation

_PER_SECOND = 10**6
_MICROS_IN = {"unix_millis": 1000}
_MICROS_OF = {"timestamp_millis": 1000, "timestamp_seconds": _PER_SECOND}
_HOURS_IN = {"day": 24, "week": 168}
_MOST_MICROS = 2**63 - 1
_MOST_SECONDS = _MOST_MICROS // _PER_SECOND
"""More seconds have no TIMESTAMP: Spark takes the last one, Sail goes on at the other end."""
_ONLY_ON_SAIL = {
    "boolean": "'on', 'of', 'off', 'tr', 'tru', 'ye', 'fa', 'fal', 'fals'",
    **dict.fromkeys(("double", "float"), "'-nan', '+nan'"),
}
"""Texts that Sail takes for values of a type, and Spark does not."""


def since_1970(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The whole units since 1970 of a time, rounded down, also before 1970."""
    if types not in (["timestamp"], ["timestamp_ntz"]) or operation.name == "try_cast":
        return None
    if operation.name == "cast" and operation.to not in WHOLE:
        return None
    micros = f"unix_micros(CAST({operation.operands[0].text} AS TIMESTAMP))"
    unit = _MICROS_IN.get(operation.name, _PER_SECOND)
    kind = operation.to or "bigint"
    return f"CAST(({micros} - pmod({micros}, {unit})) DIV {unit} AS {kind})"


def after_1970(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The time of some seconds or milliseconds since 1970, which fails where it overflows."""
    if types != ["bigint"]:
        return None
    name, number = operation.name, operation.operands[0].text
    most = _MOST_MICROS // _MICROS_OF[name]
    fails = f"raise_error('[ARITHMETIC_OVERFLOW] {name}() overflows')"
    is_in = f"{number} BETWEEN -{most} AND {most}"
    return f"CASE WHEN {is_in} THEN {name}({number}) WHEN {number} IS NOT NULL THEN {fails} END"


def to_time(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The time of some seconds since 1970, at most the last one."""
    if operation.to != "timestamp" or types != ["bigint"]:
        return None
    seconds = f"least({operation.operands[0].text}, {_MOST_SECONDS})"
    return f"{operation.name}(greatest({seconds}, -{_MOST_SECONDS}) AS TIMESTAMP)"


def of_text(operation: Operation, types: Sequence[str | None]) -> str | None:
    """A text as a BOOLEAN or a number."""
    words = _ONLY_ON_SAIL.get(operation.to or "")
    if words is None or types != ["string"]:
        return None
    text = operation.operands[0].text
    word = f"lower(trim(BOTH ' \\t\\n\\r' FROM {text}))"
    as_on_spark = f"CASE WHEN {word} IN ({words}) THEN concat('?', {text}) ELSE {text} END"
    return f"{operation.name}({as_on_spark} AS {operation.to})"


def whole_units(operation: Operation, types: Sequence[str | None]) -> str | None:
    """The whole days or weeks between two times, of which Sail counts the midnights."""
    if len(types) != 3:
        return None
    unit, start, end = (part.text for part in operation.operands)
    hours = _HOURS_IN.get(unit.lower())
    return None if hours is None else f"(timestampdiff(HOUR, {start}, {end}) DIV {hours})"
