"""Two engines, one lake: runs of both, in turn and at the same time, leave what one would."""

from __future__ import annotations

import pytest
from kills import Home
from lakes import a_week, land

pytestmark = pytest.mark.system

DAYS = 3
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
def first_day(base, tmp_path_factory):
    """The first day has been published."""
    home = base.copy(tmp_path_factory.mktemp("first"))
    home.run(on("sail", ADVANCES[0]))
    return home


@pytest.fixture(scope="module")
def of_one(first_day, tmp_path_factory):
    """What each day leaves on one engine: that it is what Flink says, others ask."""
    home = first_day.copy(tmp_path_factory.mktemp("one"))
    contents = [home.content()]
    for command in ADVANCES[1:]:
        home.run(on("sail", command))
        contents.append(home.content())
    return contents


def test_days_in_turn_on_either_engine_leave_what_one_leaves(first_day, of_one, tmp_path):
    home = first_day.copy(tmp_path)
    for number, command in enumerate(ADVANCES[1:], start=1):
        home.run(on("spark" if number % 2 else "sail", command))
        assert home.content() == of_one[number]
    started = [entry.driver.engine for entry in home.ledger() if entry.step == "started"]
    assert started == ["sail", "spark", "sail"]
    before = home.files()
    home.run(on("spark", ADVANCES[-1]))  # was of sail: a repetition, whichever engine is asked
    assert home.ledger()[-1].step == "repeated"
    assert {name for name in home.files() - before if "/runs/" not in name} == set()


def test_runs_of_both_at_once_leave_what_one_leaves(base, of_one, tmp_path):
    """Of the first day: each of them finds no table."""
    home, waiting = base.copy(tmp_path), ["sail", "spark"]
    for _ in range(3):
        running = {
            engine: home.start(on(engine, ADVANCES[0]), home.folder / f"said-{engine}")
            for engine in waiting
        }
        for engine, run in running.items():
            code = run.wait(timeout=900)
            assert code in {0, RETRYABLE}, (home.folder / f"said-{engine}").read_text()
            if code == 0:
                waiting.remove(engine)
    assert not waiting
    assert home.content() == of_one[0]


def test_more_memory_than_sail_has_is_wrong_input_with_both_ways_out(base, tmp_path):
    home = base.copy(tmp_path)
    home.write_spec({"spark": {"spark.driver.memory": "1m"}})
    assert home.start(on("sail", ADVANCES[0])).wait(timeout=120) == 2
    assert "it needs more memory than Sail has been given" in home.said
    assert "give --engine spark, or more: spark.driver.memory" in home.said
    assert home.ledger()[-1].step == "failed"
    assert not (home.root / "windows").exists()
