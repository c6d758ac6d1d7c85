"""Two engines, one lake: runs of both, in turn and at the same time, leave what one would."""

from __future__ import annotations

import pytest
from kills import Home
from lakes import a_week, land

pytestmark = pytest.mark.system

DAYS = 4
RETRYABLE = 4
ADVANCES = [("advance", "--to", f"2024-03-{day:02}") for day in range(2, DAYS + 2)]


def on(engine: str, command: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, "--engine", engine)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("base"))
    home.write_spec({"spark": {}})
    land(home.folder / "lake", a_week(days=DAYS))
    return home


@pytest.fixture(scope="module")
def by_spark(base, tmp_path_factory):
    home = base.copy(tmp_path_factory.mktemp("spark"))
    for command in ADVANCES:
        home.run(on("spark", command))
    return home


def test_days_in_turn_on_either_engine_leave_what_one_leaves(base, by_spark, tmp_path):
    home = base.copy(tmp_path)
    for number, command in enumerate(ADVANCES):
        home.run(on("sail" if number % 2 else "spark", command))
    assert home.content() == by_spark.content()
    started = [entry.engine for entry in home.ledger() if entry.step == "started"]
    assert started == ["spark", "sail", "spark", "sail"]
    before = home.files()
    home.run(on("spark", ADVANCES[-1]))  # was of sail: a repetition, whichever engine is asked
    assert home.ledger()[-1].step == "repeated"
    assert {name for name in home.files() - before if "/runs/" not in name} == set()


def test_runs_of_both_at_once_leave_what_one_leaves(base, by_spark, tmp_path):
    home = base.copy(tmp_path)
    waiting = {engine: list(ADVANCES) for engine in ("sail", "spark")}
    for _ in range(3 * DAYS):
        running = {
            engine: home.start(on(engine, commands[0]), home.folder / f"said-{engine}")
            for engine, commands in waiting.items()
            if commands
        }
        for engine, run in running.items():
            code = run.wait(timeout=900)
            assert code in {0, RETRYABLE}, (home.folder / f"said-{engine}").read_text()
            if code == 0:
                waiting[engine].pop(0)
    assert not any(waiting.values())
    assert home.content() == by_spark.content()
