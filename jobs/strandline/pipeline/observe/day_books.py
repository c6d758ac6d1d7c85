"""The books of arrival days.

As many rows must be read as have landed, or the day is not observed.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import InputError
from strandline.model.books import Book


def require_balance(books: Sequence[Book], pipeline: str) -> None:
    """Refuse arrival days of which another number of rows was read than has landed.

    Raises:
        InputError: the numbers of a day differ; it must not count as observed.
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
