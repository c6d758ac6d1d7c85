"""Scenarios on a chosen engine, in sessions that are opened for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.conformance.run import Case, ConformanceResult, Outcome, run_conformance
from strandline.conformance.spark_runner import SparkEngine
from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.start import start

_AT_ONCE = 4
"""The number of scenarios at the same time; with few rows an engine mostly waits."""
_OF_ONE_SERVER = 60
"""The number of scenarios for one process of Sail, which keeps some 13 MB of each until it ends."""


def run_on_engine(
    cases: Sequence[Case],
    choice: EngineChoice,
    *,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> ConformanceResult:
    """Run scenarios on an engine.

    Args:
        cases: the scenarios with their expected results.
        choice: the engine.
        on_outcome: called with each outcome when it is known.

    Raises:
        InputError: the engine cannot be started.
        RetryableError: the engine does not answer.
    """
    of_one = _OF_ONE_SERVER if choice.name == "sail" else max(len(cases), 1)
    outcomes: list[Outcome] = []
    for first in range(0, len(cases), of_one):
        session = start(choice, "strandline conformance", few_rows=True)
        try:
            engine, part = SparkEngine(session.spark), cases[first : first + of_one]
            result = run_conformance(part, engine, at_once=_AT_ONCE, on_outcome=on_outcome)
            outcomes += result.outcomes
        finally:
            session.stop()
    return ConformanceResult(tuple(outcomes))
