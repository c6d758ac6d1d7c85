"""The set-based engine answers to every stream as the record-by-record reference does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from answers import Answer, agree, reference_within
from drawn import drawn, in_words
from duplicate_streams import RULES, deduplicated
from engine_under_test import AT_ONCE, Engine
from happenings import richness
from hard_streams import malformed
from hypothesis import strategies as st
from law_streams import CHOICES, ON_A_GRID, rows, streams_of

from strandline.engine.scope import Scope
from strandline.model.intervals import EVERYTHING, TimeRange

if TYPE_CHECKING:
    from strategies import Stream

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

ROWS = rows(
    *CHOICES,
    arranged=("as it came", "shuffled"),
    beside=("nothing", "malformed rows"),
    duplicates=("count", "count", "do not count"),
    scope=("everything", "everything", "a range"),
)


@dataclass(frozen=True)
class Case:
    """One instance of the law.

    Attributes:
        landed: the stream as it has landed, under the pipeline that the engine runs.
        counting: the same without the duplicates, as the reference is to see it.
        beside: malformed rows that have landed, too, by their reason.
        repeated: the ids of the duplicates.
        order: by which the rows are shuffled; None: as they came.
        within: the range that is rebuilt.
    """

    landed: Stream
    counting: Stream
    beside: dict[str, dict[str, Any]]
    repeated: list[int]
    order: int | None
    within: TimeRange

    @property
    def reasons(self) -> dict[int, str]:
        """Why each malformed row is one. None is a duplicate, and nothing is a duplicate of it."""
        wrong = {row["id"]: reason for reason, row in self.beside.items()}
        return wrong | dict.fromkeys(self.repeated, "duplicate")


@st.composite
def cases(draw: st.DrawFn, row: dict[str, Any]) -> Case:
    """The cases of a row."""
    landed = counting = draw(streams_of(row))
    repeated: list[int] = []
    if row["duplicates"] == "do not count":
        counting, records = deduplicated(landed, draw(RULES))
        landed = replace(landed, spec=counting.spec)
        repeated = [record.payload["id"] for record in records]
    start_ms = landed.start_ms + draw(st.integers(-20, 200))
    some = TimeRange(start_ms, start_ms + draw(st.integers(1, 200)))
    return Case(
        landed,
        counting,
        beside=malformed(landed) if row["beside"] == "malformed rows" else {},
        repeated=repeated,
        order=draw(st.integers(0, 2**32)) if row["arranged"] == "shuffled" else None,
        within=some if row["scope"] == "a range" else EVERYTHING,
    )


def case_of(number: int) -> Case:
    """The case of a row: of some the one in which most happens."""
    row = ROWS[number]
    return drawn(cases(row), f"{number} {in_words(row)}", best=lambda case: richness(case.counting))


def answer_of(session: Any, case: Case) -> tuple[Answer, dict[int, str]]:
    """The engine's answer, and why rows are malformed."""

    def shuffled(landed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return random.Random(case.order).sample(landed, len(landed))

    arranged = {} if case.order is None else {"arranged": shuffled, "partitions": 3}
    engine = Engine.on(session, case.landed, beside=list(case.beside.values()), **arranged)
    return engine.answer(Scope(case.within)), engine.malformed() if case.reasons else {}


@pytest.fixture(scope="module")
def answers(request, session) -> Iterator[dict[int, tuple[Case, Future[Any]]]]:
    """The cases that this run asks for, several at once."""
    here = [item for item in request.session.items if item.path == request.path]
    asked = [item.callspec.params["number"] for item in here]
    found = {n: case_of(n) for n in asked}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {n: (case, pool.submit(answer_of, session, case)) for n, case in found.items()}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda n: f"{n}: {in_words(ROWS[n])}")
def test_the_engine_answers_as_the_reference_does(number, answers):
    case, future = answers[number]
    answer, reasons = future.result()
    agree(case.landed, answer, reference_within(case.counting, case.within))
    assert reasons == case.reasons
    if case.within == EVERYTHING and ROWS[number]["window"] in ON_A_GRID:
        assert in_windows_or_late(answer) == known(case.counting)


def in_windows_or_late(answer: Answer) -> list[int]:
    """The ids of all records, each once for all of its windows and once for being late."""
    accepted = {i for row in (*answer.windows, *answer.open) for i in row["ids"]}
    return sorted([*accepted, *(row["id"] for row in answer.late)])


def known(stream: Stream) -> list[int]:
    """The ids of the records that a run knows."""
    return [r.payload["id"] for r in stream.records if r.arrival_ms < stream.horizon_ms]
