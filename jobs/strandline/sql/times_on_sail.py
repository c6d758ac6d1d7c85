"""Operations on times with another result on Sail than on Spark; see `types_on_sail`."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.sql.column_types import WHOLE, Problem
from strandline.sql.operations import Operation

OF_TIMES_OF_DAY = ("has a type TIME, which Spark has not", "use the TIMESTAMP itself")
OF_ANOTHER_TYPE = {
    "bitmap_bit_position": "BIGINT",
    "bitmap_bucket_number": "BIGINT",
    "date_diff": "INT",
    "datediff": "INT",
    "regexp_count": "INT",
}
"""Functions with another type of whole number than on Spark."""
_UNITS_OF_DAYS = {"day": 1, "week": 7}


def units(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Units of EXTRACT and `date_part`."""
    unit = operation.operands[0].text or ""
    if unit.strip("'\"").lower() in {"dow", "dayofweek", "dow_iso", "dayofweek_iso"}:
        return "begins the week elsewhere", "dayofweek(t)"
    if unit.strip("'\"").lower() == "yearofweek":
        return "has no such unit", "year(date_add(d, 3 - (dayofweek(d) + 5) % 7))"
    if any((kind or "").startswith("interval") for kind in types):
        return "counts the whole interval", "CAST(x AS BIGINT)"
    return None


def truncated(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`date_trunc` of texts and times without a zone."""
    if types[1:] and types[1] in {"string", "timestamp_ntz"}:
        return "gives TIMESTAMP_NTZ", "CAST(x AS TIMESTAMP)"
    return None


def of_seconds(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`timestamp_seconds` of fractions."""
    if types and types[0] not in WHOLE:
        return "leaves out the fraction", "timestamp_millis(CAST(x * 1000 AS BIGINT))"
    return None


def of_another_type(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Whole numbers of another type."""
    if len(types) == 3:
        return whole_units_between(operation, types)
    if operation.type_is_given:
        return None
    kind = OF_ANOTHER_TYPE[operation.name]
    return "gives another type", f"CAST({operation.name}(…) AS {kind})"


def whole_units_between(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Whole days and months from one time to another; hours and less are as on Spark."""
    unit = (operation.operands[0].text or "").lower()
    if unit in {"month", "quarter", "year"}:
        return "counts another month backwards", "CAST(months_between(b, a) AS BIGINT)"
    if (days := _UNITS_OF_DAYS.get(unit)) and {*types[1:]} != {"date"}:
        return "counts midnights", f"timestampdiff(HOUR, a, b) DIV {24 * days}"
    return None
