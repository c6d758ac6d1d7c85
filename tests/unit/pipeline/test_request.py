"""What is asked of a run is refused before anything is started, where it alone is wrong."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace

import pytest
from lakes import SPEC, a_record, instant, land

from strandline.errors import InputError
from strandline.model.intervals import TimeRange
from strandline.pipeline.notes.notes import of_staged
from strandline.pipeline.request.request import Request

command = import_module("strandline.cli.main")
NOON = instant("4 12:00")
A_DAY = TimeRange(instant("1"), instant("2"))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_horizon_that_has_not_come_cannot_be_asked_for(dry_run):
    with pytest.raises(InputError, match=r"--to: 2024-03-05T00:00:00Z has not come yet") as caught:
        Request("advance", to_ms=instant("5"), now_ms=NOON, dry_run=dry_run)
    assert caught.value.exit_code == 2
    with pytest.raises(InputError, match="--as-of: 2024-03-04T12:01:00Z has not come yet"):
        Request("backfill", A_DAY, as_of_ms=instant("4 12:01"), now_ms=NOON, dry_run=dry_run)


def test_the_present_is_no_future_and_a_day_counts_from_its_midnight():
    assert Request("backfill", A_DAY, as_of_ms=NOON, now_ms=NOON).as_of_ms == NOON
    assert Request("advance", to_ms=instant("4 23:00"), now_ms=NOON).until_ms == instant("4")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["advance", "meter", "--to", "2999-01-01"], "--to"),
        (["plan", "meter", "--to", "2999-01-01"], "--to"),
        (
            [
                "backfill",
                "meter",
                "--start",
                "2024-03-01",
                "--end",
                "2024-03-02",
                "--as-of",
                "2999-01-01",
            ],
            "--as-of",
        ),
        (["advance", "meter", "--to", "2024-03-02", "--max-bytes", "much"], "--max-bytes"),
        (["advance", "meter", "--to", "2024-03-02", "--accept-loss", " "], "--accept-loss"),
        (["backfill", "meter", "--start", "2024-03-02", "--end", "2024-03-02"], "--start"),
    ],
)
def test_the_command_refuses_what_is_asked_before_it_starts_spark(
    monkeypatch, tmp_path, capsys, arguments, named
):
    land(tmp_path / "lake", [a_record("1 10:00", "1 10:00")])
    (tmp_path / "meter.yaml").write_text(json.dumps(SPEC), encoding="utf-8")
    monkeypatch.setattr("strandline.lake.sessions.classic.start_classic", _none)
    with pytest.raises(SystemExit) as ended:
        command.main(["--pipelines", str(tmp_path), "--lake", str(tmp_path / "lake"), *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"error {named}: ")
    assert not (tmp_path / "lake" / "meter").exists()


def _none(*_: object, **__: object) -> None:
    pytest.fail("Spark was started")


def test_only_who_has_given_dates_is_sent_back_to_them():
    nothing = SimpleNamespace(books=())
    by_hand = next(of_staged(nothing, Request("backfill", A_DAY)))
    scheduled = next(of_staged(nothing, Request("advance", to_ms=NOON)))
    assert by_hand == f"{scheduled}; check its dates"
