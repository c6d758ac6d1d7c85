"""The rows of a pairwise law: every two values meet, and they are few."""

from __future__ import annotations

from itertools import combinations, product

from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from pairs import pairwise

CHOICES = st.lists(st.integers(1, 5), min_size=2, max_size=7).map(
    lambda lengths: {f"choice {n}": list(range(length)) for n, length in enumerate(lengths)}
)


@DEAR
@given(CHOICES)
def test_any_two_values_of_two_choices_meet_in_a_row(choices):
    rows = pairwise(choices)
    for one, other in combinations(choices, 2):
        met = {(row[one], row[other]) for row in rows}
        assert met == set(product(choices[one], choices[other]))


def test_the_rows_are_little_more_than_the_two_longest_choices_need():
    lengths = {"a": 10, "b": 5, "c": 5, "d": 4, "e": 4, "f": 3, "g": 2, "h": 2}
    rows = pairwise({name: range(length) for name, length in lengths.items()})
    assert 50 <= len(rows) <= 60
    assert rows == pairwise({name: range(length) for name, length in lengths.items()})
