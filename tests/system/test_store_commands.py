"""Each command that changes or judges a lake, on an object store, as users type it."""

from __future__ import annotations

import os
import subprocess

import pytest
from kills import COMMAND, KillAtCommit, Kind, run_watched
from lakes import a_week
from object_stores import StoreHome, seaweedfs

pytestmark = [pytest.mark.system, pytest.mark.deep]

NIGHT = Kind("a scheduled day", ("advance", "--to", "2024-03-04"))
BEFORE_IT_PUBLISHES = 5
"""Commits of a run of `NIGHT` up to its step `staged`, at the most."""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Three days have landed, two are published; and the rows that then are published."""
    with seaweedfs() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment.items():
            environment.setenv(name, value)
        home = StoreHome(tmp_path_factory.mktemp("base"), server=server, prefix="base")
        home.write_spec({})
        home.land(a_week(days=3))
        home.run(("advance", "--to", "2024-03-03"))
        yield home


def said(home, *arguments, code=0):
    """What a command says, in one line; its exit code is asserted."""
    done = subprocess.run(
        [COMMAND, *arguments],
        env={**os.environ, **home.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


def published(home):
    """The content without malformed rows: they are kept as they are observed, whatever the run."""
    content = home.content()
    late = [row for row in content["quarantine"] if row["reason"] == "late"]
    return {**content, "quarantine": late}


def last_run(home):
    return home.ledger()[-1].run_id


def test_a_run_that_was_killed_is_shown_cancelled_and_dropped(base, tmp_path):
    home, before = base.copy(tmp_path), published(base)
    run_watched(home, NIGHT, KillAtCommit(BEFORE_IT_PUBLISHES))
    killed = last_run(home)
    assert "CRITICAL: the last run of advance was killed" in said(home, "status", "meter")
    assert "cancelled (it was dead)" in said(home, "runs", "cancel", "meter", killed)
    assert "dropped" in said(home, "runs", "drop", "meter", killed, "--reason", "it died")
    assert "books over them balance" in said(home, "status", "meter", "--deep")
    assert published(home) == before
    assert not any("/_staging/" in name for name in home.names())
    home.run(NIGHT.command)
    assert said(home, "status", "meter").count("was killed") == 0


def test_a_night_is_reverted_with_its_findings_a_person_erased_and_the_lake_maintained(
    base, tmp_path
):
    home, before = base.copy(tmp_path), published(base)
    found = said(home, "status", "meter").partition("lake")[0]
    home.run(NIGHT.command)
    assert said(home, "status", "meter").partition("lake")[0] != found
    said(home, "runs", "revert", "meter", last_run(home), "--reason", "wrong")
    assert published(home) == before
    assert said(home, "status", "meter", "--deep").partition("tables: all")[0] == found
    before = home.content()

    person = ("erase", "meter", "--where", "device = 'd3'", "--reason", "request 1")
    theirs = [row for row in before["quarantine"] if row["device"] == "d3"]
    assert theirs
    assert f"quarantine: {len(theirs)} rows" in said(home, *person, "--dry-run")
    assert home.content() == before
    assert f"quarantine: {len(theirs)} rows" in said(home, *person)
    kept = [row for row in before["quarantine"] if row["device"] != "d3"]
    assert home.content() == {**before, "quarantine": kept}

    assert "meter: maintained" in said(home, "maintain", "meter")
    assert home.content() == {**before, "quarantine": kept}
    assert "books over them balance" in said(home, "status", "meter", "--deep")
    assert "windows incomplete" in said(home, "incomplete", "meter", "--since", "2024-03-01")
    no_folder = said(home, "report", "meter", code=2)
    assert "name a folder to write into" in no_folder
    assert "report.html" in said(home, "report", "meter", "--output", str(tmp_path / "report"))
