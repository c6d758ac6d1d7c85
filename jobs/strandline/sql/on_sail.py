"""Expressions with another result on Sail than on Spark, which are refused on Sail.

Others are written so that Sail gives Spark's result: see `as_on_spark`. A test compares both
engines with Spark's recorded results (`tests/expressions`), and lists the differences that are
left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise

from sqlglot import TokenType, exp, tokenize

from strandline.sql.as_on_spark import as_on_spark
from strandline.sql.by_name_on_sail import BY_NAME, is_compared
from strandline.sql.calls import NotUnderstood
from strandline.sql.column_types import FLOATS, ON_SPARK, WHOLE, Problem, are_alike, key_of
from strandline.sql.differences import AS_IT_IS, Table, Types, problem_in
from strandline.sql.guards import (
    TypeOf,
    compared_by,
    is_choice,
    repeated_terms,
    terms_of,
    type_alone,
)
from strandline.sql.known_functions import UNITS_FIRST
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
from strandline.sql.types_on_sail import OF_TYPES, problems_of_types
from strandline.sql.written_for_sail import OF_WHOLE_NUMBERS, form_of, may_differ

_WORDS = {
    *("between", "case", "cast", "div", "extract", "if", "ilike", "in", "like", "rlike"),
    "try_cast",
}
"""Words for operations that are not function calls."""
_MOST_LEVELS = 9
"""Sail takes three times as long for each level of casts, and 50 ms for nine."""
_MOST_CHOICES = 3
"""Sail takes six times as long for each level of AND and OR with a CASE that their guards repeat,
and a second for three."""
_LONGEST, _MOST_GROWTH = 10_000, 40
"""A form that is longer, and so many times longer than the expression, repeats its operands in
each other: Sail takes a second and more for it."""
_PLAIN_DATE = re.compile(
    r"'\d{4}-(?:\d\d?-\d\d?|\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)'", re.ASCII
)
"""Matches the texts in which both engines read the same date."""
_BY_FORM = Table[str](
    ("covar_pop covar_samp kurtosis median percentile skewness try_sum regr_avgx regr_avgy "
        "regr_count regr_intercept regr_slope regr_sxx regr_sxy regr_syy",
        lambda one, _: one.is_distinct, "ignores DISTINCT", "{name}() without it"),
    ("listagg string_agg", lambda one, _: one.is_distinct,
        "orders differently with DISTINCT", "array_join(array_sort(collect_set(x)), ',')"),
    ("ilike like", lambda one, _: bool(re.match(r"(all|any|some)\b", one.word(1))),
        "refuses several patterns", "s LIKE 'a%' OR s LIKE 'b%'"),
    ("mask", lambda one, _: len(one.operands) == 5,
        "masks a character beyond U+FFFF as one", "mask(x) with fewer arguments"),
    ("count_if", lambda one, _: one.is_filtered, "ignores FILTER", "count_if(x AND y)"),
    # 2^31 and 2^63, of which the opposites are an INT and a BIGINT, are none themselves
    ("negative",
        lambda one, _: not one.type_is_given
        and one.written(0) in {"2147483648", "9223372036854775808"},
        "gives another type of that number", "CAST(-2147483648 AS INT)"),
    ("percentile", lambda one, _: len(one.operands) == 3,
        "ignores the third argument", "percentile(x, 0.5) of rows that are not weighted"),
)  # fmt: skip
"""Calls of which Sail ignores a part, or does not know it."""


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
        if found := BY_NAME.get(operation.name) or problem_in(_BY_FORM, operation):
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
        if operation.name in OF_TYPES or not operation.has_places:
            types = _types_of(operation, type_of)
            problems = (*problems_of_types(operation, types), *_without_place(operation, types))
            yield from (_with_operation(operation, problem) for problem in problems)
    yield from _dates_by_texts(text, type_of)
    yield from _other_keys(text, type_of)
    for name, way_out, subject in _subjects(text):
        if (kind := type_of(subject)) in FLOATS:
            yield f"{name}: Sail takes other {kind.upper()} as equal", way_out
    if _repeats_choices(text, type_of) or _takes_long(text, type_of):
        yield (
            "it nests so many operations that Sail takes long to plan them",
            f"round once, put brackets, (a + b) + (c + d), CASE last in AND and OR, or {ON_SPARK}",
        )


def _types_of(operation: Operation, type_of: TypeOf) -> Types:
    """The types of operands; the unit of `date_add(DAY, 1, d)` is no column, and has none."""
    texts = [one.text for one in operation.operands]
    if operation.name in UNITS_FIRST and len(texts) == 3:
        texts[0] = None
    return [None if text is None else type_of(text) for text in texts]


def _without_place(operation: Operation, types: Types) -> Iterator[Problem]:
    """An operation with another form, of which no place in the text is known to write it at."""
    if operation.has_places or not may_differ(operation):
        return
    if form_of(operation, types) != AS_IT_IS:
        yield "computes x::… differently", f"CAST(x AS {(operation.to or 'type').upper()})"


def _subjects(text: str) -> Iterator[tuple[str, str, str]]:
    """Each `x` of CASE x WHEN … and of mode() WITHIN GROUP (ORDER BY x), with a way out."""
    tree = shallow_tree_of(text)
    for node in [] if isinstance(tree, NotUnderstood) else tree.find_all(exp.Case, exp.Order):
        above = node.parent
        if isinstance(node, exp.Case):
            parts = [] if node.this is None else [("CASE", "CASE WHEN x = 1D, or ", node.this)]
        elif isinstance(above, exp.WithinGroup) and above.this.name.lower() == "mode":
            by = node.expressions  # mode(x, true) is the least of several, and DESC the largest
            instead = "" if by[0].args.get("desc") else "mode(x, true), or "
            parts = [("mode()", instead, key.this) for key in by]
        else:
            continue
        for name, instead, part in parts:
            if (subject := typed_alone(part)) is not None:
                yield name, f"{instead}{ON_SPARK}", subject


def _dates_by_texts(text: str, type_of: TypeOf) -> Iterator[Problem]:
    """Each CASE d WHEN s … and CASE s WHEN d … of a DATE d and a text s."""
    tree = shallow_tree_of(text)
    for node in [] if isinstance(tree, NotUnderstood) else tree.find_all(exp.Case):
        kinds = [(one, type_alone(one, type_of)) for one in compared_by(node)]
        texts = [typed_alone(one) for one, kind in kinds if kind == "string"]
        others = [kind for _, kind in kinds if kind != "string"]
        if not are_alike(others):
            yield (
                "CASE: Sail compares values of several types, which Spark refuses",
                f"for example CASE WHEN x = CAST(y AS …), or {ON_SPARK}",
            )
        if "date" in {kind for _, kind in kinds} and not all(map(_is_plain_date, texts)):
            yield (
                "CASE: Sail takes texts for dates that Spark does not",
                f"for example CASE WHEN d = x, or {ON_SPARK}",
            )


def _other_keys(text: str, type_of: TypeOf) -> Iterator[Problem]:
    """Each m[x] of a map m and an x of another class of types than its keys; not by texts."""
    tree = shallow_tree_of(text)
    for node in [] if isinstance(tree, NotUnderstood) else tree.find_all(exp.Bracket):
        key = key_of(type_alone(node.this, type_of))
        for asked in node.expressions if key not in {None, "string"} else ():
            is_date = key == "date" and _is_plain_date(typed_alone(asked))
            if not (is_date or are_alike([key, type_alone(asked, type_of)])):
                yield (
                    "m[x]: Sail looks for keys of another type, which Spark refuses",
                    f"for example m[CAST(x AS {str(key).upper()})], or {ON_SPARK}",
                )


def _is_plain_date(text: str | None) -> bool:
    return _PLAIN_DATE.fullmatch(text or "") is not None


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
