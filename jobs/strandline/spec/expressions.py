"""Validation of a pipeline's expressions without a session.

The value of an expression may depend on records only: not on their order, on randomness, on the
clock or on the user. Otherwise a rerun would give other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.errors import InputError
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.table_columns import Tables, wrong_columns
from strandline.spec.used_expressions import Use, uses_of
from strandline.sql import known_functions as known
from strandline.sql.calls import Call, NotUnderstood, Sql, read_sql
from strandline.sql.column_types import (
    Columns,
    Problem,
    Wanted,
    column_named,
    misfit,
    missing,
    sql_name,
    type_at,
)

_FROM_THE_RECORD = "compute from the record's own columns"


def problems_of(spec: PipelineSpec, tables: Tables, origin: str) -> list[InputError]:
    """All problems of a pipeline's expressions and of its tables' column names, with their places.

    Args:
        spec: the pipeline.
        tables: the columns of the tables that the expressions read.
        origin: the first part of each place: the file, or the pipeline's name.
    """
    found: dict[str, InputError] = {}  # a side says what the other one said of an expression, too
    for error in wrong_columns(spec, tables, origin):
        found.setdefault(str(error), error)
    for use in uses_of(spec):
        for problem, way_out in _problems_of_use(use, tables.get(use.table)):
            error = InputError(f"{origin}: {use.place}", problem, way_out)
            found.setdefault(str(error), error)
    return list(found.values())


def refuse_if_any(problems: Sequence[InputError], origin: str) -> None:
    """Refuse expressions if they have problems.

    Raises:
        InputError: with a line for each of several problems; a single one unchanged.
    """
    if len(problems) > 1:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise InputError(origin, f"{len(problems)} mistakes in its expressions{lines}")
    for problem in problems:
        raise problem


def expressions_of(spec: PipelineSpec, tables: Tables) -> Iterator[Use]:
    """The expressions of a pipeline, without expressions that are a column's exact name."""
    for use in uses_of(spec):
        columns = tables.get(use.table)
        if use.wanted != "column" and (columns is None or use.text not in columns):
            yield use


def left_to_the_engine(spec: PipelineSpec, tables: Tables) -> Iterator[tuple[Use, str]]:
    """The expressions that only the engine can validate, with the reason."""
    for use in expressions_of(spec, tables):
        sql = read_sql(use.text)
        if isinstance(sql, NotUnderstood):
            yield use, f"{use.text!r} is not understood here ({sql.reason})"
        elif sql.unknown:
            names = ", ".join(f"{name}()" for name in sql.unknown)
            yield use, f"{names} is none of Spark's own functions that are known here"


def _problems_of_use(use: Use, columns: Columns | None) -> Iterator[Problem]:
    if use.wanted == "column":
        if columns is not None and use.text not in columns:
            yield missing((use.text,), columns) or (
                f"{use.text!r} is a column only if upper and lower case are ignored",
                f"its columns are {', '.join(columns)}",
            )
    elif use.wanted == "aggregate":
        yield from problems_of_aggregate(use.text, columns)
    else:
        yield from problems_of_record(use.text, use.wanted, columns)


def problems_of_record(text: str, wanted: Wanted, columns: Columns | None) -> Iterator[Problem]:
    """The problems of an expression over one record, or of a column's exact name.

    Args:
        text: the expression.
        wanted: the required kind of value.
        columns: the columns of its table; None: not known.
    """
    if columns is not None and text in columns:
        yield from _misfit(text, wanted, sql_name(columns[text]))
        return
    sql = read_sql(text)
    if isinstance(sql, NotUnderstood):
        yield from _not_written(text, sql)
        return
    before = [*_of_columns(text, sql, columns), *_of_chance(text, sql, columns)]
    yield from before
    of_many = [call.name for call in sql.calls if call.is_aggregate]
    if of_many:
        yield (
            f"{text!r} is an aggregate ({of_many[0]}()), and each record needs a value of its own",
            "name it under aggregates",
        )
    elif _looks_at_other_rows(sql):
        yield f"{text!r} looks at other records (OVER)", _FROM_THE_RECORD
    for call in sql.calls:
        if call.is_of(known.OTHER_ROWS):
            yield (
                f"{text!r} does not give one value for each record ({call.name}())",
                "compute it before landing, or give another expression",
            )
    if not before:
        yield from _misfit(text, wanted, _type_of(text, sql, columns))


def problems_of_aggregate(text: str, columns: Columns | None) -> Iterator[Problem]:
    """The problems of an aggregate over records; `columns`: see `problems_of_record`."""
    sql = read_sql(text)
    if isinstance(sql, NotUnderstood):
        yield from _not_written(text, sql)
        return
    yield from _of_columns(text, sql, columns)
    yield from _of_chance(text, sql, columns)
    for call in sql.calls:
        if call.depends_on_order:
            yield (
                f"{text!r} depends on the order of the records ({call.name})",
                f"say which order, for example {known.ORDER_DEPENDENT[call.name]}",
            )
    if why_not := _why_no_aggregate(sql, columns):
        yield f"{text!r} is not an aggregate ({why_not[0]})", why_not[1]


def _why_no_aggregate(sql: Sql, columns: Columns | None) -> Problem | None:
    if _looks_at_other_rows(sql):
        return "it looks at other rows: OVER", "leave OVER out: the window is the pipeline's own"
    for call in sql.calls:
        if call.is_of(known.OTHER_ROWS):
            return f"{call.name}() gives several rows", "give one value for each window"
    for call in sql.calls:
        around = [name for name in call.within if name in known.AGGREGATES]
        if call.is_aggregate and around:
            return f"{call.name}() stands inside {around[-1]}()", "keep one of both"
    single = [read for read in sql.reads if not read.is_in_an_aggregate]
    single = [read for read in single if not _is_bare_call(read.path, columns)]
    if single:
        name = ".".join(single[0].path)
        return f"{name} is of a single record", f"say of which, such as max({name})"
    if not sql.unknown and not any(call.is_aggregate for call in sql.calls):
        return "it calls none", "see Spark SQL's functions"
    return None


def _looks_at_other_rows(sql: Sql) -> bool:
    return sql.over or any(call.is_of(known.OF_NEIGHBOURS) for call in sql.calls)


def _not_written(text: str, found: NotUnderstood) -> Iterator[Problem]:
    if found.is_wrong:
        yield f"{text!r} is no expression ({found.reason})", "correct it there"


def _of_columns(text: str, sql: Sql, columns: Columns | None) -> Iterator[Problem]:
    """The missing columns and fields of an expression."""
    if columns is None:
        return
    for path in dict.fromkeys(read.path for read in sql.reads):
        found = None if _is_bare_call(path, columns) else missing(path, columns)
        if found is not None:
            problem, way_out = found
            yield (
                f"{text!r} is neither a column nor an expression over its table ({problem})",
                way_out,
            )


def _of_chance(text: str, sql: Sql, columns: Columns | None) -> Iterator[Problem]:
    """The parts of an expression that depend on randomness, the clock or the user."""
    bare = {read.path[0].lower() for read in sql.reads if _is_bare_call(read.path, columns)}
    calls = [
        *sql.calls,
        *(Call(name, 0, (), is_ordered=False, is_distinct=False) for name in sorted(bare)),
    ]
    for call in {call.name: call for call in calls}.values():
        if call.is_of(known.CHANCE) or call.is_of(known.CLOCKS):
            yield (
                f"{text!r} is not deterministic ({call.name}()): a rerun would differ",
                _FROM_THE_RECORD,
            )
        elif call.is_of(known.OF_THE_SESSION):
            yield f"{text!r} depends on who runs it, and where ({call.name}())", _FROM_THE_RECORD
    if sql.asks_tables:
        yield f"{text!r} asks other tables (SELECT), which change by themselves", _FROM_THE_RECORD


def _is_bare_call(path: tuple[str, ...], columns: Columns | None) -> bool:
    """Whether a name that is no column calls a function without parentheses."""
    if columns is None or len(path) > 1 or path[0].lower() not in known.WITHOUT_PARENTHESES:
        return False
    return column_named(path[0], columns) is None


def _type_of(text: str, sql: Sql, columns: Columns | None) -> str | None:
    """The certain type of an expression, by its name in Spark SQL."""
    if sql.certain_type is not None or columns is None or len(sql.reads) != 1:
        return sql.certain_type
    path = sql.reads[0].path
    is_plain = text.replace("`", "").strip() == ".".join(path)
    return sql_name(type_at(path, columns)) if is_plain else None


def _misfit(text: str, wanted: Wanted, kind: str | None) -> Iterator[Problem]:
    found = None if kind is None else misfit(wanted, text, kind)
    if found is not None:
        yield found
