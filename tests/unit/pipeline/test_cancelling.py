"""`runs cancel`: what has not begun to publish publishes nothing, and its process ends."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

import pytest
from meter import a_meter

from strandline.errors import InputError, RetryableError
from strandline.lake.ledger.entry import Driver, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.publish import abandon
from strandline.pipeline.publish.abandon import cancel_run

SPEC = a_meter({"tumbling": "1h"})


class Run:
    """A run that has left some steps, and a staging."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake.at(str(folder))
        self.store = self.lake.pipeline(SPEC.pipeline)
        self.ledger = Ledger(self.store)
        self.staging = Path(self.store.staging("r-1")) / "windows"
        self.staging.mkdir(parents=True)

    def note(self, *steps: str, pid: int | None = None, host: str | None = None) -> None:
        host = host or socket.gethostname()
        for step in steps:
            within = TimeRange(0, DAY_MS)
            driver = Driver(host, pid or os.getpid(), "0.1.0")
            entry = Entry("r-1", 1, step, "backfill", within, driver=driver)
            self.ledger.append(entry, datetime.now(UTC))

    def cancel(self, run_id: str = "r-1") -> dict[str, object]:
        return cancel_run(SPEC, self.lake, run_id, reason="a typing error", requested_by="ann")

    def assert_cancelled(self) -> None:
        last = self.ledger.entries()[-1]
        assert (last.step, last.message, last.reason) == ("dropped", "cancelled", "a typing error")
        assert last.requested_by == "ann"
        assert not self.staging.parent.exists()


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_a_run_that_works_on_this_host_is_stopped(run):
    with Popen(["sleep", "60"]) as process:
        run.note("started", "staged", pid=process.pid)
        assert run.cancel()["was"] == "running"
        assert process.poll() is not None
    run.assert_cancelled()
    steps = len(run.ledger.entries())
    assert run.cancel()["was"] == "dropped"
    assert len(run.ledger.entries()) == steps


def test_a_process_that_only_got_the_number_is_left_alone(run):
    with Popen(["sleep", "60"]) as process:
        driver = Driver(socket.gethostname(), process.pid, "0.1.0")
        entry = Entry("r-1", 1, "started", "backfill", driver=driver)
        run.ledger.append(entry, datetime(2024, 3, 1, tzinfo=UTC))
        assert run.cancel()["was"] == "dead"
        assert process.poll() is None
        process.kill()
    run.assert_cancelled()


def test_who_has_prepared_a_run_and_goes_on_to_other_things_is_left_alone(run):
    with Popen(["sleep", "60"]) as process:
        run.note("started", "prepared", pid=process.pid)
        assert run.cancel()["was"] == "prepared"
        assert process.poll() is None
        process.kill()
    run.assert_cancelled()


def test_a_run_of_another_host_is_told_in_the_ledger(run):
    run.note("started", host="elsewhere")
    told = run.cancel()
    assert (told["was"], told["host"]) == ("unknown", "elsewhere")
    run.assert_cancelled()


def test_a_process_that_does_not_end_is_named(run, monkeypatch):
    monkeypatch.setattr(abandon, "_TIMEOUT_S", 0.1)
    with Popen(["sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"], stdout=-1) as process:
        process.stdout.readline()
        run.note("started", pid=process.pid)
        with pytest.raises(RetryableError, match=f"process {process.pid} has not ended"):
            run.cancel()
        process.kill()
    run.cancel()
    run.assert_cancelled()


def test_a_run_that_has_begun_to_publish_is_not_cancelled_but_ended_or_dropped(run):
    run.note("started", "publishing")
    with pytest.raises(InputError, match=r"begun to publish.*strandline runs drop meter r-1"):
        run.cancel()
    assert run.staging.exists()


@pytest.mark.parametrize("after", [[], ["failed"]])
def test_a_run_that_has_published_is_not_cancelled_but_reverted(run, after):
    run.note("started", "publishing", "published", *after)
    with pytest.raises(InputError, match=r"has published; .*strandline runs revert meter r-1"):
        run.cancel()


def test_a_run_that_is_not_there_is_not_cancelled(run):
    with pytest.raises(InputError, match=r"no such run.*strandline runs list meter"):
        run.cancel("r-2")
