"""The function calls and columns of a Spark SQL expression, found without a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from strandline.sql import known_functions as known

Path = tuple[str, ...]
"""The names of a column and of nested fields, the column first."""


@dataclass(frozen=True)
class Call:
    """A call of a function.

    Attributes:
        name: its name in lower case; a function of a catalog with its qualifiers, `a.b.f`.
        arguments: the number of its arguments.
        within: the names of the calls around it, the outermost first.
        is_ordered: whether its values have an order in which only equal ones can change places:
            by WITHIN GROUP (ORDER BY …), by a function of `SORTERS` without a comparator, or by the
            `true` of mode(x, true).
        is_distinct: whether it has DISTINCT.
    """

    name: str
    arguments: int
    within: tuple[str, ...]
    is_ordered: bool
    is_distinct: bool

    @property
    def is_aggregate(self) -> bool:
        """Whether it is an aggregate."""
        return self.name in known.AGGREGATES

    @property
    def is_known(self) -> bool:
        """Whether it is a known built-in function of Spark."""
        return self.name in known.KNOWN

    @property
    def depends_on_order(self) -> bool:
        """Whether its result may depend on the order of the records."""
        can_be_ordered = known.SORTABLE | known.ORDERED_WITHIN_GROUP
        is_ordered = self.name in can_be_ordered and self.is_ordered
        return self.name in known.ORDER_DEPENDENT and not is_ordered

    def is_of(self, functions: frozenset[str]) -> bool:
        """Whether it calls one of some functions, such as those that read the clock.

        `unix_timestamp` reads it only without an argument: see `CHANGED_BY_ARGUMENTS`.
        """
        by_arguments = known.CHANGED_BY_ARGUMENTS.get((self.name, self.arguments))
        return self.name in functions if by_arguments is None else by_arguments is functions


@dataclass(frozen=True)
class Read:
    """A column, or a nested field, that is read; `within` as in `Call`."""

    path: Path
    within: tuple[str, ...]

    @property
    def is_in_an_aggregate(self) -> bool:
        """Whether it is inside an aggregate, or inside an unknown function that may be one."""
        return any(name in known.AGGREGATES or name not in known.KNOWN for name in self.within)


@dataclass(frozen=True)
class Sql:
    """The function calls and columns of an expression.

    Attributes:
        calls: the function calls from left to right.
        reads: the columns; arguments of lambdas are not among them.
        reads_all: whether it contains a `*` for all columns; the star of count(*) is not one.
        over: whether it contains a window function: OVER (…).
        asks_tables: whether it contains a subquery: (SELECT …).
        certain_type: its type, by Spark's name, if its outermost part decides it: a CAST, a
            comparison, a literal; else None.
    """

    calls: tuple[Call, ...]
    reads: tuple[Read, ...]
    reads_all: bool
    over: bool
    asks_tables: bool
    certain_type: str | None

    @property
    def is_distinct(self) -> bool:
        """Whether an aggregate has DISTINCT."""
        return any(call.is_distinct for call in self.calls)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The unknown functions among its calls."""
        return tuple(dict.fromkeys(call.name for call in self.calls if not call.is_known))


@dataclass(frozen=True)
class NotUnderstood:
    """An expression that sqlglot cannot parse.

    Attributes:
        reason: the parser's reason.
        is_wrong: whether Spark cannot parse it either: a bracket or a quote is not closed.
    """

    reason: str
    is_wrong: bool


@lru_cache(maxsize=10_000)
def read_sql(text: str) -> Sql | NotUnderstood:
    """The function calls and columns of an expression; the first call imports sqlglot."""
    from strandline.sql.parsing import parse  # noqa: PLC0415

    return parse(text)
