"""The books of arrival days: as many rows are read as have landed, or the day does not count."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import InputError
from strandline.model.books import Book


def require_balance(books: Sequence[Book], pipeline: str) -> None:
    """Whether of each arrival day as many rows were read as have landed.

    Raises:
        InputError: of some day not: it may not count as observed.
    """
    for book in books:
        if not book.balanced:
            parts = " + ".join(f"{count:,} {part}" for part, count in book.parts.items())
            raise InputError(
                f"{pipeline}: {book.name}",
                f"{book.total:,} rows have landed by the landing table's log, but "
                f"{book.accounted:,} were read ({parts}); the day is not observed",
                "the table's files are not those of its log: restore them, or land the day again",
            )
