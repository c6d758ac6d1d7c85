"""Two inputs and chained windows: what the goldens do not say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.errors import InputError
from strandline.reference.answer import Replay
from strandline.reference.chained import replay_chained
from strandline.reference.joins import replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.spec import parse_any

SIDE = {
    "table": "t",
    "arrival_time": "a",
    "event_time": "t",
    "channel": "c",
    "channels": ["c"],
    "watermark": {"strategy": "ascending", "emit": "per_record"},
}


def two(join: dict[str, Any], left: dict[str, Any] | None = None, **fields: Any) -> Any:
    content = {
        "pipeline": "p",
        "sources": {"left": SIDE | (left or {}), "right": SIDE},
        "join": join,
        **fields,
    }
    return parse_any(content, origin="p.yaml")


def record(at_ms: int, side: str, channel: str = "c", **fields: Any) -> Record:
    return Record(at_ms, at_ms, f"{side}{at_ms}", channel=channel, input=side, **fields)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_channel_that_its_side_does_not_have_is_refused_by_its_place(side):
    windows = two({"cogroup": {}}, window={"tumbling": "5ms"})
    interval = two({"interval": ["0ms", "5ms"]})
    for run, spec in ((replay_windows_of_two, windows), (replay_interval_join, interval)):
        with pytest.raises(InputError, match=rf"p: sources\.{side}\.channels: .*lacks 'x'"):
            run(spec, [record(1, side, "x")], start_ms=0)


def test_a_side_may_discover_its_channels_and_the_other_waits_for_them():
    spec = two(
        {"cogroup": {}}, {"channels": "discovered"}, window={"tumbling": "5ms"}, firings=True
    )
    records = [record(1, "left", "x"), record(2, "right"), record(9, "right"), record(11, "left")]
    told = replay_windows_of_two(spec, records, start_ms=0)
    assert told.firings == ()  # the channel x stands at its first record, and holds all back
    told = replay_windows_of_two(spec, [*records, record(12, "left", "x")], start_ms=0)
    assert [firing.window.start_ms for firing in told.firings] == [0]


def test_ingestion_gives_the_records_of_its_own_side_their_arrival():
    watermark = {"strategy": "ingestion", "emit": "per_record"}
    spec = two({"interval": ["0ms", "5ms"]}, {"watermark": watermark})
    records = [replace(record(10, side), ts_ms=3) for side in ("left", "right")]
    told = replay_interval_join(spec, records, start_ms=0)
    assert {name: kept[0].ts_ms for name, kept in told.kept.items()} == {"left": 10, "right": 3}


def test_splits_of_one_side_are_one_channel_of_the_valve_also_where_they_are_discovered():
    watermark = SIDE["watermark"] | {"combine": "splits"}
    left = {"watermark": watermark, "channels": "discovered"}
    spec = two({"window": {}}, left, window={"tumbling": "5ms"})
    records = [record(1, "left", "x"), record(2, "right"), record(9, "right"), record(9, "left")]
    told = replay_windows_of_two(spec, [*records, record(9, "left", "x", sequence=1)], start_ms=0)
    assert [r.watermark_ms for r in told.watermarks] == [0, 1, 8]
    assert {record.input for record in told.firings[0].members} == {"left", "right"}


def test_second_windows_take_every_firing_or_the_last_of_each_window():
    first = parse_any(
        {
            "pipeline": "p",
            "source": {"table": "t", "arrival_time": "a", "event_time": "t", "key": "k"},
            "watermark": {"strategy": "ascending", "emit": "per_record"},
            "window": {"tumbling": "10ms"},
            "trigger": {"continuous": "3ms"},
            "firings": True,
        },
        origin="p.yaml",
    )
    told = replay(first, [Record(t, t, str(t), key=("k",)) for t in (1, 4, 8, 25)], start_ms=0)
    assert [firing.timer_ms for firing in told.firings] == [3, 6, 9]

    def sizes(table: str) -> list[int]:
        source = {"pipeline": "p", "table": table}
        second = parse_any(
            {"pipeline": "q", "source": source, "window": {"tumbling": "20ms"}}, origin="q.yaml"
        )
        answer = replay_chained(second, told, lambda firing, result: replace(result, key=()))
        return [len(firing.members) for firing in answer.firings]

    assert sizes("firings") == [3]
    assert sizes("windows") == [1]


@pytest.mark.parametrize("ended", [False, True])
def test_results_do_not_fire_windows_of_all_time_for_ever_as_their_input_ends(ended):
    first = parse_any(
        {
            "pipeline": "p",
            "source": {"table": "t", "arrival_time": "a", "event_time": "t", "key": "k"},
            "watermark": {"strategy": "ascending", "emit": "per_record"},
            "window": {"tumbling": "10ms"},
        },
        origin="p.yaml",
    )
    records = [Record(t, t, str(t), key=("k",)) for t in (1, 25)]
    told = replay(first, records, start_ms=0, end_of_input=ended)
    fires = {"window": {"global": {}}, "trigger": {"continuous": "3ms"}, "firings": True}
    second = parse_any({"pipeline": "q", "source": {"pipeline": "p"}, **fires}, origin="q.yaml")

    def answer() -> Replay:
        return replay_chained(second, told, lambda firing, result: replace(result, key=()))

    if ended:
        with pytest.raises(InputError, match=r"q: trigger\.continuous: .* would fire without end"):
            answer()
    else:
        assert [firing.timer_ms for firing in answer().firings] == [12, 15, 18, 21, 24]
