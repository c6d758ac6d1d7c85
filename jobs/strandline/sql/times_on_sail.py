"""Operations on times with another result on Sail than on Spark; see `types_on_sail`."""

from __future__ import annotations

import re

from strandline.sql.calls import NotUnderstood
from strandline.sql.column_types import FLOATS, WHOLE, is_decimal
from strandline.sql.differences import Row, Types
from strandline.sql.operations import COMPARISONS, Operation, operations_of
from strandline.sql.times_for_sail import OF_ZONES, PLAIN, UNITS_OF_TIMES

_DAYS = r"INTERVAL(?:\s+(?:'[^']*'|-?\d+|TO\b|(?:DAY|WEEK|MONTH|QUARTER|YEAR)S?\b))+"
_OF_DAYS = re.compile(
    rf"(?!.*(?:HOUR|MINUTE|SECOND))\(*{_DAYS}(?:\s*[+-]\s*{_DAYS})*\)*", re.I | re.S
)
"""Matches literals, and sums of them; on Spark `INTERVAL 1 DAY * i` may have hours."""
_INTERVAL = re.compile(
    r"\bINTERVAL(?:\s+(?:'[^']*'|-?[\d.]+|TO\b"
    r"|(?:YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|(?:MILLI|MICRO|NANO)?SECOND)S?\b))+",
    re.I,
)
"""Matches a literal with its units; a column `days` beside it is none of them."""
_OFFSET = re.compile(r"'(?:Z'|[+-]|(?:UTC|GMT|UT)[+-])")
"""Matches the literal of a zone such as `'+02:00'`, `'GMT+2'` and `'Z'`."""
_UNITS = {
    *("year", "y", "years", "yr", "yrs", "quarter", "qtr", "month", "mon", "mons", "months"),
    *("week", "w", "weeks", "day", "d", "days", "doy", *UNITS_OF_TIMES),
}
_WEEKS = {"dow", "dayofweek", "dow_iso", "dayofweek_iso"}
_UNITS_OF_TRUNC = {"year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"}


def has_times(operation: Operation, types: Types) -> bool:
    """Whether an operand is a TIMESTAMP, with a zone or without one."""
    return any((kind or "").startswith("timestamp") for kind in types)


def has_intervals(operation: Operation, types: Types) -> bool:
    """Whether an operand is an interval."""
    return any((kind or "").startswith("interval") for kind in types)


def _adds_hours_to_date(operation: Operation, types: Types) -> bool:
    """Whether an interval is added to a DATE that may have hours, which give a TIMESTAMP."""
    spans = [
        one.text or ""
        for one, kind in zip(operation.operands, types, strict=True)
        if (kind or "").startswith("interval")
    ]
    return "date" in types and not all(map(_is_of_days, spans))


def _is_of_days(interval: str) -> bool:
    """Whether an interval has days and longer units alone, as make_interval(y, m, w, d)."""
    made = operations_of(interval)
    if isinstance(made, NotUnderstood) or not made or made[0].name != "make_interval":
        return _OF_DAYS.fullmatch(interval) is not None
    return len(made[0].operands) <= 4


def _mixes_units(operation: Operation, types: Types) -> bool:
    """Whether an operand is an interval of months and days, which Spark has not."""
    return any(_is_mixed(one.text or "") for one in operation.operands)


def _is_mixed(interval: str) -> bool:
    if not re.match(r"\(*INTERVAL\b", interval, re.I):
        return False
    written = " ".join(_INTERVAL.findall(interval))
    return all(re.search(some, written, re.I) for some in ("YEAR|MONTH", "WEEK|DAY|HOUR|MIN|SEC"))


def _is_number(kind: str | None) -> bool:
    return kind in {*WHOLE, *FLOATS} or is_decimal(kind)


def _may_name_zones(operation: Operation, types: Types) -> bool:
    """Whether a time is written by a pattern with `zzzz`, or by a computed one."""
    if operation.name == "to_char" and types[0] != "date" and not has_times(operation, types):
        return False  # a number
    return operation.written(1) is None or "zzzz" in str(operation.written(1))


def _is_read(operation: Operation, types: Types) -> bool:
    """Whether the first operand is a text of a record, of which a time is read."""
    return types[0] == "string" and operation.operands[0].literal is None


def _is_read_otherwise(operation: Operation, types: Types) -> bool:
    """Whether a DATE is compared with texts as one of several types.

    Beside a DATE alone they are written as DATE, but those of `s BETWEEN d AND r` Spark compares as
    texts, in which 2013-1-5 is behind 2013-02-01.
    """
    pairs = zip(operation.operands, types, strict=True)
    texts = [one.literal for one, kind in pairs if kind == "string"]
    if "date" not in types or not texts:
        return False
    is_of_texts = operation.name == "between" and types[0] != "date"
    if None in texts:  # of a record
        return is_of_texts or {*types} - {"void"} != {"date", "string"}
    return is_of_texts and len(texts) > 1 and not all(PLAIN.fullmatch(str(one)) for one in texts)


OF_TIMES: tuple[Row[str], ...] = (
    ("to_date to_timestamp to_timestamp_ltz to_timestamp_ntz try_to_timestamp",
        lambda o, t: len(t) > 1 and _is_number(t[0]),
        "reads no number by a format", "{name}(CAST(x AS STRING), 'yyyyMMdd')"),
    ("to_date to_timestamp_ntz", lambda o, t: _is_number(t[0]),
        "counts days or microseconds", "timestamp_seconds(x)"),
    ("cast try_cast", lambda o, t: o.to in {"date", "timestamp_ntz"} and _is_number(t[0]),
        "makes a time of it, which Spark refuses", "CAST(timestamp_seconds(x) AS {to})"),
    ("add_months date_add date_sub last_day next_day year",
        lambda o, t: _is_number(t[0]),
        "makes dates of numbers", "to_date(CAST(x AS STRING), 'yyyyMMdd') for it"),
    ("date_diff datediff months_between", lambda o, t: any(map(_is_number, t)),
        "makes dates of numbers", "to_date(CAST(x AS STRING), 'yyyyMMdd') for it"),
    ("unix_date unix_micros unix_millis unix_seconds",
        lambda o, t: t[0] not in {"date" if o.name == "unix_date" else "timestamp", "void", None},
        "takes types that Spark refuses", "x cast to DATE or TIMESTAMP"),
    ("+ - date_add date_sub", lambda o, t: len(t) == 2 and "date" in t and "bigint" in t,
        "adds BIGINT days, which Spark refuses", "date_add(d, CAST(x AS INT))"),
    ("date_format",
        lambda o, t: t[0] == "string" and not re.match(r"'\d{4}-", o.operands[0].literal or ""),
        "gives null for a text that is no time", "date_format(CAST(x AS TIMESTAMP), 'yyyy')"),
    ("from_unixtime", _is_read, "reads times", "from_unixtime(CAST(x AS BIGINT))"),
    (" ".join(COMPARISONS),
        lambda o, t: "date" in t and any(map(_is_number, t)),
        "compares dates with numbers, which Spark refuses", "unix_date(d)"),
    (" ".join(COMPARISONS), _is_read_otherwise,
        "takes texts for dates that Spark does not", "CAST(x AS DATE) for it"),
    ("-", lambda o, t: len(t) == 2 and "date" in t and {*t} <= {"date", "string"},
        "gives a whole number", "CAST(datediff(a, b) AS INT)"),
    ("/", has_intervals,
        "cuts off the microseconds", "(unix_micros(b) - unix_micros(a)) / 2"),
    ("+ -", _adds_hours_to_date, "gives a DATE", "CAST(d AS TIMESTAMP) + INTERVAL 1 HOUR"),
    ("+ -", _mixes_units, "adds months and days at once, which Spark refuses",
        "t + INTERVAL 1 MONTH + INTERVAL 2 DAY"),
    ("dateadd date_add timestampadd",
        lambda o, t: "timestamp_ntz" in t and not o.type_is_given,
        "gives a TIMESTAMP", "CAST({name}(…) AS TIMESTAMP_NTZ)"),
    ("extract date_part datepart", lambda o, t: o.word(0) in _WEEKS,
        "begins the week elsewhere", "dayofweek(t)"),
    ("extract date_part datepart", lambda o, t: o.word(0) == "yearofweek",
        "has no such unit", "year(date_add(d, 3 - (dayofweek(d) + 5) % 7))"),
    ("extract date_part datepart", has_intervals,
        "counts the whole interval", "CAST(x AS BIGINT)"),
    ("extract date_part datepart", lambda o, t: o.word(0) not in _UNITS,
        "takes units that Spark refuses", "EXTRACT(YEAR FROM t)"),
    ("date_trunc",
        lambda o, t: not (o.type_is_given and t[1:] == ["date"])
        and not {*t[1:]}.isdisjoint({"string", "date", "timestamp_ntz"}),
        "gives TIMESTAMP_NTZ", "date_trunc('month', CAST(x AS TIMESTAMP))"),
    ("date_trunc", lambda o, t: (o.written(0) or "").lower() == "millisecond",
        "rounds up before 1970", "timestamp_millis(unix_millis(t))"),
    ("date_format to_char", _may_name_zones,
        "writes the names of zones differently", "{name}(t, 'yyyy-MM-dd HH:mm:ss')"),
    (" ".join(OF_ZONES),
        lambda o, t: any(_OFFSET.match(one.literal or "") for one in o.operands),
        "knows no zone by its offset", "'Etc/GMT-2' for '+02:00'"),
    ("trunc", lambda o, t: (o.written(1) or "").lower() not in _UNITS_OF_TRUNC,
        "takes other units", "trunc(d, 'MONTH'), or date_trunc"),
    ("timestamp_seconds", lambda o, t: not {*t} <= {*WHOLE},
        "leaves out the fraction", "timestamp_millis(CAST(x * 1000 AS BIGINT))"),
    ("date_diff datediff", lambda o, t: len(t) == 2 and not o.type_is_given,
        "gives another type", "CAST({name}(…) AS INT)"),
    ("date_diff datediff timestampdiff",
        lambda o, t: len(t) == 3 and o.word(0) in {"month", "quarter", "year"},
        "counts another month backwards", "CAST(months_between(b, a) AS BIGINT)"),
    ("date_diff datediff timestampdiff",
        lambda o, t: len(t) == 3 and o.word(0) in {"day", "week"} and {*t[1:]} != {"date"},
        "counts midnights", "timestampdiff(HOUR, a, b) DIV 24, of weeks DIV 168"),
)  # fmt: skip
"""The operations, which of their calls, how Sail differs, and what to write instead."""
