"""The forms of functions of times that Sail computes differently for some years and zones."""

from __future__ import annotations

from collections.abc import Callable

from strandline.sql.form import AS_IT_IS, Form, Types, checked, first_as
from strandline.sql.operations import Operation

_FIXED = {"EST": "Etc/GMT+5", "HST": "Etc/GMT+10", "MST": "Etc/GMT+7"}
"""Zones that have one offset on Spark at all times."""
OF_ZONES = (
    *("convert_timezone", "from_utc_timestamp", "to_utc_timestamp", "make_timestamp"),
    *("make_timestamp_ltz", "try_make_timestamp", "try_make_timestamp_ltz"),
)
"""The functions that take zones."""
_CASES = " ".join(f"WHEN '{name}' THEN '{same}'" for name, same in _FIXED.items())


def _with_year(operation: Operation, types: Types) -> Form:
    """A time as text, which Sail writes differently beyond the years 1 to 9999."""
    time = "timestamp_seconds({0})" if operation.name == "from_unixtime" else "{0}"
    if not types or (time == "{0}" and "y" not in str(operation.written(1))):
        return AS_IT_IS
    problem = f"{operation.name}() beyond the years 1 to 9999"
    return first_as(checked(f"year({time}) BETWEEN 1 AND 9999", problem), types)


def _zoned(operation: Operation, types: Types) -> Form:
    """A time in a zone by its name: from 2100 on Sail has the offset of December all year."""
    if len(types) < (7 if "make_" in operation.name else 2):
        return AS_IT_IS
    at, zones, until = 0, [1], "timestamp'2100-01-01 00:00:00' OR month({0}) IN (12, 1, 2)"
    if operation.name == "convert_timezone":
        *zones, at = range(len(types))
    elif operation.name not in {"from_utc_timestamp", "to_utc_timestamp"}:
        zones, until = [6], "2100"
    forms = ["{0}" for _ in types]
    forms[at] = checked(f"({{0}}) < {until}", f"{operation.name}() in summers after 2099")
    for place in zones:
        if operation.written(place) in {None, *_FIXED}:
            forms[place] = f"CASE {{0}} {_CASES} ELSE {{0}} END"
    return Form(operands=tuple(forms))


FORMS_OF_TIMES: dict[str, Callable[[Operation, Types], Form]] = {
    **dict.fromkeys(("date_format", "from_unixtime", "to_char"), _with_year),
    **dict.fromkeys(OF_ZONES, _zoned),
}
"""The rules by the names of functions."""
