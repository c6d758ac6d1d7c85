"""Triggers, evictors, windows of other kinds, joins and chained pipelines: read, and refused."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import InputError
from strandline.spec import PipelineSpec, find_spec, parse_any, parse_spec
from strandline.spec.runnable import not_yet, runnable
from strandline.spec.trigger import Count, EventTime, Never

SOURCE = {"table": "landing", "arrival_time": "at", "event_time": "ts"}
WATERMARK = {"strategy": "ascending"}
INTERVAL = {"interval": ["-5m", "1h"]}
DISCOVERED = {"channel": "c", "channels": "discovered"}
DISCOVERED_SPLITS = DISCOVERED | {"watermark": WATERMARK | {"combine": "splits"}}


def windows(**fields: Any) -> dict[str, Any]:
    """A pipeline of hours that keeps its firings, with some fields replaced."""
    content = {
        "pipeline": "p",
        "source": SOURCE,
        "watermark": WATERMARK,
        "window": {"tumbling": "1h"},
        "firings": True,
    }
    return content | fields


def join(join: Any, left: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A pipeline of two sources."""
    right = SOURCE | {"watermark": WATERMARK}
    return {
        "pipeline": "p",
        "sources": {"left": right | (left or {}), "right": right},
        "join": join,
        **fields,
    }


def of_single_records() -> dict[str, Any]:
    """Discovered channels that go idle, beside a source that emits with each of its records."""
    left = DISCOVERED | {"sequence": "n", "watermark": WATERMARK | {"idleness": "5m"}}
    content = join(INTERVAL, left)
    content["sources"]["right"] |= {
        "sequence": "n",
        "watermark": WATERMARK | {"emit": "per_record"},
    }
    return content


def refusal(content: dict[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        parse_any(content, origin="p.yaml")
    assert refused.value.exit_code == 2
    return str(refused.value)


# --------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("trigger", "early"),
    [
        ({"event_time": {}}, False),
        ({"event_time": {}, "purging": True}, False),
        ({"continuous": "10m"}, True),
        ({"count": 100, "purging": True}, True),
        ({"delta": 5.0, "of": "speed"}, True),
        ({"delta": 5, "of": "abs(speed)", "purging": True}, True),
    ],
)
def test_a_trigger_is_a_map_whose_first_key_is_its_kind(trigger, early):
    spec = parse_any(windows(trigger=trigger), origin="p.yaml")
    assert spec.fires_by.fires_early is early
    assert spec.fires_by.purging is trigger.get("purging", False)


def test_without_one_windows_have_the_trigger_of_their_kind():
    def fires_by(window: dict[str, Any]) -> Any:
        return parse_any(windows(window=window), origin="p.yaml").fires_by

    assert fires_by({"tumbling": "1h"}) == EventTime()
    assert fires_by({"global": {}}) == Never()
    assert fires_by({"count": 100}) == Count(count=100, purging=True)


def test_a_window_that_counts_and_slides_keeps_its_last_records():
    spec = parse_any(windows(window={"count": 100, "every": 10}), origin="p.yaml")
    assert spec.fires_by == Count(count=10)
    assert spec.evicts_by.count == 100


@pytest.mark.parametrize("kind", ["never", "end_of_input"])
def test_a_global_window_may_wait_for_the_end(kind):
    parse_any(windows(window={"global": {}}, trigger={kind: {}}), origin="p.yaml")


@pytest.mark.parametrize(
    "evictor", [{"count": 10}, {"count": 0}, {"time": "5m"}, {"delta": 3.0, "of": "speed"}]
)
def test_an_evictor_works_before_or_after_the_windows_fire(evictor):
    assert not parse_any(windows(evictor=evictor), origin="p.yaml").evicts_by.after
    assert parse_any(windows(evictor=evictor | {"after": True}), origin="p.yaml").evicts_by.after


def test_an_interval_has_two_bounds_of_which_each_may_be_left_out():
    spec = parse_any(join(INTERVAL), origin="p.yaml")
    assert (spec.join.lower_ms, spec.join.upper_ms) == (-300_000, 3_600_000)
    spec = parse_any(
        join(INTERVAL | {"lower_inclusive": False, "upper_inclusive": False}), origin=""
    )
    assert (spec.join.lower_ms, spec.join.upper_ms) == (-299_999, 3_599_999)


@pytest.mark.parametrize("kind", ["window", "cogroup"])
def test_windows_may_lie_over_two_sources(kind):
    spec = parse_any(join({kind: {}}, window={"session": "5m"}), origin="p.yaml")
    assert spec.window.gap_ms == 300_000


def test_a_source_may_be_another_pipeline():
    spec = parse_any(
        {"pipeline": "p", "source": {"pipeline": "hours"}, "window": {"tumbling": "1d"}}, origin=""
    )
    assert (spec.source.pipeline, spec.source.table, spec.source.key) == ("hours", "windows", {})


def test_what_is_not_given_leaves_the_fingerprint_as_it_was():
    plain = parse_spec(windows(), origin="p.yaml")
    purging = parse_any(windows(trigger={"event_time": {}, "purging": True}), origin="p.yaml")
    assert plain.spec_fingerprint != purging.spec_fingerprint
    assert plain.timeline_fingerprint == purging.timeline_fingerprint
    written = parse_spec(windows(trigger={"event_time": {}}), origin="p.yaml")
    assert plain.spec_fingerprint == written.spec_fingerprint == "371e716e74ecce57"


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"trigger": {"often": {}}},
            "trigger: {'often': {}} is not a kind of trigger; the first key is one of "
            "event_time, continuous, count, delta, never, end_of_input",
        ),
        (
            {"trigger": {"count": 0}},
            "trigger.count: 0 is not a number of records; give a whole number of at least 1",
        ),
        ({"window": {"count": 2**63}}, "window.count: 9223372036854775808 is not a number of"),
        ({"evictor": {"count": 2**63}}, "a whole number of at least 0, and less than 2^63"),
        ({"trigger": {"continuous": "0s"}}, "trigger.continuous: '0s' is not a length"),
        (
            {"trigger": {"delta": -1, "of": "x"}},
            "trigger.delta: -1 is not a distance; give a number of zero or more",
        ),
        ({"trigger": {"delta": 5}}, "trigger.of: missing; add it"),
        ({"trigger": {"event_time": {"at": 3}}}, "trigger.event_time.at: no such key (3)"),
        (
            {"trigger": {"never": {}}},
            "for global windows alone; choose another, or write window: {global: {}}",
        ),
        (
            {"trigger": {"delta": 5, "of": "x"}, "window": {"session": "5m"}},
            "trigger.delta: 5.0 is of a trigger that cannot merge sessions, as in Flink",
        ),
        (
            {"trigger": {"continuous": "10m"}, "firings": False},
            "firings: false is too little where windows fire before their end",
        ),
        ({"window": {"count": 5}, "firings": False}, "firings: false is too little"),
        (
            {"trigger": {"count": 5}, "window": {"count": 5}},
            "is not for counting windows, which have one of their own; leave it out",
        ),
        ({"evictor": {"count": 5}, "window": {"count": 5}}, "is not for counting windows"),
        ({"window": {"count": True}}, "window.count: true is not a number of records"),
        ({"window": {"global": "all"}}, "window.global: 'all' is not a map of keys"),
        (
            {"evictor": {"size": 3}},
            "{'size': 3} is not a kind of evictor; the first key is one of count, time, delta",
        ),
        ({"evictor": {"count": -1}}, "evictor.count: -1 is not a number of records"),
        ({"evictor": {"time": "-5m"}}, "evictor.time: '-5m' is a negative duration"),
    ],
)
def test_a_wrong_trigger_window_or_evictor_is_refused_with_the_way_out(fields, told):
    assert told in refusal(windows(**fields))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (join({"outer": {}}), "join: {'outer': {}} is not a kind of join; the first key is one of"),
        (join({"interval": "5m"}), "join.interval: '5m' is not two bounds; write [-5m, 10m]"),
        (join({"interval": ["5m", "1m"]}), "is the wrong way round; give the lower bound first"),
        (join({"window": {}}), "window: missing; add it"),
        (
            join({"window": {}, "cogroup": {}}, window={"tumbling": "1h"}),
            "is one of two kinds; write either window or cogroup",
        ),
        (join(INTERVAL, {"key": ["a"]}), "sources.right.key: [] is not the key of the left source"),
        (
            join(INTERVAL, {"sequence": "n"}),
            "sources.right.sequence: missing, and the other source has one; give both, or neither",
        ),
        (
            join(INTERVAL, {"watermark": {"strategy": "moon"}}),
            "sources.left.watermark.strategy: 'moon' is not a strategy",
        ),
        (
            join(INTERVAL, {"watermark": WATERMARK | {"emit": "often"}}),
            "sources.left.watermark.emit: 'often' is not an emission",
        ),
        (join(INTERVAL, source=SOURCE), "source: no such key"),
        (
            {
                "pipeline": "p",
                "source": {"pipeline": "x", "start": 3},
                "window": {"tumbling": "1d"},
            },
            "source.start: no such key (3)",
        ),
    ],
)
def test_a_wrong_join_or_chain_is_refused_with_the_way_out(content, told):
    assert told in refusal(content)


# ----------------------------------------------------------------------- what the engine runs


NOT_YET = [
    (join(INTERVAL, {"deduplicate": {"columns": ["n"], "within": "1d of arrival"}}), "deduplicate"),
    (
        join({"window": {}}, window={"tumbling": "1h"}, process="a:b", returns={"n": "int"}),
        "process: functions over the pairs of windows",
    ),
    (join(INTERVAL, DISCOVERED_SPLITS), "sources.left.channels: discovered splits"),
    (of_single_records(), "sources.left.channels: discovered channels with idleness"),
]


@pytest.mark.parametrize(("content", "feature"), NOT_YET)
def test_what_the_engine_does_not_run_yet_is_refused_by_its_name(content, feature):
    with pytest.raises(InputError, match="not yet") as refused:
        parse_spec(content, origin="p.yaml")
    assert feature in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("window", [{"tumbling": "3h"}, {"session": "3h"}])
def test_windows_that_would_fire_ever_so_often_are_refused(window):
    often = windows(window=window, trigger={"continuous": "1s"}, firings=True)
    told = r"continuous: a window could fire 10,800 times before its end, more than 10,000; give"
    with pytest.raises(InputError, match=told):
        parse_spec(often, origin="p.yaml")
    assert parse_spec(often | {"trigger": {"continuous": "2s"}}, origin="p.yaml").fires_at_times


ON_A_GRID = [{"tumbling": "1h"}, {"sliding": "1h", "every": "5m"}]
BY_ORDER = [
    {"trigger": {"count": 5}},
    {"trigger": {"delta": 5, "of": "x", "purging": True}},
    {"evictor": {"count": 5, "after": True}},
    {"evictor": {"delta": 5, "of": "x"}},
    {"trigger": {"count": 5}, "evictor": {"time": "5m", "after": True}},
]


@pytest.mark.parametrize("window", [*ON_A_GRID, {"global": {}}])
@pytest.mark.parametrize("fields", BY_ORDER)
def test_windows_other_than_sessions_may_go_by_the_order_of_their_records(window, fields):
    spec = parse_spec(windows(window=window, **fields), origin="p.yaml")
    assert spec.goes_by_order
    assert spec.lets_records_go
    fires_at_end = "trigger" not in fields and "global" not in window
    assert spec.may_go_unfired is not fires_at_end


@pytest.mark.parametrize(
    ("fields", "may_go_unfired"),
    [
        ({"window": {"count": 5}}, True),
        ({"window": {"count": 5, "every": 2}}, True),
        ({"window": {"global": {}}}, True),
        ({"window": {"global": {}}, "trigger": {"end_of_input": {}}}, False),
    ],
)
def test_windows_of_all_time_are_run(fields, may_go_unfired):
    spec = parse_spec(windows(**fields), origin="p.yaml")
    assert spec.goes_by_order is spec.may_go_unfired is may_go_unfired


@pytest.mark.parametrize("window", ON_A_GRID)
def test_windows_on_a_grid_may_purge_as_they_fire_evict_by_time_or_fire_early(window):
    def parsed(**fields: Any) -> PipelineSpec:
        return parse_spec(windows(window=window, **fields), origin="p.yaml")

    assert parsed(trigger={"event_time": {}, "purging": True}).lets_records_go
    for after in (False, True):
        for time in ("5m", "0ms"):
            assert parsed(evictor={"time": time, "after": after}).lets_records_go
    early = parsed(trigger={"continuous": "10m"})
    assert early.last_may_lack_records
    assert not early.lets_records_go


@pytest.mark.parametrize(
    "fields",
    [
        {"window": {"session": "5m"}, "trigger": {"continuous": "10m", "purging": True}},
        {"window": {"session": "5m"}, "trigger": {"count": 5}, "evictor": {"time": "1m"}},
        {"window": {"session": "5m"}, "evictor": {"time": "0ms"}},
        {"window": {"global": {}}, "trigger": {"continuous": "10m"}},
        {"window": {"tumbling": "1h"}, "trigger": {"continuous": "10m"}, "evictor": {"count": 5}},
    ],
)
def test_windows_that_fire_early_or_let_records_go_are_run(fields):
    assert parse_spec(windows(**fields), origin="p.yaml").last_may_lack_records


def test_an_interval_so_short_that_windows_would_fire_all_the_time_is_refused():
    for window in ({"tumbling": "1d"}, {"cumulative": "1d", "step": "1h"}):
        content = windows(window=window, trigger={"continuous": "8s"})
        with pytest.raises(InputError, match=r"fire 10,800 times.*longer interval") as refused:
            parse_spec(content, origin="p.yaml")
        assert str(refused.value).startswith("p.yaml: trigger.continuous: ")
        content["trigger"] = {"continuous": "9s"}
        assert parse_spec(content, origin="p.yaml").fires_by.continuous == 9_000


def test_a_trigger_changes_no_timeline():
    def timeline(trigger: dict[str, Any] | None, **fields: Any) -> str:
        spec = parse_any(windows(trigger=trigger, **fields), origin="p.yaml")
        return spec.timeline_fingerprint

    for fields in ({}, {"window": {"session": "5m"}}):
        assert timeline({"continuous": "10m"}, **fields) == timeline(None, **fields)


def test_the_default_trigger_may_be_written_down():
    content = windows(trigger={"event_time": {}, "purging": False})
    assert parse_spec(content, origin="p.yaml").fires_by == EventTime()


@pytest.mark.parametrize("evictor", [{"count": 3}, {"delta": 3, "of": "x"}])
def test_on_sessions_an_evictor_that_goes_by_order_is_refused_for_good(evictor):
    spec = parse_any(windows(window={"session": "5m"}, evictor=evictor), origin="p.yaml")
    with pytest.raises(InputError, match="the order of a hash table"):
        runnable(spec, origin="p.yaml")
    assert not_yet(spec)


def test_a_file_of_such_a_pipeline_is_refused_where_it_is_opened(tmp_path):
    (tmp_path / "p.yaml").write_text(
        "pipeline: p\n"
        "source: {table: landing, arrival_time: at, event_time: ts}\n"
        "watermark: {strategy: ascending}\n"
        "window: {session: 1h}\n"
        "evictor: {count: 10}\n"
    )
    with pytest.raises(InputError, match=r"p\.yaml: evictor: on sessions only a time evictor"):
        find_spec(tmp_path, "p")
