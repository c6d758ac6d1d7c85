"""Books of records: a total and its parts, counted apart; if they differ, the run is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Book:
    """A number of records, and the parts that it must fall into without remainder.

    Attributes:
        name: the records that are counted, such as `arrival day 2013-01-05` or `range`.
        total: the number of records, counted independently of the parts.
        parts: the number of records by outcome.
    """

    name: str
    total: int
    parts: Mapping[str, int]

    @property
    def accounted(self) -> int:
        """The sum of the parts."""
        return sum(self.parts.values())

    @property
    def balanced(self) -> bool:
        """Whether no record is missing and none is counted twice."""
        return self.total == self.accounted

    @property
    def statement(self) -> str:
        """The book in a line: `range: 902 = accepted 890 + late 12`, or the difference."""
        parts = " + ".join(f"{part} {count:,}" for part, count in self.parts.items()) or "0"
        if self.balanced:
            return f"{self.name}: {self.total:,} = {parts}"
        off = self.total - self.accounted
        word = "unaccounted for" if off > 0 else "too many"
        return f"{self.name}: {self.total:,} ≠ {parts} ({abs(off):,} {word})"

    def to_json(self) -> dict[str, Any]:
        """The book as the ledger keeps it."""
        return {"name": self.name, "total": self.total, "parts": dict(self.parts)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Book:
        """The book that `to_json` gave."""
        return cls(stored["name"], stored["total"], stored.get("parts", {}))


def books_off(books: Iterable[Book]) -> list[str]:
    """The statements of the books that do not balance."""
    return [book.statement for book in books if not book.balanced]


def added_up(books: Iterable[Book]) -> list[Book]:
    """The books of several parts of a run, added up: one book for each name, in their order."""
    totals, parts = Counter[str](), dict[str, Counter[str]]()
    for book in books:
        totals[book.name] += book.total
        parts.setdefault(book.name, Counter()).update(book.parts)
    return [Book(name, totals[name], dict(counts)) for name, counts in parts.items()]
