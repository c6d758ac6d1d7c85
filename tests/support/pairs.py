"""Pairwise combinations: few rows in which any two values of any two choices meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

Pair = frozenset[tuple[str, int]]
"""Two choices, each with the place of one of its values."""


def pairwise(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of one value for each choice, such that any two values of two choices meet in a row.

    Greedy, so the rows are few but not the fewest: a little more than the product of the two
    longest choices. The same choices give the same rows. A value that stands twice among the values
    of its choice comes about twice as often.
    """
    missing, used = _pairs(choices), Counter[tuple[str, int]]()
    longest_first = sorted(choices, key=lambda name: -len(choices[name]))
    rows = []
    while missing:
        row = dict(min(missing, key=lambda pair: (_uses(pair, used), sorted(pair))))
        for name in longest_first:
            if name not in row:
                row[name] = _best(name, len(choices[name]), row, missing, used)
        missing -= {frozenset(pair) for pair in combinations(row.items(), 2)}
        used.update(row.items())
        rows.append({name: choices[name][row[name]] for name in choices})
    return rows


def _best(
    name: str, values: int, row: Mapping[str, int], missing: set[Pair], used: Counter[Any]
) -> int:
    """The value that meets the most of a row's others for the first time; of these the rarest."""

    def gain(place: int) -> tuple[int, int]:
        met = sum(frozenset([(name, place), other]) in missing for other in row.items())
        return met, -used[name, place]

    return max(range(values), key=gain)


def _pairs(choices: Mapping[str, Sequence[Any]]) -> set[Pair]:
    return {
        frozenset([(one, here), (other, there)])
        for one, other in combinations(choices, 2)
        for here, there in product(range(len(choices[one])), range(len(choices[other])))
    }


def _uses(pair: Pair, used: Counter[Any]) -> int:
    return sum(used[place] for place in pair)
