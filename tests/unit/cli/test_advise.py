"""advise: what it refuses before any engine starts, and how its answer is shown."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from joined import COGROUP, JOIN
from lakes import a_spec, land

from strandline.cli import show
from strandline.engine.losses.reached import Reached
from strandline.errors import InputError
from strandline.lake.store.lake import Lake
from strandline.pipeline.advise.advice import delays_of
from strandline.pipeline.advise.advise import require_advisable
from strandline.pipeline.views.kept_advice import keep_advice, kept_advice
from strandline.spec.loading import parse_any
from strandline.spec.runnable import runnable

advise, command = import_module("strandline.cli.advise"), import_module("strandline.cli.main")
HOUR_MS = 3_600_000


def a_row(hours: int, lost: int) -> dict[str, Any]:
    return {
        "total_ms": hours * HOUR_MS,
        "lost": lost,
        "share_lost": lost / 10_000,
        "final_after_ms": (hours + 1) * HOUR_MS,
        "final_after_ms_95": None,
        "final_after_ms_longest": None,
        "windows_final": 9,
    }


def a_part(name: str, lost: int, needs: int | None) -> dict[str, Any]:
    return {
        "name": [name],
        "records": 5_000,
        "lost": lost,
        "share_lost": lost / 5_000,
        "lost_by_smallest": 1,
        "smallest_total_ms": needs,
    }


def an_advice(**changes: Any) -> dict[str, Any]:
    setting = {"bound_ms": HOUR_MS, "allowed_lateness_ms": HOUR_MS}
    return {
        "pipeline": "meter",
        "horizon": "2024-03-09T00:00:00Z",
        "keep": "99.9%",
        "records": 10_000,
        "windows": 9,
        "bound_name": "bound",
        "in_force": a_row(2, 100) | setting,
        "smallest": a_row(5, 3) | setting | {"allowed_lateness_ms": 4 * HOUR_MS},
        "settings": [a_row(0, 9_000), a_row(2, 100), a_row(5, 3), a_row(8, 0), a_row(9, 0)],
        "channels": [a_part("a[b]", 90, None), a_part("b", 10, 5 * HOUR_MS)],
        "channels_in_all": 2,
        "key": ["device"],
        "keys": [a_part("d1", 0, 0)],
        "keys_in_all": 1,
        "days": [a_part("2024-03-04", 90, None)],
        "clocks_ahead": {
            "max_ahead_ms": HOUR_MS,
            "in_force": False,
            "records": 7,
            "with": {"records": 9_993, "lost": 4},
            "without": {"records": 10_000, "lost": 100},
        },
    } | changes


def shown(advice: dict[str, Any], capsys) -> list[str]:
    show.document(advice, as_json=False, human=advise._show)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_each_setting_is_a_line_with_what_it_loses_and_costs(capsys):
    lines = shown(an_advice(), capsys)
    assert lines[1] == (
        "in force: bound 1h + allowed lateness 1h loses 100 records (1.00 %); "
        "windows final after 3h"
    )
    assert "keeps 99.9%: bound 1h + allowed lateness 4h loses 3 records" in lines[2]
    table = lines[3:8]
    starts = {line.index(" %") for line in table[1:]}
    assert len(starts) == 1  # shares stand one below the other
    bars = [line.count("█") for line in table[1:]]
    assert bars == sorted(bars, reverse=True)
    assert (bars[0], bars[-1]) == (24, 0)
    assert [line.split("←")[1].strip() for line in table if "←" in line] == [
        "in force",
        "keeps 99.9%",
    ]
    assert not any(line.lstrip().startswith("9h") for line in lines)  # nothing is lost by less
    text = "\n".join(lines)
    assert "a[b]" in text
    assert "more than the settings above" in text
    assert "key (device)" not in text  # no key loses any
    assert "day with most losses at the smallest setting: 2024-03-04, 1 of 5,000 lost" in text
    assert "7 event times more than 1h after arrival" in text
    assert "with it 4 of the other records too late, without it 100" in text


def test_without_a_bound_only_the_lateness_is_named(capsys):
    text = "\n".join(shown(an_advice(bound_name=None, smallest=None), capsys))
    assert "in force: allowed lateness 1h loses" in text
    assert "none of the settings below keeps 99.9%" in text
    assert "bound + lateness" not in text


def test_a_setting_is_named_to_its_last_minute(capsys):
    setting = {"bound_ms": 600_000, "allowed_lateness_ms": 2_870 * 60_000}
    text = " ".join(shown(an_advice(smallest=a_row(48, 0) | setting), capsys))
    assert "bound 10m + allowed lateness 1d 23h 50m loses 0 records" in text


def test_a_key_of_several_lines_is_one_line(capsys):
    text = " ".join(
        shown(an_advice(keys=[a_part("a\nin force: all is well\x1b", 90, None)]), capsys)
    )
    assert r"a\nin force: all is well\x1b" in text


def test_of_no_records_it_says_so(capsys):
    (line,) = shown(an_advice(records=0), capsys)
    assert line.startswith("meter: no record in the range")


@pytest.mark.parametrize(
    ("text", "share"), [("99.9%", "0.999"), ("100 %", "1"), ("0.5", "0.5"), ("1", "1")]
)
def test_a_share_is_a_percentage_or_a_number_up_to_one(text, share):
    assert advise.share_of(text) == Fraction(share)


@pytest.mark.parametrize("text", ["", "%", "0", "-1%", "101%", "99.9", "1/0", "nan", "9e9999999%"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InputError, match="is not a share"):
        advise.share_of(text)


@pytest.mark.parametrize(("windows", "half", "most"), [(2, 1, 2), (3, 2, 3), (20, 10, 19)])
def test_as_many_windows_as_it_says_are_final_by_then(windows, half, most):
    ends_ms = np.arange(1, windows + 1) * HOUR_MS
    happened_ms = (2.0 * ends_ms)[:, None]
    closes = Reached(ends_ms - HOUR_MS, happened_ms, happened_ms)
    (delay,) = delays_of(closes, HOUR_MS)
    assert (delay["final_after_ms"], delay["final_after_ms_95"]) == (half * HOUR_MS, most * HOUR_MS)


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"window": {"session": "10m"}}, "saved by the session itself; .*strandline plan meter"),
        ({"window": {"sliding": "10m", "every": "1h"}}, "leave gaps"),
        ({"window": {"count": 3}}, "no end"),
        ({"watermark": {"strategy": "none"}}, "no record is late"),
        ({"allowed_lateness": "9223372036854775807ms"}, "no window is ever closed"),
    ],
)
def test_what_one_pass_cannot_answer_is_refused_with_the_way_out(changes, problem):
    more = {"firings": True} if "count" in changes.get("window", {}) else {}
    with pytest.raises(InputError, match=problem):
        require_advisable(a_spec(**changes, **more))


@pytest.mark.parametrize("content", [JOIN, COGROUP], ids=["pairs", "windows of two"])
def test_a_join_is_refused(content):
    spec = runnable(parse_any(content, origin="both.yaml"), origin="both.yaml")
    with pytest.raises(InputError, match="joins two; write a pipeline"):
        require_advisable(spec)


def test_the_command_refuses_before_an_engine_starts(tmp_path, capsys):
    land(tmp_path, [])
    (tmp_path / "meter.yaml").write_text(
        "pipeline: meter\n"
        "source: {table: landing/meter, arrival_time: arrived_at, event_time: happened_at}\n"
        "watermark: {strategy: ascending}\nwindow: {tumbling: 1h}\naggregates: {n: count(*)}\n"
    )
    places = ["--pipelines", str(tmp_path), "--lake", str(tmp_path)]
    for options, problem in (
        (["--keep", "2"], "is not a share"),
        (["--start", "2024-03-02", "--end", "2024-03-01"], "not before"),
        (["--max-ahead", "-1h"], "is negative"),
        (["--max-ahead", "soon"], "not a duration"),
        (["--as-of", "never"], "--as-of"),
    ):
        with pytest.raises(SystemExit) as ended:
            command.main(["advise", "meter", *options, *places])
        assert ended.value.code == 2, options
        assert problem in capsys.readouterr().err


# ------------------------------------------------------------------------------------ what is kept


def test_the_last_advice_is_kept_for_the_report_as_long_as_the_rules_stay(tmp_path):
    spec, lake = a_spec(), Lake.at(str(tmp_path))
    keep_advice(spec, lake, {"records": 3})
    assert kept_advice(spec, lake) is None  # the pipeline has no tables: nothing is made
    assert not list(tmp_path.iterdir())
    (tmp_path / "meter").mkdir()
    keep_advice(spec, lake, {"records": 3})
    assert kept_advice(spec, lake)["records"] == 3
    assert kept_advice(a_spec(allowed_lateness="2h"), lake) is None
    (tmp_path / "meter" / "_reports" / "advice.json").write_text("[")
    assert kept_advice(spec, lake) is None
