"""Chains: windows over the results of windows, their answers by the engine and by the reference."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from answers import Answer, agree, reference
from engine_under_test import Engine, firings_of, late_of, windows_of
from pyspark.sql import functions as F

from strandline.engine.frames import from_arrow
from strandline.engine.history.history import Upstream
from strandline.engine.history.observed import cells_of
from strandline.engine.rebuild import rebuild_of_scope
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.read import read_records
from strandline.engine.records.results import results_of
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.timeline import Observed
from strandline.engine.watermark_values.forwarded import history_behind
from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING
from strandline.reference.chained import replay_chained
from strandline.spec import parse_any
from strandline.spec.runnable import runnable
from strandline.spec.trigger import Continuous
from strandline.spec.window import WindowOfAllTime

if TYPE_CHECKING:
    from law_streams import Row
    from strategies import Stream

    from strandline.reference.answer import Firing, Replay
    from strandline.reference.records import Record
    from strandline.spec.chained import ChainedSpec, ResultsSpec

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


LONGEST_WAIT_MS = 10_000
"""So long the watermark may go on after the first result where windows of all time fire early."""


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


def rebuild_of(session: Any, chain: Stream | Chain) -> Rebuild:
    """The engine's rebuild of the last windows of a chain, those before it rebuilt as well."""
    if not isinstance(chain, Chain):
        return Engine.on(session, chain).rebuild()
    first, spec = rebuild_of(session, chain.first), chain.spec
    landing = results_of(first.firings(), first.windows(), spec).withColumns(
        {"id": F.expr(RESULT), "value": F.col("sum")}
    )
    landing = from_arrow(session, landing.drop("count", "sum", "ids").toArrow())
    axis = first.history.axis
    records = read_records(landing, spec)
    upstream = Upstream(first.records, first.history.in_probe_order(first.records))
    history = history_behind(spec, Observed(cells_of(records, spec, axis)), upstream)
    columns, scope, by_id = SourceColumns.of(landing), Scope(EVERYTHING), F.col("id")
    return rebuild_of_scope(records, columns, history, first.clock, scope, tie_breaker=by_id)


def answer_of(session: Any, chain: Chain) -> Answer:
    """The engine's answer of the last windows."""
    rebuild = rebuild_of(session, chain)
    emitted, still_open = windows_of(rebuild)
    return Answer(
        windows=emitted,
        open=still_open,
        late=late_of(rebuild),
        firings=firings_of(rebuild),
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
