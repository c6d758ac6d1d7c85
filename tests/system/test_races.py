"""Runs beside each other: whichever publishes first, the tables are those of one after the other.

Who is overtaken ends with the retryable code and is called again, as Airflow does.
"""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from kills import Home
from lakes import a_week, land

pytestmark = [pytest.mark.system, pytest.mark.kill]

ROUNDS = int(os.environ.get("ROUNDS", "1"))
RETRYABLE = 4
MOST_TRIES = 10
DAYS = 5


def backfill(start: str, end: str) -> tuple[str, ...]:
    return ("backfill", "--start", start, "--end", end, "--reason", "beside others", "--force")


RACERS = [
    ("advance", "--to", "2024-03-05"),
    ("advance", "--to", "2024-03-06"),
    backfill("2024-03-01", "2024-03-02"),
    backfill("2024-03-02", "2024-03-03"),
    backfill("2024-03-03", "2024-03-05"),
    backfill("2024-03-01T12:15", "2024-03-02T12:15"),
    backfill("2024-03-02T06:15", "2024-03-04T18:15"),
    backfill("2024-03-01", "2024-03-06"),
]
"""Disjoint ranges, overlapping ones, and scheduled days beside them."""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Days have landed, one is published, and since then the rules have been edited."""
    home = Home(tmp_path_factory.mktemp("base"))
    home.write_spec({})
    land(home.folder / "lake", a_week(days=DAYS))
    home.run(("advance", "--to", "2024-03-02"))
    home.write_spec({"source__valid": "amount % 5 > 0", "quality__max_removed_share": 1.0})
    return home


@pytest.fixture(scope="module")
def one_after_the_other(base, tmp_path_factory):
    home = base.copy(tmp_path_factory.mktemp("serial"))
    for command in RACERS:
        home.run(command)
    return home


@pytest.mark.parametrize("number", range(ROUNDS))
def test_whoever_publishes_first_the_tables_are_those_of_one_after_the_other(
    base, one_after_the_other, tmp_path, number
):
    chance = random.Random(number)
    home = base.copy(tmp_path)
    waiting = chance.sample(RACERS, len(RACERS))
    tries = dict.fromkeys(waiting, 0)
    while waiting:
        running = {
            command: home.start(command, home.folder / f"said-{RACERS.index(command)}")
            for command in waiting
        }
        for command, run in running.items():
            code = run.wait(timeout=1800)
            said = home.folder / f"said-{RACERS.index(command)}"
            assert code in {0, RETRYABLE}, (command, said.read_text())
            tries[command] += 1
            assert tries[command] < MOST_TRIES
        waiting = [command for command, run in running.items() if run.returncode == RETRYABLE]
    assert home.content() == one_after_the_other.content()
    published = [entry for entry in home.ledger() if entry.step == "published"]
    assert len(published) == 1 + len(RACERS)


def test_of_two_live_drivers_of_one_run_one_publishes_and_the_other_ends_retryable(base, tmp_path):
    home = base.copy(tmp_path)
    command = (*backfill("2024-03-01", "2024-03-04"), "--run-key", "one of the scheduler's")
    runs = [home.start(command, home.folder / f"said-{number}") for number in range(2)]
    codes = sorted(run.wait(timeout=1800) for run in runs)
    assert codes == [0, RETRYABLE], [(home.folder / f"said-{n}").read_text() for n in range(2)]
    assert sum(entry.step == "published" for entry in home.ledger()) == 2


def test_a_driver_that_slept_past_anothers_publish_ends_retryable_and_publishes_nothing(
    base, tmp_path
):
    home = base.copy(tmp_path)
    sleeper = home.start(backfill("2024-03-01", "2024-03-04"), home.folder / "said-sleeper")
    while not any(entry.step == "staged" for entry in home.ledger()[len(base.ledger()) :]):
        assert sleeper.poll() is None, (home.folder / "said-sleeper").read_text()
        time.sleep(0.05)
    os.killpg(sleeper.pid, signal.SIGSTOP)
    try:
        home.run(backfill("2024-03-02", "2024-03-05"))
        after = home.content()
    finally:
        os.killpg(sleeper.pid, signal.SIGCONT)
    assert sleeper.wait(timeout=900) == RETRYABLE, (home.folder / "said-sleeper").read_text()
    assert home.content() == after
