"""Chains on which the engine was wrong once, or in which results meet at one instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from chains import Chain, agree_of_keys, answer_of, chain_of
from edge_streams import a_stream
from engine_under_test import each

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = pytest.mark.spark


def test_a_result_is_judged_by_the_watermark_before_the_one_that_fires_its_window(session):
    # all channels are idle; the record comes, and the watermark leaps over all that it has to fire
    first = a_stream(
        (46, 15, "a"),
        channels=["a", "b"],
        watermark={
            **{"strategy": "time_lag", "lag": "3ms", "emit": {"every": "1ms"}},
            **{"idleness": "10ms", "combine": "splits"},
        },
        window={"session": "14ms"},
        aggregates={"count": "count(*)", "sum": "sum(value)"},
        horizon_ms=77,
    )
    row = {"second": "sessions", "second_lateness": "0ms", "table": "firings", "key": "same"}
    row["fires"] = "at ends"
    chain = chain_of(first, row)
    answer = answer_of(session, chain)
    assert answer.windows
    agree_of_keys(chain, answer)


TWO_RISES: dict[str, tuple[dict[str, str], list[int]]] = {
    "early": ({"fires": "early"}, [1, 2]),
    "early, purging": ({"fires": "early, purging"}, [1, 1]),
    "by count": ({"fires": "by count"}, [2]),
    "sessions by count": ({"fires": "by count", "second": "sessions"}, [2]),
    "the last two": ({"fires": "the last two"}, []),
}
"""How second windows fire, and how many results their firings hold."""


def of_two_rises(case: str) -> Chain:
    """On the tick at 20 channel a raises the watermark to 15, and then channel b to 30."""
    first = a_stream(
        *((1, 7, "a"), (2, 16, "b"), (11, 40, "a"), (12, 31, "b")),
        channels=["a", "b"],
        watermark={
            **{"strategy": "bounded_out_of_orderness", "bound": "0ms"},
            **{"emit": {"every": "10ms"}, "combine": "valve"},
        },
        window={"tumbling": "5ms"},
        aggregates={"count": "count(*)", "sum": "sum(value)"},
        horizon_ms=29,
    )
    row = {"second": "of any ends", "second_lateness": "0ms", "table": "firings", "key": "same"}
    return chain_of(first, row | TWO_RISES[case][0])


@pytest.mark.parametrize("case", TWO_RISES)
def test_of_two_rises_on_one_tick_the_first_fires_without_the_results_of_the_second(answered, case):
    chain, answer = answered[case]
    assert [len(firing.members) for firing in chain.replay().firings] == TWO_RISES[case][1]
    agree_of_keys(chain, answer)


PER_RECORD = {"strategy": "bounded_out_of_orderness", "bound": "0ms", "emit": "per_record"}
FOUND: dict[str, tuple[Any, ...]] = {
    "splits, merged at once, rise once": (
        ((1, 3, "a"), (2, 32, "a")),
        {"channels": ["a"], "watermark": PER_RECORD | {"combine": "splits"}},
        {"second": "sessions", "fires": "early"},
    ),
    "what a tick has fired comes before the records of its millisecond": (
        ((5, 9, "a"), (12, 13, "a"), (20, -8, "a")),
        {
            "channels": ["a"],
            "watermark": {"strategy": "ascending", "emit": {"every": "10ms"}},
            "allowed_lateness": "400ms",
        },
        {"second": "sessions", "fires": "at ends"},
    ),
    "of two rises on one tick the first fires a session, too": (
        ((1, 3, "a"), (2, 19, "b"), (11, 40, "a"), (12, 31, "b")),
        {
            "channels": ["a", "b"],
            "watermark": PER_RECORD | {"emit": {"every": "10ms"}},
        },
        {"second": "sessions", "fires": "at ends"},
    ),
    "as channels end the first fires a session, too": (
        ((1, 3, "a"), (2, 19, "b"), (3, 30, "b")),
        {"channels": ["a", "b"], "watermark": PER_RECORD, "end_of_input": True},
        {"second": "sessions", "fires": "early"},
    ),
    "channels end one by one": (
        ((1, 3, "a"), (2, 7, "b"), (3, 22, "b"), (4, 32, "b")),
        {"channels": ["a", "b"], "watermark": PER_RECORD, "end_of_input": True},
        {"second": "of a hundred", "fires": "early, purging"},
    ),
    "and those of a clock at once": (
        ((1, 3, "a"), (2, 7, "b"), (3, 22, "b"), (44, 32, "b")),
        {
            **{"channels": ["a", "b"], "end_of_input": True},
            "watermark": {"strategy": "time_lag", "lag": "3ms", "emit": {"every": "10ms"}},
        },
        {"second": "of a hundred", "fires": "early, purging"},
    ),
    "what a tick has fired by place comes behind the records of the millisecond before": (
        ((50, 1000, "a"), (60, 15000, "a"), (300, 25000, "a"), (399, 2000, "a"), (399, 3000, "a")),
        {
            "channels": ["a"],
            "watermark": PER_RECORD | {"emit": {"every": "200ms"}},
            "window": {"tumbling": "10s"},
            "allowed_lateness": "1h",
            "horizon_ms": 500,
        },
        {"second": "of an hour", "fires": "by each"},
        {"second": "of an hour", "fires": "by three"},
    ),
}
"""Records, what else the first pipeline says, and what each one behind it does."""


def of_found(case: str) -> Chain:
    """A chain on which the engine was wrong once."""
    records, changed, *behind = FOUND[case]
    aggregates = {"count": "count(*)", "sum": "sum(value)"}
    said = {"window": {"tumbling": "5ms"}, "aggregates": aggregates, "horizon_ms": 59, **changed}
    row = {"second_lateness": "0ms", "table": "firings", "key": "same"}
    chain: Stream | Chain = a_stream(*records, **said)
    for then in behind:
        chain = chain_of(chain, row | then)
    return cast("Chain", chain)


@pytest.fixture(scope="module")
def answered(session):
    """The chains of TWO_RISES and FOUND with the engine's answers, by their names; run at once."""
    chains = [*map(of_two_rises, TWO_RISES), *map(of_found, FOUND)]
    answers = each(chains, lambda chain: answer_of(session, chain))
    return dict(zip([*TWO_RISES, *FOUND], answers, strict=True))


@pytest.mark.parametrize("case", FOUND)
def test_results_meet_the_watermark_as_the_reference_says(answered, case):
    chain, answer = answered[case]
    assert answer.firings or answer.open
    agree_of_keys(chain, answer)
