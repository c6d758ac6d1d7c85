"""The books, and how they are told."""

from __future__ import annotations

from strandline.model.books import Book


def test_a_book_balances_if_its_parts_make_its_total():
    book = Book("range", 10_000, {"accepted": 9_690, "late": 310, "no_window": 0})
    assert book.balanced
    assert book.statement == "range: 10,000 = accepted 9,690 + late 310 + no_window 0"
    assert book.to_json() == {
        "name": "range",
        "total": 10_000,
        "parts": {"accepted": 9_690, "late": 310, "no_window": 0},
    }


def test_an_empty_book_balances():
    assert Book("range", 0, {}).statement == "range: 0 = 0"


def test_a_book_that_is_off_says_by_how_many_and_which_way():
    assert not Book("day", 3, {"malformed": 1, "well_formed": 1}).balanced
    lost = Book("day", 3, {"malformed": 1, "well_formed": 1}).statement
    assert lost == "day: 3 ≠ malformed 1 + well_formed 1 (1 unaccounted for)"
    twice = Book("day", 3, {"malformed": 1, "well_formed": 4}).statement
    assert twice == "day: 3 ≠ malformed 1 + well_formed 4 (2 too many)"
