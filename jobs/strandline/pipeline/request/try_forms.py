"""Functions that give null in place of failing, by the expression that fails."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from strandline.sql.as_written import text_of
from strandline.sql.by_name_on_sail import BY_NAME
from strandline.sql.calls import NotUnderstood
from strandline.sql.guards import is_choice
from strandline.sql.known_functions import AGGREGATES
from strandline.sql.operations import is_operation, name_of, operands_of, places_of, shallow_tree_of
from strandline.sql.parsing import sql_of

_SUGGESTED = re.compile(r"[Uu]se (?:the SQL function )?['`](\w+)")
_BY_ZERO = re.compile(r"[Dd]ivi(?:de|sion) by zero")
_REMAINDER = re.compile(r"%|\bmod\(", re.IGNORECASE)
_NO_CAST = re.compile(r"[Cc]annot cast")
_TIME_OF_A_NUMBER = re.compile(r"(timestamp_(?:seconds|millis|micros))\((.+)\)", re.DOTALL)
_PER_SECOND = {"timestamp_seconds": 1, "timestamp_millis": 10**3, "timestamp_micros": 10**6}
_YEARS_IN_S = (-62_135_596_800, 253_402_300_799)
"""0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z."""
_TRY_FORMS = (
    (r"\bcast\s*\(|::", "try_cast"),
    (r"\bto_timestamp\s*\(", "try_to_timestamp"),
    (r"\bto_date\s*\(", "try_to_date"),
    (r"\bto_number\s*\(", "try_to_number"),
    (r"\bparse_json\s*\(", "try_parse_json"),
    (r"\belement_at\s*\(", "try_element_at"),
    (r"\[", "get"),
    (r"\bmake_timestamp\s*\(", "try_make_timestamp"),
    (r"/", "try_divide"),
    (r"%|\bmod\s*\(", "try_mod"),
    (r"\bsum\s*\(", "try_sum"),
    (r"\bavg\s*\(", "try_avg"),
    (r"\*", "try_multiply"),
    (r"\+", "try_add"),
    (r"-", "try_subtract"),
)
"""Functions that accept the values on which a function or operator fails."""
_SIGNS = ("+", "-", "*", "/", "%", "div")
_OVERFLOW = re.compile("overflow|out of range Int64", re.IGNORECASE)
_ON_SPARK_TOO = (
    r"timestamp_\w+ overflows",
    r"(?:Division|Remainder) by zero",
    r"INVALID_ARRAY_INDEX|element_at: the index",
    r"out of range Int64",
    r"Can't cast value -?\d+ to type Int\d+",
    r"invalid timestamp: [^\d\s]*$",
    r"The value '[^\d\s']*' of the type \"STRING\" cannot be cast to \"(?!BOOLEAN)",
    r"Cannot cast string '[^\d\s']*' to value of (?!Bool)",
)
"""Sail's messages for values that Spark does not take either. Of texts only those without a digit:
Spark takes some that Sail does not."""
_OF_FRACTIONS = re.compile("decimal|double|float", re.IGNORECASE)
_LAZY = (exp.Case, exp.If, exp.And, exp.Or, exp.Lambda)
"""Parts of an expression whose own parts are not computed for every row."""
_CHOOSING = ("nvl2", "decode", "elt")
"""Functions of which Spark computes, for each row, the first operand and what it chooses."""


def failing_part(text: str, problem: str, fails: Callable[[str], bool]) -> str:
    """The operation of an expression that fails, such as `x * y` of `sum(a * b)`; else all of it.

    Engines seldom say which one it was. Where no operation on one record overflows, the aggregates
    around them do.

    Args:
        text: the expression.
        problem: the engine's message.
        fails: whether a part fails, over rows on which the whole one does.
    """
    tree = shallow_tree_of(text)
    if isinstance(tree, NotUnderstood):
        return text
    aggregates = [name_of(one) for one in places_of(tree) if name_of(one) in AGGREGATES]
    for part in reversed([*tree.dfs()]):  # the inner ones first
        written = text_of(part) if _is_asked(part) else None
        if written is not None and fails(_for_its_rows(part, written)):
            return _shown(part, written)
    of_aggregates = " ".join(f"{name}()" for name in aggregates)
    return (_OVERFLOW.search(problem) and of_aggregates) or text


def fails_on_spark_too(problem: str) -> bool:
    """Whether Spark, too, fails on the value that Sail's message is about; no, if not known."""
    return any(re.search(message, problem) for message in _ON_SPARK_TOO)


def is_on_sail(form: str, problem: str) -> bool:
    """Whether Sail takes what `try_form` gives: of a text no TRY_CAST to DECIMAL, for example."""
    is_number = form == "try_cast()" and _OF_FRACTIONS.search(problem)
    return not is_number and form.removesuffix("()") not in BY_NAME


def has_condition(text: str) -> bool:
    """Whether an expression computes some of its parts for some rows only; yes, if not known."""
    tree = shallow_tree_of(text)
    return isinstance(tree, NotUnderstood) or any(
        isinstance(part, (*_LAZY, exp.Filter)) or _chooses(part) for part in tree.walk()
    )


def _is_asked(part: exp.Expr) -> bool:
    """Whether a part is an operation that is computed for each record."""
    if not (is_operation(part) or isinstance(part, exp.Bracket | exp.And | exp.Or)):
        return False
    of_aggregate = any(is_operation(one) and name_of(one) in AGGREGATES for one in part.walk())
    return not of_aggregate and not _is_lazy(part)


def _chooses(part: exp.Expr) -> bool:
    """Whether a part computes its first operand, and of the others only some, for each row."""
    return is_choice(part) or (is_operation(part) and name_of(part) in _CHOOSING)


def _is_lazy(part: exp.Expr) -> bool:
    """Whether it stands in a CASE, or in a later operand of a choice, computed for some rows."""
    above = part.parent
    if above is None:
        return False
    is_later = _chooses(above) and part is not operands_of(above)[0]
    return is_later or isinstance(above, _LAZY) or _is_lazy(above)


def _for_its_rows(part: exp.Expr, written: str) -> str:
    """A part of an aggregate with FILTER, computed for the records that pass it."""
    around = part.find_ancestor(exp.Filter, exp.Where)
    if not isinstance(around, exp.Filter):
        return written
    return f"CASE WHEN {sql_of(around.expression.this)} THEN {written} END"


def _shown(part: exp.Expr, written: str) -> str:
    """A part with letters for its operands, such as `x * y`; as written if one may be the cause."""
    if isinstance(part, exp.Bracket):
        return "x[y]"
    if isinstance(part, _LAZY) or _chooses(part) or part.find(exp.Lambda):
        return written
    name = name_of(part)
    if name in _PER_SECOND:  # the way out shows the number
        return written
    return f"x {name} y" if name in _SIGNS else f"{name}(x)"


def try_form(text: str, problem: str) -> str:
    """The function that gives null where an expression fails, such as `try_divide()`.

    Args:
        text: the expression.
        problem: the engine's message, which may suggest a function.
    """
    if call := _TIME_OF_A_NUMBER.fullmatch(text.strip()):
        function, number = call.groups()
        first, last = (edge * _PER_SECOND[function] for edge in _YEARS_IN_S)
        return f"{function}(CASE WHEN {number} BETWEEN {first} AND {last} THEN {number} END)"
    if suggested := _SUGGESTED.search(problem):
        return f"{suggested[1]}()"
    if _NO_CAST.search(problem):  # of a text that `sum` takes for a number, say
        return "try_cast()"
    if _BY_ZERO.search(problem):
        return "try_mod()" if _REMAINDER.search(text) and "/" not in text else "try_divide()"
    forms = [form for pattern, form in _TRY_FORMS if re.search(pattern, text, re.IGNORECASE)]
    named = (form for form in forms if re.search(rf"\b{form.removeprefix('try_')}", problem))
    form = next(named, next(iter(forms), None))
    return "CASE WHEN … END around it" if form is None else f"{form}()"
