"""Windows over the results of windows: on Spark as in the reference."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from chains import KEYS, SECOND, Chain, agree_of_keys, answer_of, chain_of
from drawn import ROUNDS, drawn, in_words
from engine_under_test import each
from happenings import richness
from law_streams import rows, streams_of

from strandline.spec.window import Session, WindowOfAllTime

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

ROWS = rows(
    window=("tumbling", "sliding", "session"),
    second=tuple(SECOND),
    second_lateness=("0ms", "20ms"),
    table=("firings", "windows"),
    key=tuple(KEYS),
    lateness_ms=(0, 25, 400),
    end_of_input=(False, True),
    fires=("at ends", "early", "early, purging", "by count", "the last two"),
    first_fires=("at ends", "at ends", "early"),
)
RICHEST = 1
"""So many chains of a round go to Spark of each kind: those in which most happens."""
LONGEST = 2
"""And so many chains of three pipelines."""


def happenings(chain: Chain) -> int:
    """How much happens in second windows; what chance seldom brings counts most."""
    told = chain.replay()
    return richness(chain.stream) + 3 * len(told.late) + 5 * len(told.accepted_late)


def drawn_chain(number: int) -> Chain:
    """The chain of a row: of some the one in which most happens."""
    row = ROWS[number]
    chains = streams_of(row).map(lambda stream: chain_of(stream, row))
    return drawn(chains, f"{number} {in_words(row)}", best=happenings)


def test_windows_of_windows_are_those_of_the_reference(session):
    drawn_chains = [drawn_chain(number) for number in range(len(ROWS))]
    kinds: defaultdict[Any, list[Chain]] = defaultdict(list)
    for chain in sorted(drawn_chains, key=happenings):
        then = chain.then
        of_all_time = isinstance(then.window, WindowOfAllTime)
        kind = "of all time" if of_all_time else (then.fires_by, then.evictor)
        kinds[isinstance(then.window, Session), kind].append(chain)
    chains = [chain for of_kind in kinds.values() for chain in of_kind[-RICHEST * ROUNDS :]]
    answers = each(chains, lambda chain: answer_of(session, chain))
    for chain, answer in answers:
        agree_of_keys(chain, answer)
    assert any(answer.late for _, answer in answers)
    assert any(row["late_accepted"] for _, answer in answers for row in answer.windows)


def test_windows_of_windows_of_windows_are_those_of_the_reference(session):
    ending = [n for n, row in enumerate(ROWS) if row["second"] not in {"of all time", "so many"}]
    chains = [chain_of(drawn_chain(number), ROWS[number - 1]) for number in ending[::2]]
    chains = sorted(chains, key=happenings)[-LONGEST * ROUNDS :]
    for chain, answer in each(chains, lambda chain: answer_of(session, chain)):
        assert answer.firings
        agree_of_keys(chain, answer)
