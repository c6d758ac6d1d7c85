"""Values of hypothesis strategies for tests that are dear: drawn once, not a hundred times over.

`@given` begins with the simplest example and repeats its test; a law on Spark wants one rich
example for each of its rows. What is drawn follows from a name and `--hypothesis-seed` alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, core, given, seed, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
AMONG = 10
"""Among so many the best is chosen: a replay by the reference is nothing beside one on Spark."""
ROUNDS = int(os.environ.get("ROUNDS", "1"))
"""How often a law on Spark goes through its rows, each time with other values (make test-deep)."""


def drawn(strategy: SearchStrategy[T], name: str, *, best: Callable[[T], float] | None = None) -> T:
    """A value of a strategy: for a name the same each time, but for another seed.

    Args:
        strategy: to draw from.
        name: of the value.
        best: some values are drawn, and that of the largest is taken; None: one is.
    """
    found: list[T] = []
    number = sha256(f"{name} {core.global_force_seed or 0}".encode()).hexdigest()

    # the first example is the simplest one
    @seed(int(number, 16))
    @settings(
        max_examples=2 if best is None else 1 + AMONG,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=HealthCheck,
    )
    @given(strategy)
    def keep(value: T) -> None:
        found.append(value)

    keep()
    return found[-1] if best is None else max(found[1:], key=best)


def in_words(row: Mapping[str, Any]) -> str:
    """A row of a law as the name of its test; two rounds through it are told apart by a number."""
    return " ".join(f"{name}={value}" for name, value in row.items())
