"""Expressions with another result on Sail than on Spark, which are refused on Sail.

Others are written so that Sail gives Spark's result: see `as_on_spark`. A test compares both
engines with Spark's recorded results (`tests/expressions`), and lists the differences that are
left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

from sqlglot import TokenType, exp, tokenize

from strandline.sql.as_on_spark import as_on_spark
from strandline.sql.calls import NotUnderstood
from strandline.sql.column_types import FLOATS, ON_SPARK, WHOLE, Problem
from strandline.sql.form import AS_IT_IS
from strandline.sql.guards import TypeOf, is_choice, repeated_terms, terms_of, type_alone
from strandline.sql.missing_on_sail import MISSING, is_compared
from strandline.sql.operations import (
    Operation,
    is_operation,
    name_of,
    operands_of,
    operation_of,
    operations_of,
    shallow_tree_of,
    typed_alone,
)
from strandline.sql.times_on_sail import OF_TIMES_OF_DAY
from strandline.sql.types_on_sail import RULES
from strandline.sql.written_for_sail import OF_WHOLE_NUMBERS, form_of, may_differ

_LENIENT = "reads other texts"
_OF_VARIANTS = ("keeps numbers of VARIANT otherwise", "read it with from_json(x, 'field STRING')")

BY_NAME: dict[str, Problem] = {
    **MISSING,
    "assert_true": ("lets null pass", "CASE WHEN NOT coalesce(x, false) THEN raise_error('…') END"),
    "approx_count_distinct": ("estimates otherwise", "count(DISTINCT x)"),
    "array_contains": ("gives false where Spark gives null", "exists(a, v -> v = x)"),
    "bround": ("rounds half up", "round(x, n)"),
    "corr": (
        "loses the digits of large numbers",
        "regr_sxy(y, x) / nullif(sqrt(regr_sxx(y, x) * regr_syy(y, x)), 0)",
    ),
    "conv": ("has no negative bases", "hex(x), or CAST"),
    "elt": ("gives null where Spark fails", "CASE i WHEN 1 THEN 'a' … END"),
    "format_number": ("rounds halves otherwise", "CAST(x AS DECIMAL(38, 2))"),
    "from_csv": ("strips blanks", "split(x, ',')"),
    "get_json_object": ("copies numbers and signs unchanged", "from_json(x, 'field STRING')"),
    "initcap": ("starts words after other characters", "upper and substring"),
    "is_valid_utf8": ("gives false where Spark gives null", "leave it out"),
    "isnan": ("gives null where Spark gives false", "x <=> double('NaN')"),
    "json_array_length": ("counts where Spark gives null", "land it as an array"),
    "parse_url": ("takes wrong addresses", "regexp_extract"),
    "percentile_cont": ("interpolates with six digits", "percentile(x, 0.5)"),
    "quote": ("writes signs otherwise", "concat"),
    "regexp_instr": ("counts signs otherwise", "instr(x, text)"),
    "regr_r2": (
        "gives null where all y are equal",
        "CASE WHEN regr_syy(y, x) = 0 AND regr_sxx(y, x) > 0 THEN 1D ELSE "
        "power(regr_sxy(y, x), 2) / nullif(regr_sxx(y, x) * regr_syy(y, x), 0) END",
    ),
    "rint": ("rounds half up", "round(x)"),
    "sentences": ("knows other words", "split(x, ' ')"),
    "slice": ("takes what there is where Spark takes nothing", "filter(a, (v, i) -> i < n)"),
    "to_json": ("writes numbers and times otherwise", "concat_ws, or keep the struct"),
    "try_avg": ("gives another type", "avg(x)"),
    "try_parse_url": ("takes wrong addresses", "regexp_extract"),
    "unbase64": (_LENIENT, "land it as BINARY"),
    "weekday": ("is -1 on some days before 1970", "dayofweek(t)"),
    **dict.fromkeys(("to_binary", "try_to_binary"), (_LENIENT, "encode(s, 'UTF-8'), or unhex(s)")),
    **dict.fromkeys(
        (
            "parse_json", "schema_of_variant", "schema_of_variant_agg", "to_variant_object",
            "try_parse_json", "try_variant_get", "variant_get",
        ),
        _OF_VARIANTS,
    ),
    **dict.fromkeys(
        (
            "make_time", "time_diff", "time_from_micros", "time_from_millis",
            "time_from_seconds", "time_to_micros", "time_to_millis", "time_to_seconds",
            "time_trunc", "to_time", "try_to_time",
        ),
        OF_TIMES_OF_DAY,
    ),
}  # fmt: skip
"""Functions with a different result: the difference, and what to write instead."""

_NEVER_DISTINCT = {
    *("covar_pop", "covar_samp", "kurtosis", "median", "percentile", "skewness", "try_sum"),
    *("regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_slope"),
    *("regr_sxx", "regr_sxy", "regr_syy"),
}
"""Aggregates that ignore DISTINCT."""
_WORDS = {
    *("between", "case", "cast", "div", "extract", "if", "ilike", "in", "like", "rlike"),
    "try_cast",
}
"""Words for operations that are not function calls."""
_ENDS = {"2147483648", "9223372036854775808"}
"""The numbers behind the minus of the least INT and BIGINT, which are no INT and no BIGINT."""
_MOST_LEVELS = 9
"""Sail takes three times as long for each level of casts, and 50 ms for nine."""
_MOST_CHOICES = 3
"""Sail takes six times as long for each level of AND and OR with a CASE that their guards repeat,
and a second for three."""
_LONGEST, _MOST_GROWTH = 10_000, 40
"""A form that is longer, and so many times longer than the expression, repeats its operands in
each other: Sail takes a second and more for it."""
_SEVERAL = re.compile(r"(ALL|ANY|SOME)\b")
"""Matches the operand of LIKE ANY ('a%', 'b%')."""


def names_not_on_sail(text: str) -> Iterator[Problem]:
    """The problems of an expression on Sail that do not depend on the types of its columns."""
    operations = operations_of(text)
    if isinstance(operations, NotUnderstood):
        yield (
            f"its result on Sail is not known ({operations.reason})",
            f"use IN (…) for a chain of OR, brackets, as in (a + b) + (c + d), or {ON_SPARK}",
        )
        return
    if _has_doubled_quotes(text):
        yield "Sail reads a doubled quote in a text as none", rf"write '\'', or {ON_SPARK}"
    for operation in operations:
        if found := BY_NAME.get(operation.name) or _by_form(operation):
            yield _with_operation(operation, found)
        elif operation.name.isidentifier() and not (
            operation.name in _WORDS or is_compared(operation.name)
        ):
            yield f"the result of {operation.name}() on Sail is not known", ON_SPARK


def _has_doubled_quotes(text: str) -> bool:
    """Whether a literal contains its quote twice, as for an apostrophe."""
    return any(
        one.token_type is other.token_type is TokenType.STRING and one.end + 1 == other.start
        for one, other in pairwise(tokenize(text, read="spark"))
    )


def _by_form(operation: Operation) -> Problem | None:
    """Parts of a call that Sail ignores, or does not know."""
    name = operation.name
    if operation.is_distinct and name in _NEVER_DISTINCT:
        return "ignores DISTINCT", f"{name}() without it"
    if operation.is_distinct and name in {"listagg", "string_agg"}:
        return "orders otherwise with DISTINCT", "array_join(array_sort(collect_set(x)), ',')"
    if name in {"like", "ilike"} and _SEVERAL.match(operation.operands[1].text or ""):
        return "refuses several patterns", "s LIKE 'a%' OR s LIKE 'b%'"
    if name == "mask" and len(operation.operands) == 5:
        return "masks a sign beyond U+FFFF once", "mask(x) with fewer arguments"
    if operation.is_filtered and name == "count_if":
        return "ignores FILTER", "count_if(x AND y)"
    if (
        name == "negative"
        and not operation.type_is_given
        and operation.operands[0].literal in _ENDS
    ):
        return "gives another type of that number", "CAST(-2147483648 AS INT)"
    if name == "percentile" and len(operation.operands) == 3:
        return "ignores the third argument", "percentile(x, 0.5) of rows that are not weighted"
    return None


def types_not_on_sail(text: str, type_of: TypeOf) -> Iterator[Problem]:
    """The problems of an expression on Sail that depend on the types of its parts.

    Args:
        text: the expression; if it cannot be parsed, no problem is found.
        type_of: asks the engine for a type.
    """
    operations = operations_of(text)
    if isinstance(operations, NotUnderstood):
        return
    type_of = cache(type_of)
    for operation in operations:
        rules = RULES.get(operation.name, ())
        if rules or not operation.has_places:
            types = [None if one.text is None else type_of(one.text) for one in operation.operands]
            found = (rule(operation, types) for rule in (*rules, _without_place))
            yield from (_with_operation(operation, problem) for problem in found if problem)
    for name, subject in _subjects(text):
        if (kind := type_of(subject)) in FLOATS:
            way_out = "CASE WHEN x = 1D" if name == "CASE" else "mode(x, true)"
            yield f"{name}: Sail takes other {kind.upper()} as equal", f"{way_out}, or {ON_SPARK}"
    if _repeats_choices(text, type_of) or _takes_long(text, type_of):
        yield (
            "it nests so many operations that Sail takes long to plan them",
            f"round once, put brackets, (a + b) + (c + d), CASE last in AND and OR, or {ON_SPARK}",
        )


def _without_place(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """An operation with another form, of which no place in the text is known to write it at."""
    if operation.has_places or not may_differ(operation) or form_of(operation, types) == AS_IT_IS:
        return None
    return "computes x::… otherwise", f"CAST(x AS {(operation.to or 'type').upper()})"


def _subjects(text: str) -> Iterator[tuple[str, str]]:
    """The SQL of each `x` of CASE x WHEN … and of mode() WITHIN GROUP (ORDER BY x)."""
    tree = shallow_tree_of(text)
    for node in [] if isinstance(tree, NotUnderstood) else tree.find_all(exp.Case, exp.Order):
        above = node.parent
        if isinstance(node, exp.Case):
            name, parts = "CASE", [node.this] if node.this is not None else []
        elif isinstance(above, exp.WithinGroup) and above.this.name.lower() == "mode":
            name, parts = "mode()", [key.this for key in node.expressions]
        else:
            continue
        yield from ((name, found) for found in map(typed_alone, parts) if found is not None)


def _repeats_choices(text: str, type_of: TypeOf) -> bool:
    """Whether guards inside of each other repeat a CASE or a coalesce."""
    tree = shallow_tree_of(text)
    nodes = () if isinstance(tree, NotUnderstood) else tree.find_all(exp.And, exp.Or)
    repeated = (term for node in nodes for term in repeated_terms(node, type_of))
    counted = {id(term) for term in repeated if any(map(is_choice, term.walk()))}
    return _levels(text, lambda node: id(node) in counted) > _MOST_CHOICES


def _takes_long(text: str, type_of: TypeOf) -> bool:
    """Whether Sail takes long to plan an expression; the types are asked of few."""

    def is_whole(node: exp.Expr) -> bool:
        return is_operation(node) and name_of(node) in OF_WHOLE_NUMBERS

    def is_checked(node: exp.Expr) -> bool:
        return is_whole(node) and all(
            type_alone(one, type_of) in WHOLE for one in operands_of(node)
        )

    if _levels(text, is_whole) > _MOST_LEVELS and _levels(text, is_checked) > _MOST_LEVELS:
        return True
    if _levels(text, partial(_may_repeat, type_of)) <= 2:
        return False
    written = as_on_spark(text, lambda parts: [*map(type_of, parts)])
    return len(written) > max(_LONGEST, _MOST_GROWTH * len(text))


def _levels(text: str, counts: Callable[[exp.Expr], bool]) -> int:
    """The most parts inside of each other that count."""

    def levels(node: exp.Expr) -> int:
        inner = max(map(levels, node.iter_expressions()), default=0)
        return inner + counts(node)

    tree = shallow_tree_of(text)
    return 0 if isinstance(tree, NotUnderstood) else levels(tree)


def _may_repeat(type_of: TypeOf, node: exp.Expr) -> bool:
    """Whether a part may be written with its operands twice, as AND and OR with a guard."""
    return may_differ(operation_of(node)) if is_operation(node) else bool(terms_of(node, type_of))


def _with_operation(operation: Operation, found: Problem) -> Problem:
    name = operation.name
    called = f"{name}()" if name.isidentifier() and name not in _WORDS else name.upper()
    return f"{called}: Sail {found[0]}", f"for example {found[1]}, or {ON_SPARK}"
