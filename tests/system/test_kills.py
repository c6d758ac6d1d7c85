"""Runs of some kinds are killed at files drawn at random; the next run leaves what it should.

`make test-kill` draws many (KILLS for each kind), each the same whenever it is drawn. A failure
names the kind and the number.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import psutil
import pytest
from kills import DAY, Kill, KillAtCommit, KillAtFile, Kind, run_watched
from lakes import a_record

from strandline.lake.ledger.state import PipelineState

pytestmark = pytest.mark.system

KILLS = int(os.environ.get("KILLS", "1"))
RETRYABLE = 4
MOST_COMMITS = 20
"""Of one run: each of its commits is a place to die at."""
LAST_COMMITS = 4
"""Of a run, from its step `publishing` on: up to three tables, and the step `published`."""
GROWN = [
    a_record("2 07:00", "2 06:40", amount=40, position=901),
    a_record("2 12:30", "2 12:05", "b", amount=41, position=902),
    a_record("2 20:00", "1 20:10", "b", amount=42, position=903),
    a_record("2 20:30", "2 20:25", position=904) | {"device": None},
]
"""Rows of a day that is published: on time, late, malformed."""
KINDS = [
    DAY,
    Kind(
        "a rebuild with updates and deletes",
        (
            *("backfill", "--start", "2024-03-01", "--end", "2024-03-05"),
            *("--as-of", "2024-03-04", "--allow-removals"),
        ),
        edits={"source__valid": "amount % 3 > 0", "allowed_lateness": "0s"},
    ),
]
if KILLS > 2:  # `make test-kill`: each of its runs is one more observation of all that came since
    KINDS.append(
        Kind(
            "observing again after a day grew",
            ("advance", "--to", "2024-03-05"),
            lands=GROWN,
            steps=("started", "owed", "observed", "staged", "audited", "publishing"),
        )
    )


@pytest.fixture(scope="module", params=KINDS, ids=str)
def undisturbed(request, five_days, watched_day, tmp_path_factory):
    """A kind of run, where it begins, where it ends undisturbed, and how many files it writes."""
    kind = request.param
    begins = five_days.copy(tmp_path_factory.mktemp("begins"))
    begins.write_spec(kind.edits)
    begins.land(kind.lands)
    ends, usual = watched_day
    if kind is not DAY:
        ends = begins.copy(tmp_path_factory.mktemp("ends"))
        on_sail = replace(kind, engine="sail", edits=kind.edits | {"spark": {}})
        watched = kind if KILLS > 2 else on_sail  # either engine publishes as many files
        ends.write_spec(watched.edits)
        usual = run_watched(ends, watched)
    assert ends.ledger()[-1].step == "published", ends.said
    assert usual.publishing
    last = ends.ledger()[-1].run_id
    steps = [entry.step for entry in ends.ledger() if entry.run_id == last]
    assert tuple(steps) == (*kind.steps, "published")
    return kind, begins, ends, usual


def test_each_kind_of_run_changes_what_is_published(undisturbed):
    kind, begins, ends, _ = undisturbed
    assert ends.content() != begins.content()
    diff = ends.ledger()[-1].diff["windows"]
    if "deletes" in kind.name:
        assert diff["update"]
        assert diff["delete"]
    if "again" in kind.name:
        assert diff["update"]
        assert [day.day for day in ends.ledger()[-1].settled] == [2]


@pytest.mark.parametrize("number", range(KILLS))
def test_after_a_kill_the_next_run_leaves_the_tables_of_an_undisturbed_one(
    undisturbed, tmp_path, number
):
    kind, _, _, usual = undisturbed
    publishing = KillAtCommit(usual.commits - LAST_COMMITS)  # what a single kill is to hit
    kill = KillAtFile.drawn(kind, number) if KILLS > 1 else publishing
    kill_and_run_again(undisturbed, tmp_path, kill)


@pytest.mark.skipif(KILLS < 3, reason="of make test-kill")
@pytest.mark.parametrize("number", range(1, MOST_COMMITS + 1))
def test_so_it_does_after_a_kill_at_any_of_its_commits(undisturbed, tmp_path, number):
    _, _, _, usual = undisturbed
    assert usual.commits <= MOST_COMMITS
    if number <= usual.commits:
        kill_and_run_again(undisturbed, tmp_path, KillAtCommit(number))


def test_where_the_engine_dies_the_run_fails_soon_and_the_next_one_mends_it(
    five_days, fourth_day, tmp_path
):
    home = five_days.copy(tmp_path)
    home.write_spec({"spark": {}})
    observed = home.steps() + 2
    run = home.start((*DAY.command, "--engine", "sail"))
    while home.steps() < observed:
        assert run.poll() is None, home.said
        time.sleep(0.01)
    (server,) = psutil.Process(run.pid).children()
    server.kill()
    assert run.wait(timeout=120) == RETRYABLE
    assert "the process of sail has ended before the run" in home.said
    assert home.content()["windows"] == five_days.content()["windows"]
    home.run((*DAY.command, "--engine", "sail"))
    assert home.content() == fourth_day.content()


def kill_and_run_again(undisturbed, folder, kill: Kill):
    kind, begins, ends, usual = undisturbed
    home = begins.copy(folder)
    written = run_watched(home, kind, kill, usual)
    assert written.killed or KILLS > 1, "the run ended before it was killed"
    right = [begins.content(), ends.content()]
    assert all(content in right for content in home.contents_by_ledger()), kill

    home.run_on_sail(kind.command)  # whichever engine comes after it
    assert home.content() == ends.content(), kill
    healed, right_away = (PipelineState.of(one.ledger()) for one in (home, ends))
    assert healed.frontier_ms == right_away.frontier_ms
    assert all(content in right for content in home.contents_by_ledger()), kill
