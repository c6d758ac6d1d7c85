"""Whether the process that drives a run still lives: told from its number and when it began."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from subprocess import Popen

import psutil
import pytest
from no_session import spark_of

from strandline.lake.ledger.entry import Driver, Entry
from strandline.pipeline.request.driver import (
    is_of_later_version,
    process_of,
    state_of,
    this_driver,
)

NOW = datetime.now(UTC)


HERE = Driver(socket.gethostname(), os.getpid(), "0.1.0")


def step(name: str, **more: object) -> Entry:
    return Entry("r-1", 1, name, "backfill", **({"driver": HERE, "written_at": NOW} | more))


def test_a_step_says_which_process_of_which_host_writes_it_by_which_program():
    driver = this_driver(spark_of("sail"))
    assert (driver.engine, driver.engine_version) == ("sail", "4.2.0")
    assert (driver.host, driver.pid) == (socket.gethostname(), os.getpid())
    assert driver.program_version.count("+") == 1


def test_a_run_whose_process_lives_is_running_and_dead_once_it_does_not():
    with Popen(["sleep", "60"]) as process:
        started = step(
            "started", driver=replace(HERE, pid=process.pid), written_at=datetime.now(UTC)
        )
        assert state_of([started, step("staged", **vars_of(started))]) == "running"
        psutil.Process(process.pid).suspend()
        assert state_of([started]) == "running"
        process.kill()
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            pass
        assert state_of([started]) == "dead"
    assert state_of([started]) == "dead"


def vars_of(started: Entry) -> dict[str, object]:
    return {"driver": started.driver, "written_at": started.written_at}


def test_a_process_that_got_the_number_later_is_not_that_of_the_run():
    begun = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
    assert process_of(step("started", written_at=begun + timedelta(seconds=5))) is not None
    assert process_of(step("started", written_at=begun - timedelta(seconds=5))) is None


@pytest.mark.parametrize("more", [{"driver": replace(HERE, host="elsewhere")}, {"driver": None}])
def test_of_another_host_and_of_an_old_ledger_it_cannot_be_told(more):
    assert state_of([step("started", **more)]) == "unknown"
    assert process_of(step("started", **more)) is None


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        (["started", "published"], "published"),
        (["started", "audited", "prepared"], "prepared"),
        (["started", "prepared", "publishing"], "running"),
        (["started", "prepared", "publishing", "published"], "published"),
        (["started", "rejected"], "rejected"),
        (["started", "rejected", "publishing"], "running"),
        (["started", "publishing", "failed"], "failed"),
        (["started", "publishing", "dropping"], "running"),
        (["started", "prepared", "dropped"], "dropped"),
        (["started", "dropped", "failed"], "dropped"),
    ],
)
def test_the_last_word_of_a_run_is_its_state(steps, state):
    assert state_of([step(name) for name in steps]) == state


@pytest.mark.parametrize("more", [{"driver": replace(HERE, host="elsewhere")}, {"driver": None}])
def test_a_run_of_a_kind_that_only_a_later_version_knows_is_not_taken_for_a_dead_one(more):
    assert state_of([replace(step("annotated", **more), kind="annotate")]) == "annotated"


def test_a_step_that_only_a_later_version_knows_is_not_taken_for_the_death_of_its_run():
    """It may be how a run ends there."""
    ended = replace(HERE, pid=2**30)
    begun = [step("started", driver=ended)]
    assert state_of([*begun, step("audited", driver=ended)]) == "dead"
    assert state_of([*begun, step("verified", driver=ended)]) == "unknown"
    assert [is_of_later_version(step(name)) for name in ("audited", "failed", "verified")] == [
        *(False, False, True)
    ]
    assert state_of([*begun, step("verified", driver=ended), step("published")]) == "published"


def test_a_run_that_somebody_has_interrupted_is_told_from_one_that_failed():
    assert state_of([step("started"), step("failed", message="interrupted")]) == "interrupted"
    assert state_of([step("started"), step("failed", message="no space")]) == "failed"
