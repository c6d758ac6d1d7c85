"""Lakes that several tests of commands begin with, each built once."""

from __future__ import annotations

import pytest
from kills import DAY, Home, Written, run_watched


@pytest.fixture(scope="session")
def five_days(tmp_path_factory) -> Home:
    """Five days have landed, three are published; copy it to change it."""
    return Home.of_five_days(tmp_path_factory.mktemp("five-days"))


@pytest.fixture(scope="session")
def watched_day(five_days, tmp_path_factory) -> tuple[Home, Written]:
    """The same once an undisturbed run has published the fourth day, and what the run has written.

    Not to be changed.
    """
    home = five_days.copy(tmp_path_factory.mktemp("fourth-day"))
    home.write_spec(DAY.edits)
    return home, run_watched(home, DAY)


@pytest.fixture(scope="session")
def fourth_day(watched_day) -> Home:
    """Its lake; not to be changed."""
    home, _ = watched_day
    return home
