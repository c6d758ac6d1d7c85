"""A day of which other rows were read than have landed is refused, with both counts."""

from __future__ import annotations

import pytest

from strandline.errors import InputError
from strandline.model.books import Book
from strandline.pipeline.observe.commit_observation import require_balance


def test_days_that_balance_pass():
    require_balance([Book("arrival day 2024-03-01", 3, {"malformed": 1, "well_formed": 2})], "p")


def test_a_day_that_does_not_is_named_with_both_counts_and_the_way_out():
    books = [
        Book("arrival day 2024-03-01", 3, {"malformed": 1, "well_formed": 2}),
        Book("arrival day 2024-03-02", 1_200, {"malformed": 1, "well_formed": 1_000}),
    ]
    with pytest.raises(InputError) as refused:
        require_balance(books, "meter")
    said = str(refused.value)
    assert said.startswith("meter: arrival day 2024-03-02: 1,200 rows have landed")
    assert "1,001 were read" in said
    assert refused.value.way_out
