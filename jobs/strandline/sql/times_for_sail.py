"""The forms of functions of times that Sail computes differently for some values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from strandline.sql.differences import AS_IT_IS, Form, Types, checked, first_as
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


_ENDS = r"[\\x00- \\x7F]*"
_DAY = "[+-]?[0-9]+-[0-9]+-[0-9]+"
_READ = f"regexp_replace({{0}}, '(?s)^{_ENDS}(?:({_DAY})[ T].*|(.*?){_ENDS})$', '$1$2')"
DAY = rf"regexp_replace({_READ}, '(?s)^(.*[\\t-\\r ].*)$', '($1)')"
"""A text as Sail casts it to the DATE that Spark makes of it, or to none where Spark makes none.

Spark trims blanks and control characters, and reads nothing behind a day with `T` or a blank, not
even an offset. Sail reads nothing behind any white space, not even of '2024 Q1', and knows no `T`:
in brackets a text is no date to either.
"""
DATE = f"CAST({DAY} AS DATE)"
_TIME, _DAYS, _AS_IT_IS = "CAST({0} AS TIMESTAMP)", "CAST({0} AS INT)", "{0}"
PLAIN = re.compile(r"'\d{4}-\d\d-\d\d'")
"""Matches the literal of a date that both engines read in the same way everywhere."""
UNITS_OF_TIMES = {
    *("hour", "h", "hours", "hr", "hrs", "minute", "m", "min", "mins", "minutes"),
    *("second", "s", "sec", "seconds", "secs"),
}
"""The units for which EXTRACT reads a TIMESTAMP of a text, and not a DATE."""
_OF_PARTS = ("extract", "date_part", "datepart")
_CASTS: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("add_months", "date_add", "date_sub"), ((DATE, _DAYS),)),
    **dict.fromkeys(("date_diff", "datediff"), ((DATE, DATE), (_AS_IT_IS, _TIME, _TIME))),
    **dict.fromkeys(
        (
            *("day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "last_day", "month"),
            *("monthname", "quarter", "to_date", "weekofyear", "year"),
        ),
        ((DATE,),),
    ),
    **dict.fromkeys(("hour", "minute", "second"), ((_TIME,),)),
    "months_between": ((_TIME, _TIME), (_TIME, _TIME, _AS_IT_IS)),
    **dict.fromkeys(("next_day", "trunc"), ((DATE, _AS_IT_IS),)),
    "timestampdiff": ((_AS_IT_IS, _TIME, _TIME),),
}
"""What Spark reads of texts, by the functions; for each number of operands."""


def _read(operation: Operation, types: Types) -> Form:
    """A function of dates, times or days that are read of texts."""
    if operation.name in _OF_PARTS:
        return read_of_texts(
            operation, types, (_AS_IT_IS, _TIME if operation.word(0) in UNITS_OF_TIMES else DATE)
        )
    casts = (one for one in _CASTS[operation.name] if len(one) == len(types))
    return read_of_texts(operation, types, next(casts, (_AS_IT_IS,) * len(types)))


def read_of_texts(operation: Operation, types: Types, casts: Sequence[str]) -> Form:
    """An operation with casts of its texts, and with all other operands as they are."""
    forms = tuple(
        cast if kind == "string" and not PLAIN.fullmatch(one.literal or "") else _AS_IT_IS
        for one, kind, cast in zip(operation.operands, types, casts, strict=False)
    )
    return AS_IT_IS if {*forms} == {_AS_IT_IS} else Form(operands=forms)


def _of_units(operation: Operation, types: Types) -> Form:
    """The time of some units since 1970, which fails where its microseconds overflow."""
    if [*types] != ["bigint"]:
        return AS_IT_IS
    micros = 1000 if operation.name == "timestamp_millis" else 1_000_000
    if (operation.operands[0].text or "").isidentifier():  # of a column, compared in less time
        most = (2**63 - 1) // micros
        name = "timestamp_millis" if micros == 1000 else "timestamp_seconds"
        fails = f"raise_error('{operation.name} overflows')"
        is_in = f"{{0}} BETWEEN -{most} AND {most}"
        return Form(f"CASE WHEN {is_in} THEN {name}({{0}}) WHEN {{0}} IS NOT NULL THEN {fails} END")
    return Form(f"timestamp_micros(CAST(CAST({{0}} AS DECIMAL(20, 0)) * {micros} AS BIGINT))")


FORMS_OF_TIMES: dict[str, Callable[[Operation, Types], Form]] = {
    **dict.fromkeys(("date_format", "from_unixtime", "to_char"), _with_year),
    **dict.fromkeys(OF_ZONES, _zoned),
    **dict.fromkeys(("timestamp_millis", "timestamp_seconds"), _of_units),
    **dict.fromkeys((*_CASTS, *_OF_PARTS), _read),
}
"""The rules by the names of functions."""
