"""A Spark SQL expression as it is written: what it calls and reads, without a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from strandline.spec import known_functions as known

Path = tuple[str, ...]
"""The names of a column and of the fields inside it, from the outside in."""


@dataclass(frozen=True)
class Call:
    """A call of a function.

    Attributes:
        name: in lower case; of a catalog's function with the names before it, `a.b.f`.
        arguments: how many there are.
        within: the names of the calls that it is an argument of, from the outside in.
        is_ordered: whether WITHIN GROUP says in which order it takes the records.
        is_distinct: whether it takes equal values once.
    """

    name: str
    arguments: int
    within: tuple[str, ...]
    is_ordered: bool
    is_distinct: bool

    @property
    def is_aggregate(self) -> bool:
        """Whether it is of many records."""
        return self.name in known.AGGREGATES

    @property
    def is_known(self) -> bool:
        """Whether it is one of Spark's own functions that are known here."""
        return self.name in known.KNOWN

    @property
    def depends_on_order(self) -> bool:
        """Whether the order of the records may change its answer."""
        if self.name not in known.ORDER_DEPENDENT:
            return False
        if self.name in known.SORTABLE:
            return self.within[-1:] == () or self.within[-1] not in known.SORTERS
        # mode(x, true) takes the least of the values that come equally often
        return not (
            (self.name in known.ORDERED_WITHIN_GROUP and self.is_ordered)
            or (self.name == "mode" and self.arguments == 2)
        )

    def is_of(self, functions: frozenset[str]) -> bool:
        """Whether it is one of some functions, as it is called."""
        by_arguments = known.CHANGED_BY_ARGUMENTS.get((self.name, self.arguments))
        return self.name in functions if by_arguments is None else by_arguments is functions


@dataclass(frozen=True)
class Read:
    """A column that is read, or a field inside of it; `within` as of a `Call`."""

    path: Path
    within: tuple[str, ...]

    @property
    def is_in_an_aggregate(self) -> bool:
        """Whether an aggregate takes it, or a function that may be one for all that is known."""
        return any(name in known.AGGREGATES or name not in known.KNOWN for name in self.within)


@dataclass(frozen=True)
class Sql:
    """What an expression calls and reads.

    Attributes:
        calls: of functions, from left to right.
        reads: of columns; the names that a lambda gives its arguments are none.
        reads_all: whether a `*` stands for all columns; that of count(*) does not.
        over: whether it looks at other rows: OVER (…).
        asks_tables: whether it asks tables of its own: (SELECT …).
        certain_type: the type of what it gives, as Spark names it, where its outermost part says
            it: CAST, a comparison, a literal; None: it does not.
    """

    calls: tuple[Call, ...]
    reads: tuple[Read, ...]
    reads_all: bool
    over: bool
    asks_tables: bool
    certain_type: str | None

    @property
    def is_distinct(self) -> bool:
        """Whether some aggregate takes equal values once."""
        return any(call.is_distinct for call in self.calls)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The functions that it calls and that nobody knows here."""
        return tuple(dict.fromkeys(call.name for call in self.calls if not call.is_known))


@dataclass(frozen=True)
class NotUnderstood:
    """An expression that cannot be taken to pieces here.

    Attributes:
        reason: why.
        is_wrong: whether Spark cannot either: a bracket or a quote is not closed.
    """

    reason: str
    is_wrong: bool


@lru_cache(maxsize=10_000)
def read_sql(text: str) -> Sql | NotUnderstood:
    """What an expression calls and reads; the library that parses it is loaded by the first one."""
    from strandline.spec.parsing import parse  # noqa: PLC0415

    return parse(text)
