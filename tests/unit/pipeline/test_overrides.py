"""--allowed-lateness and --bound: of one run by hand, judged as the file is. No Spark."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from joined import COGROUP, PAIRED
from lakes import SPEC, a_record, land

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry, entries_of, row_of
from strandline.model.intervals import DAY_MS, TimeRange, datetime_of
from strandline.pipeline.request.answered import request_fingerprint
from strandline.pipeline.request.request import Request
from strandline.spec import find_spec, parse_spec

command = import_module("strandline.cli.main")
A_DAY = TimeRange(0, DAY_MS)
WIDER = {"allowed_lateness": "3h", "bound": "4h"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meter.yaml").write_text(json.dumps(SPEC), encoding="utf-8")
    return tmp_path


def test_they_count_in_place_of_what_the_file_says_and_are_other_rules(folder):
    plain, wider = find_spec(folder, "meter"), find_spec(folder, "meter", WIDER)
    assert (wider.allowed_lateness, wider.watermark.bound) == (3 * 3_600_000, 4 * 3_600_000)
    assert wider.spec_fingerprint != plain.spec_fingerprint
    assert wider.timeline_fingerprint != plain.timeline_fingerprint
    assert wider.layout == plain.layout
    asked = Request("backfill", A_DAY, reason="a slow day", overrides=WIDER)
    fingerprints = {request_fingerprint(spec, asked, "landing") for spec in (plain, wider)}
    assert len(fingerprints) == 2  # so that none repeats the other


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"bound": "4"}, "with --bound 4: watermark.bound: '4' is not a duration"),
        ({"allowed_lateness": "-1h"}, "allowed_lateness: '-1h' is a negative duration"),
    ],
)
def test_they_are_judged_as_the_file_is(folder, overrides, told):
    with pytest.raises(InputError) as refused:
        find_spec(folder, "meter", overrides)
    assert told in str(refused.value)


def test_a_bound_is_refused_where_the_strategy_has_none(folder):
    ascending = {**SPEC, "watermark": {"strategy": "ascending"}}
    (folder / "meter.yaml").write_text(json.dumps(ascending), encoding="utf-8")
    with pytest.raises(InputError, match=r"with --bound 4h: watermark.bound: no such key"):
        find_spec(folder, "meter", {"bound": "4h"})


def test_a_bound_is_refused_where_the_watermark_is_another_pipelines(folder):
    (folder / "meter.yaml").write_text(json.dumps(SPEC | {"firings": True}), encoding="utf-8")
    days = {
        "pipeline": "days",
        "source": {"pipeline": "meter", "key": ["device"]},
        "window": {"tumbling": "1d"},
    }
    (folder / "days.yaml").write_text(json.dumps(days), encoding="utf-8")
    told = (
        "--bound: belongs to a watermark, and this pipeline uses the one of meter; rebuild meter so"
    )
    with pytest.raises(InputError, match=told):
        find_spec(folder, "days", {"bound": "4h"})
    later = find_spec(folder, "days", {"allowed_lateness": "3h"})
    assert later.allowed_lateness == 3 * 3_600_000


def test_a_window_join_does_not_repeat_a_cogroup():
    asked = Request("backfill", A_DAY)
    both = [
        parse_spec(content | {"aggregates": {"n": "count(*)"}, "pipeline": "both"}, origin="b.yaml")
        for content in (COGROUP, PAIRED)
    ]
    assert len({request_fingerprint(spec, asked, "landing") for spec in both}) == 2


def test_somebody_says_why_and_nothing_that_is_for_good_goes_with_them():
    with pytest.raises(InputError, match="--bound: no reason; say why with --reason TEXT"):
        Request("backfill", A_DAY, overrides={"bound": "4h"})
    for lasting in ({"recreate": True}, {"accept_loss": "gone"}):
        with pytest.raises(InputError, match="is for more than one run, and --bound for one alone"):
            Request("backfill", A_DAY, reason="why", overrides={"bound": "4h"}, **lasting)


def test_the_ledger_keeps_them_with_who_and_why():
    step = Entry("r-1", 1, "published", "backfill", A_DAY, overrides=WIDER, reason="slow")
    (kept,) = entries_of(row_of(step, 1, datetime_of(DAY_MS)))
    assert (kept.overrides, kept.reason) == (WIDER, "slow")


def test_the_command_asks_for_a_reason_and_a_scheduled_run_has_none(folder, capsys, monkeypatch):
    monkeypatch.setattr("strandline.lake.sessions.classic.start_classic", pytest.fail)
    land(folder / "lake", [a_record("1 10:00", "1 10:00")])
    at = ["--pipelines", str(folder), "--lake", str(folder / "lake")]
    asked = ["backfill", "meter", "--start", "2024-03-01", "--end", "2024-03-02", "--bound", "4h"]
    for arguments, told in (
        ([*at, *asked], "error --bound: no reason"),
        ([*at, "advance", "meter", "--to", "2024-03-02", "--bound", "4h"], "No such option"),
    ):
        with pytest.raises(SystemExit) as ended:
            command.main(arguments)
        assert ended.value.code == 2
        assert told in capsys.readouterr().err
    assert not (folder / "lake" / "meter").exists()
