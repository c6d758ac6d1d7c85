"""What a pipeline file says, as values: durations, instants, defaults and fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from spec_strategies import pipelines

from strandline.spec import PipelineSpec, load_spec, parse_spec
from strandline.spec.values import parse_duration, parse_instant, written

FLIGHTS = Path(__file__).parents[3] / "pipelines" / "flights.yaml"


def least(**changes: Any) -> PipelineSpec:
    content = {
        "pipeline": "least",
        "source": {"table": "landing/t", "arrival_time": "arrived", "event_time": "happened"},
        "watermark": {"strategy": "ascending"},
        "window": {"tumbling": "1h"},
        **changes,
    }
    return parse_spec(content, origin="least.yaml")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("200ms", 200),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("-1h", -3_600_000),
        ("0ms", 0),
        (" 7s ", 7_000),
        ("9223372036854775807ms", 2**63 - 1),
    ],
)
def test_a_duration_is_a_whole_number_and_a_unit(text, ms):
    assert parse_duration(text) == ms


@given(st.integers(1 - 2**63, 2**63 - 1))
def test_every_duration_of_64_bits_can_be_written(ms):
    assert parse_duration(f"{ms}ms") == parse_duration(written(ms)) == ms


@pytest.mark.parametrize("text", ["1.5h", "1 h", "h", "1H", "", "1h30m", 5, None, True])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.0019Z", 1),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("0001-01-01", -62_135_596_800_000),
    ],
)
def test_an_instant_without_zone_is_utc_a_date_is_midnight_and_micros_are_floored(text, ms):
    assert parse_instant(text) == ms


def test_an_instant_that_yaml_has_read_itself_is_the_same():
    assert parse_instant(yaml.safe_load("2013-01-01T06:00:00Z")) == 1_357_020_000_000
    assert parse_instant(yaml.safe_load("2013-01-01")) == 1_356_998_400_000


def test_the_defaults_are_those_of_the_design():
    spec = least()
    assert spec.allowed_lateness == 0
    assert spec.watermark.interval_ms == 200
    assert spec.watermark.combine == "valve"
    assert spec.watermark.idleness is None
    assert spec.window.offset == 0
    assert spec.source.key == {}
    assert spec.source.declared_channels == ("",)
    assert spec.quality.gaps == "warn"
    assert spec.schedule == "0 6 * * *"
    assert not spec.firings


def test_the_shipped_pipeline_says_what_its_file_says():
    spec = load_spec(FLIGHTS)
    assert spec.source.declared_channels == ("EWR", "JFK", "LGA")
    assert spec.source.key == {"origin": "origin", "carrier": "carrier"}
    assert spec.watermark.candidate.of(0) == -3 * 3_600_000 - 1
    assert spec.allowed_lateness == 2 * 3_600_000
    assert spec.quality.max_late_share == 0.02


def test_keys_are_a_list_of_columns_or_a_map_of_expressions():
    source = {"table": "t", "arrival_time": "a", "event_time": "e"}
    listed = least(source={**source, "key": ["a", "b"]})
    mapped = least(source={**source, "key": {"a": "a", "b": "b"}})
    assert listed == mapped
    assert least(source={**source, "key": {"hour": "hour(e)"}}).source.key == {"hour": "hour(e)"}


def test_numbers_of_kafka_partitions_need_no_quotes():
    source = {"table": "t", "arrival_time": "a", "event_time": "e", "channel": "p"}
    spec = least(source={**source, "channels": [0, "1"]})
    assert spec.source.declared_channels == ("0", "1")


def test_discovered_channels_are_not_declared():
    source = {"table": "t", "arrival_time": "a", "event_time": "e", "channel": "p"}
    assert least(source={**source, "channels": "discovered"}).source.declared_channels is None


def test_a_session_gap_is_a_duration_or_an_expression():
    assert least(window={"session": "20m"}).window.session == 1_200_000
    assert least(window={"session": "gap_s * 1000"}).window.session == "gap_s * 1000"


def test_idleness_is_in_effect_only_where_ticks_judge_it():
    def in_effect(emit: Any) -> bool:
        watermark = {"strategy": "ascending", "idleness": "1m", "emit": emit}
        return least(watermark=watermark).watermark.idleness_in_effect

    assert in_effect({"every": "200ms"})
    assert not in_effect({"every": "0ms"})
    assert not in_effect("per_record")


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        least().allowed_lateness = 1


@DEAR
@given(pipelines())
def test_the_same_file_gives_the_same_spec_and_fingerprints(content):
    one, other = (parse_spec(content, origin="a.yaml") for _ in range(2))
    assert one == other
    assert one.spec_fingerprint == other.spec_fingerprint
    assert one.timeline_fingerprint == other.timeline_fingerprint


@pytest.mark.parametrize(
    ("changes", "spec_changes", "timeline_changes"),
    [
        ({"allowed_lateness": "1s"}, True, True),
        ({"window": {"tumbling": "2h"}}, True, True),
        ({"watermark": {"strategy": "bounded_out_of_orderness", "bound": "1s"}}, True, True),
        ({"aggregates": {"n": "count(*)"}}, True, False),
        ({"quality": {"gaps": "fail"}}, False, False),
        ({"schedule": None}, False, False),
        ({"spark": {"spark.sql.shuffle.partitions": 4}}, False, False),
    ],
)
def test_a_fingerprint_changes_with_what_it_is_of(changes, spec_changes, timeline_changes):
    one, other = least(), least(**changes)
    assert (one.spec_fingerprint != other.spec_fingerprint) == spec_changes
    assert (one.timeline_fingerprint != other.timeline_fingerprint) == timeline_changes


@pytest.mark.parametrize(
    ("watermark", "handler"),
    [
        ({"strategy": "legacy_ascending"}, "warn"),
        ({"strategy": "legacy_ascending", "on_violation": "fail"}, "fail"),
        ({"strategy": "legacy_ascending", "on_violation": "ignore"}, None),
        ({"strategy": "ascending"}, None),
    ],
)
def test_only_a_handler_that_says_something_counts_violations(watermark, handler):
    assert least(watermark=watermark).watermark.violation_handler == handler
