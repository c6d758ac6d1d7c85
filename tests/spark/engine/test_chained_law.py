"""Windows over the results of windows: on Spark as in the reference."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import pytest
from answers import Answer, agree, reference
from drawn import ROUNDS, drawn, in_words
from edge_streams import a_stream
from engine_under_test import Engine, each, firings_of, late_of, windows_of
from happenings import richness
from law_streams import Row, rows, streams_of
from pyspark.sql import functions as F

from strandline.engine.past.first_records import in_probe_order
from strandline.engine.past.history import Upstream
from strandline.engine.past.observed import cells_of
from strandline.engine.rebuild import Rebuild, Scope, close
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.records.results import results_of
from strandline.engine.timeline import Observed
from strandline.engine.values.forwarded import history_behind
from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING
from strandline.reference import replay_chained
from strandline.spec import parse_any
from strandline.spec.runnable import runnable
from strandline.spec.trigger import Continuous
from strandline.spec.window import Session, WindowOfAllTime

if TYPE_CHECKING:
    from strategies import Stream

    from strandline.reference import Firing, Record, Replay
    from strandline.spec.chained import ChainedSpec, ResultsSpec

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

SECOND: dict[str, dict[str, Any]] = {
    "of the same ends": {"tumbling": "{size}ms"},
    "of any ends": {"tumbling": "37ms", "offset": "5ms"},
    "sliding": {"sliding": "60ms", "every": "25ms"},
    "sessions": {"session": "15ms"},
    "of all time": {"global": {}},
    "so many": {"count": 3, "every": 2},
}
WINDOWS = SECOND | {"of a hundred": {"tumbling": "100ms"}, "of an hour": {"tumbling": "1h"}}
KEYS = {"same": {"k": "k"}, "one": {"k": "'x'"}}
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
LONGEST_WAIT_MS = 10_000
"""So long the watermark may go on after the first result where windows of all time fire early."""
FIRES: dict[str, dict[str, Any]] = {
    "at ends": {},
    "early": {"trigger": {"continuous": "11ms"}},
    "early, purging": {"trigger": {"continuous": "11ms", "purging": True}},
    "by count": {"trigger": {"count": 2}},
    "the last two": {"evictor": {"count": 2}},
    "by each": {"trigger": {"count": 1}},
    "by three": {"trigger": {"count": 3}},
}
"""How second windows fire; the last ways go by the order of results."""
RESULT = "concat_ws('|', k, unix_millis(window_start), unix_millis(window_end), firing)"
"""What tells a result."""


@dataclass(frozen=True)
class Chain:
    """A stream, or a chain, and windows over the results of its windows."""

    first: Stream | Chain
    then: ChainedSpec

    @property
    def stream(self) -> Stream:
        """The stream that the first windows of all are over."""
        return self.first.stream if isinstance(self.first, Chain) else self.first

    @cached_property
    def spec(self) -> ResultsSpec:
        return self.then.over(self.first.spec)

    def replay(self) -> Replay:
        """The reference's answer of the second windows."""
        told = self.first.replay()
        times: Counter[Any] = Counter()
        names = {}
        for firing in told.firings:
            times[firing.key, firing.window] += 1
            window = (firing.key[0], firing.window.start_ms, firing.window.end_ms)
            names[firing.seq] = "|".join(map(str, (*window, times[firing.key, firing.window])))

        def result(firing: Firing, record: Record) -> Record:
            value = sum(member.payload["value"] for member in firing.members)
            key = firing.key if self.then.source.key["k"] == "k" else ("x",)
            return replace(record, key=key, payload={"id": names[firing.seq], "value": value})

        return replay_chained(self.then, told, result)


def chain_of(stream: Stream | Chain, row: Row) -> Chain:
    """A stream's or a chain's results in further windows as a row of the law says.

    Where that is refused, as results would have no order or firings no end, as much of it as is
    run.
    """
    at_ends = {"fires": "at ends"}
    in_order = at_ends | {"first_fires": "at ends", "key": "same"}
    for changed in ({}, at_ends, in_order):
        with suppress(InputError):
            chain = _chain_of(stream, {**row, **changed})
            runnable(chain.spec, origin="second.yaml")
            if not fires_too_often(chain):
                return chain
    msg = f"nothing of {row} is run"
    raise AssertionError(msg)


def _chain_of(stream: Stream | Chain, row: Row) -> Chain:
    if not isinstance(stream, Chain) and row.get("first_fires") == "early":
        early = {"trigger": Continuous(continuous="7ms"), "firings": True}
        stream = replace(stream, spec=stream.spec.model_copy(update=early))
    size_ms = getattr(stream.spec.window, "tumbling", 10)
    window = {name: _sized(given, size_ms) for name, given in WINDOWS[row["second"]].items()}
    if row["second"] == "of the same ends":
        window["offset"] = f"{getattr(stream.spec.window, 'offset', 0)}ms"
    then = parse_any(
        {
            "pipeline": f"over_{stream.spec.pipeline}",
            "source": {
                "pipeline": stream.spec.pipeline,
                "table": row["table"],
                "key": KEYS[row["key"]],
            },
            "window": window,
            "allowed_lateness": row["second_lateness"],
            **FIRES[row["fires"]],
            "firings": True,
            "aggregates": {
                "count": "count(*)",
                "sum": "sum(value)",
                "ids": "array_sort(collect_list(id))",
            },
        },
        origin="second.yaml",
    )
    return Chain(stream, cast("ChainedSpec", then))


def fires_too_often(chain: Chain) -> bool:
    """Whether windows of all time would fire at each multiple up to a watermark that is far off."""
    if not (isinstance(chain.then.window, WindowOfAllTime) and chain.then.fires_at_times):
        return False
    told = chain.first.replay()
    reached = [rise.watermark_ms for rise in told.watermarks]
    ends = [firing.window.end_ms for firing in told.firings]
    return bool(reached and ends) and max(reached) - min(ends) > LONGEST_WAIT_MS


def _sized(given: Any, size_ms: int) -> Any:
    return given.format(size=3 * size_ms) if isinstance(given, str) else given


def happenings(chain: Chain) -> int:
    """How much happens in second windows; what chance seldom brings counts most."""
    told = chain.replay()
    return richness(chain.stream) + 3 * len(told.late) + 5 * len(told.accepted_late)


def drawn_chain(number: int) -> Chain:
    """The chain of a row: of some the one in which most happens."""
    row = ROWS[number]
    chains = streams_of(row).map(lambda stream: chain_of(stream, row))
    return drawn(chains, f"{number} {in_words(row)}", best=happenings)


def rebuild_of(session: Any, chain: Stream | Chain) -> Rebuild:
    """The engine's rebuild of the last windows of a chain, those before it rebuilt as well."""
    if not isinstance(chain, Chain):
        return Engine.on(session, chain).rebuild()
    first, spec = rebuild_of(session, chain.first), chain.spec
    told_by = F.col("id") if isinstance(chain.first, Chain) else F.format_string("%04d", "id")
    landing = results_of(first.firings(told_by), first.windows(), spec).withColumns(
        {"id": F.expr(RESULT), "value": F.col("sum")}
    )
    landing = session.createDataFrame(landing.drop("count", "sum", "ids").toArrow())
    axis = first.history.axis
    records = read_records(landing, spec, axis)
    upstream = Upstream(first.records, in_probe_order(first.records, first.history))
    history = history_behind(session, spec, Observed(cells_of(records, spec, axis)), upstream)
    columns = SourceColumns(tuple(landing.columns))
    return close(session, records, columns, history, first.clock, Scope(EVERYTHING))


def answer_of(session: Any, chain: Chain) -> Answer:
    """The engine's answer of the last windows."""
    rebuild = rebuild_of(session, chain)
    emitted, still_open = windows_of(rebuild)
    return Answer(
        windows=emitted,
        open=still_open,
        late=late_of(rebuild),
        firings=firings_of(rebuild, F.col("id")),
        final_watermark=rebuild.final_watermark(),
        violations=0,
    )


def agree_of_keys(chain: Chain, found: Answer) -> None:
    """The engine and the reference; what results of several keys fire at once has no order."""
    by_key = itemgetter("key")
    expected = reference(chain)
    agree(
        chain,
        replace(found, firings=sorted(found.firings, key=by_key)),
        replace(expected, firings=sorted(expected.firings, key=by_key), violations=0),
    )


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
