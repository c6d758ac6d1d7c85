"""An interval join as a pipeline that is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from joined import COGROUP, JOIN, PAIRED

from strandline.errors import InputError
from strandline.lake.ledger.to_publish import ToPublish
from strandline.spec import find_spec, parse_spec
from strandline.spec.joined import JoinedSpec, WindowPairsSpec

if TYPE_CHECKING:
    from pathlib import Path


def a_join(left: dict[str, Any] | None = None, **fields: Any) -> Any:
    content = JOIN | fields
    sources = JOIN["sources"]
    content["sources"] = sources | {"left": sources["left"] | (left or {})}
    return parse_spec(content, origin="near.yaml")


def test_what_both_sources_land_is_one_pipeline_with_channels_named_by_their_side():
    spec = a_join({"ready_after": "1h"})
    assert isinstance(spec, JoinedSpec)
    assert spec.source.channels == ("left/a", "left/b", "right/a", "right/b")
    assert spec.source.ready_after == 3_600_000
    assert spec.kept_ms == {"left": 45 * 60_000 - 1, "right": 10 * 60_000}
    assert spec.days_follow_each_other
    assert a_join({"channels": "discovered"}).source.channels == "discovered"


def test_its_table_is_pairs_told_apart_by_both_records():
    table = a_join().tables[a_join().result]
    assert (table.name, table.start) == ("pairs", "pair_ts")
    assert {"device", "left_record_id", "right_record_id"} < {*table.keys}


def test_pairs_of_windows_are_told_apart_by_their_window_too_and_ranges_go_by_its_start():
    table = parse_spec(PAIRED, origin="p.yaml").tables["pairs"]
    assert table.start == "window_start"
    assert {"window_start", "window_end", "device", "pair"} < {*table.keys}
    named = {"key": ["device"], "of_windows": ["pairs"], "parts": ["pairs"]}
    assert ToPublish.from_json(named).tables["pairs"] == table
    assert ToPublish.from_json({"key": ["device"]}).tables["pairs"].start == "pair_ts"


def test_other_bounds_are_other_numbers_and_another_source_is_another_timeline():
    spec, wider = a_join(), a_join(join={"interval": ["-10m", "46m"]})
    assert spec.spec_fingerprint != wider.spec_fingerprint
    assert spec.layout == wider.layout
    other = a_join({"valid": "amount > 0"})
    assert other.timeline_fingerprint != spec.timeline_fingerprint
    assert a_join(schedule=None).spec_fingerprint == spec.spec_fingerprint


def test_windows_that_tell_of_pairs_are_other_numbers_over_the_same_timeline():
    cogroup, paired = (parse_spec(content, origin="p.yaml") for content in (COGROUP, PAIRED))
    assert not cogroup.hands_over_records
    assert isinstance(paired, WindowPairsSpec)
    assert paired.hands_over_records
    as_one = parse_spec(PAIRED | {"aggregates": COGROUP["aggregates"]}, origin="p.yaml")
    assert as_one.spec_fingerprint != cogroup.spec_fingerprint
    assert as_one.timeline_fingerprint == cogroup.timeline_fingerprint


SHORT = {"interval": ["-1m", "1m"]}


@pytest.mark.parametrize(
    ("content", "edit", "keys"),
    [
        (JOIN, {"join": {"interval": ["-10m", "50m"]}}, ["join"]),
        (JOIN | {"join": SHORT}, {"join": {"interval": ["-1m", "2m"]}}, ["join"]),
        (JOIN, {"where": "amount > 0"}, ["sources.right"]),
        (COGROUP, {"allowed_lateness": "1h"}, ["allowed_lateness"]),
        (COGROUP, {"join": {"window": {}}, "aggregates": {}}, ["join", "aggregates"]),
        (COGROUP, {"quality": {"gaps": "fail"}}, []),
    ],
)
def test_the_keys_that_an_edit_has_changed_are_known(content, edit, keys):
    sources = content["sources"]
    if "where" in edit:
        edit = {"sources": sources | {"right": sources["right"] | edit}}
    before, after = (parse_spec(one, origin="p.yaml") for one in (content, content | edit))
    assert [key for key in before.rules if before.rules[key] != after.rules[key]] == keys
    assert (before.spec_fingerprint == after.spec_fingerprint) == (not keys)


def test_how_records_of_two_sources_are_joined_does_not_decide_the_watermark_and_its_windows_do():
    join, cogroup = (parse_spec(content, origin="p.yaml") for content in (JOIN, COGROUP))
    assert {"join"} < join.behind_the_watermark == cogroup.behind_the_watermark
    assert not join.behind_the_watermark & {"sources.left", "sources.right", "window"}
    assert "join" not in join.left.behind_the_watermark


EXPECTATION = {"type": "expect_column_to_exist", "column": "x"}
REFUSED = [
    ({"left": {"start": "2024-01-01", "table": "t"}}, None),
    ({"quality": {"expectations": [EXPECTATION]}}, "windows is not published by this pipeline"),
    ({"quarantine_days": 9, "left": {"arrival_time": "came"}}, "left rows have other columns"),
]


@pytest.mark.parametrize(("fields", "problem"), REFUSED)
def test_what_no_pipeline_of_two_sources_does_is_refused_with_its_place(fields, problem):
    if problem is None:
        assert a_join(**fields).source.start is not None
        return
    with pytest.raises(InputError, match=problem):
        a_join(**fields)


def test_no_expectation_is_asked_of_pairs_where_none_are_published():
    asked = {"expectations": [EXPECTATION | {"table": "pairs"}]}
    for content in (JOIN, PAIRED):
        assert parse_spec(content | {"quality": asked}, origin="p.yaml").quality.expectations
    with pytest.raises(InputError, match=r"0\.table: pairs is not published by .*; choose windows"):
        parse_spec(COGROUP | {"quality": asked}, origin="p.yaml")


def test_both_sources_run_by_one_clock():
    content = JOIN["sources"]["right"] | {"start": "2024-01-02"}
    sources = {"left": JOIN["sources"]["left"] | {"start": "2024-01-01"}, "right": content}
    with pytest.raises(InputError, match=r"sources\.right\.start: another start"):
        parse_spec(JOIN | {"sources": sources}, origin="near.yaml")


def test_a_bound_for_one_run_does_not_say_of_which_source(tmp_path: Path):
    (tmp_path / "near.yaml").write_text(yaml.safe_dump(JOIN))
    assert find_spec(tmp_path, "near").result == "pairs"
    with pytest.raises(InputError, match="--bound: is ambiguous"):
        find_spec(tmp_path, "near", {"bound": "1h"})
    with pytest.raises(InputError, match="--allowed-lateness: an interval join has no allowed"):
        find_spec(tmp_path, "near", {"allowed_lateness": "1h"})


def test_under_a_lateness_of_one_run_a_cogroup_is_the_one_whose_file_says_so():
    by_run = parse_spec(COGROUP, origin="both.yaml").under({"allowed_lateness": "6h"})
    by_file = parse_spec(COGROUP | {"allowed_lateness": "6h"}, origin="both.yaml")
    assert by_run.spec_fingerprint == by_file.spec_fingerprint


@pytest.mark.parametrize("content", [JOIN, COGROUP, PAIRED])
def test_the_way_out_of_discovered_splits_is_to_list_the_channels(content):
    """It once named a command that runs no pipeline."""
    sources = {
        side: one
        | {"channels": "discovered", "watermark": one["watermark"] | {"combine": "splits"}}
        for side, one in content["sources"].items()
    }
    with pytest.raises(InputError) as refused:
        parse_spec(content | {"sources": sources}, origin="p.yaml")
    assert refused.value.way_out == "list the channels"
    listed = {side: one | {"channels": ["a", "b"]} for side, one in sources.items()}
    assert parse_spec(content | {"sources": listed}, origin="p.yaml")
