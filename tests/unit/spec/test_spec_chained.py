"""Pipelines that read another one's results: found in the folder, joined, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.errors import InputError
from strandline.spec import find_spec, load_spec, parse_spec
from strandline.spec.chained import ResultsSpec

HOURS = """
pipeline: hours
source: {table: landing, arrival_time: at, event_time: ts, key: [k]}
watermark: {strategy: ascending}
window: {tumbling: 1h}
aggregates: {n: count(*)}
firings: true
"""
DAYS = """
pipeline: days
source: {pipeline: hours, key: [k]}
window: {tumbling: 1d}
aggregates: {n: sum(n)}
"""

OF_HOURS = ["the rules of pipeline hours"]
BY_ORDER = "evictor: {count: 3}\n"
EARLY = "trigger: {continuous: 10m}\n"


def files(folder: Path, **contents: str) -> Path:
    for name, content in contents.items():
        (folder / f"{name}.yaml").write_text(content)
    return folder


def days_over(tmp_path: Path, hours: str = HOURS, days: str = DAYS) -> ResultsSpec:
    spec = find_spec(files(tmp_path, hours=hours, days=days), "days")
    assert isinstance(spec, ResultsSpec)
    return spec


def test_it_is_joined_with_the_pipeline_of_the_same_folder(tmp_path):
    spec = days_over(tmp_path)
    assert (spec.pipeline, spec.upstream.pipeline, spec.last_firings) == ("days", "hours", True)
    assert spec.source.table == "hours/firings"
    assert dict(spec.source.key) == {"k": "k"}
    assert load_spec(tmp_path / "days.yaml") == spec


def test_one_may_read_the_results_of_one_that_reads_results(tmp_path):
    weeks = DAYS.replace("days", "weeks").replace("hours", "days").replace("1d", "7d")
    files(tmp_path, hours=HOURS, days=DAYS + "firings: true\n", weeks=weeks)
    spec = find_spec(tmp_path, "weeks")
    assert isinstance(spec, ResultsSpec)
    assert isinstance(spec.upstream, ResultsSpec)


@pytest.mark.parametrize(
    ("hours", "days", "edited"),
    [
        (HOURS.replace("1h", "2h"), DAYS, OF_HOURS),
        (HOURS.replace("count(*)", "count(k)"), DAYS, OF_HOURS),
        (HOURS.replace("[k]", "[k, v]"), DAYS, OF_HOURS),
        (HOURS, DAYS.replace("key:", "table: firings, key:"), ["source.table"]),
        (HOURS, DAYS.replace("sum(n)", "max(n)"), ["aggregates"]),
        (HOURS, DAYS.replace("[k]", "[]"), ["source.key"]),
    ],
)
def test_its_fingerprint_covers_whatever_decides_its_numbers_and_its_rules_name_it(
    tmp_path, hours, days, edited
):
    before = days_over(tmp_path)
    after = days_over(tmp_path, hours, days)
    assert before.spec_fingerprint != after.spec_fingerprint
    assert [name for name in after.rules if before.rules[name] != after.rules[name]] == edited


def test_the_fingerprint_is_the_same_whenever_it_is_read(tmp_path):
    one, other = days_over(tmp_path), days_over(tmp_path)
    assert one.spec_fingerprint == other.spec_fingerprint
    assert one.timeline_fingerprint == other.timeline_fingerprint


@pytest.mark.parametrize(
    ("hours", "days", "problem"),
    [
        (HOURS, DAYS.replace("hours", "minutes"), "minutes: no such pipeline"),
        (HOURS.replace("firings: true", ""), DAYS, "write firings: true into the file of hours"),
        (HOURS, DAYS.replace("hours", "days"), "a cycle: days reads days"),
        (
            DAYS.replace("days", "_").replace("hours", "days").replace("_", "hours"),
            DAYS,
            "a cycle",
        ),
        (HOURS, DAYS.replace("n: sum(n)", "records: sum(n)"), "aggregates.records"),
        (HOURS, DAYS.replace("key: [k]", "key: {state: k}"), "source.key.state"),
        (HOURS, DAYS + "watermark: {strategy: ascending}\n", "watermark"),
        (HOURS + "nonsense: 1\n", DAYS, "hours.yaml"),
        (HOURS.replace("tumbling: 1h", "count: 3"), DAYS, "the windows of hours have no end"),
        (HOURS, DAYS.replace("[k]", "[]") + BY_ORDER, "results of different k come at once"),
        (
            HOURS.replace("tumbling: 1h", "sliding: 2h, every: 1h") + EARLY,
            DAYS + BY_ORDER,
            "overlapping windows of hours fire early at the same times",
        ),
        (HOURS, DAYS + "schedule: 0 6 * * *\n", "not a schedule of a pipeline that reads results"),
    ],
)
def test_what_cannot_be_chained_is_refused_with_the_way_out(tmp_path, hours, days, problem):
    with pytest.raises(InputError) as refused:
        days_over(tmp_path, hours, days)
    assert problem in str(refused.value)


@pytest.mark.parametrize("more", [BY_ORDER, "trigger: {count: 2}\nfirings: true\n"])
def test_windows_over_results_of_one_key_may_go_by_their_order(tmp_path, more):
    assert days_over(tmp_path, HOURS, DAYS + more).goes_by_order
    assert days_over(tmp_path, HOURS + EARLY, DAYS + more).goes_by_order
    assert days_over(tmp_path, HOURS, DAYS + EARLY + "firings: true\n").fires_at_times


def test_a_text_alone_does_not_say_what_the_other_pipeline_is():
    content = {"pipeline": "p", "source": {"pipeline": "x"}, "window": {"tumbling": "1d"}}
    with pytest.raises(InputError, match="is defined in a file of its own"):
        parse_spec(content, origin="p.yaml")
