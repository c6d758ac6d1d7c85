"""The command that makes a request once more, read by the command line itself."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace

import pytest
from lakes import instant
from typer.testing import CliRunner

from strandline.cli.main import app
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.to_publish import ToPublish
from strandline.model.intervals import TimeRange
from strandline.pipeline.request.request import Request, command_of, known_command_of

MAIN = sys.modules["strandline.cli.main"]
BY_HAND = Request("backfill", TimeRange(instant("2"), instant("3 12:00")), prepare=True)
REQUESTS = [
    BY_HAND,
    replace(BY_HAND, as_of_ms=instant("5") + 1),
    replace(
        BY_HAND,
        overrides={"allowed_lateness": "3h", "bound": "4h"},
        reason="it's right; ask O'Neil",
        allow_removals=True,
        close=True,
    ),
    replace(
        BY_HAND, reopen=True, max_bytes=20_000_000, preview_rows=7, accept_loss="gone for good"
    ),
    replace(BY_HAND, recreate=True, reason="-"),
    Request("advance", to_ms=instant("4"), allow_removals=True),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_the_command_of_a_request_makes_the_same_request(monkeypatch, request_):
    made = []
    kind, *options = command_of(request_)
    monkeypatch.setattr(MAIN, "run_pipeline", lambda name, asked, *_, **__: made.append(asked))
    typed = shlex.split(shlex.join([kind, "meter", *options]))
    done = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert [Request(**asked) for asked in made] == [request_]


def test_the_command_of_a_run_is_that_of_its_last_step_that_keeps_one():
    of_run = ToPublish(command=("backfill", "--close"))
    kept = Entry("r-1", 1, "prepared", "backfill", publish=of_run)
    dropped = Entry("r-1", 1, "dropped", "backfill")
    assert known_command_of([kept, dropped]) == ("backfill", "--close")
    assert known_command_of([Entry("r-1", 1, "prepared", "backfill", publish=ToPublish())]) is None


def test_a_rebuild_that_a_scheduled_run_starts_is_made_by_that_run():
    """No command for the rebuild alone leaves windows closed, as that run does."""
    scheduled = Request("advance", to_ms=instant("4"), accept_loss="gone for good")
    started = replace(BY_HAND, started_by=scheduled, accept_loss=None, reason="changed")
    assert command_of(started) == command_of(scheduled)
