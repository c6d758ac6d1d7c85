"""Lakes that several tests of commands begin with, each built once."""

from __future__ import annotations

import pytest
from kills import Home


@pytest.fixture(scope="session")
def five_days(tmp_path_factory) -> Home:
    """Five days have landed, three are published; copy it to change it."""
    return Home.of_five_days(tmp_path_factory.mktemp("five-days"))


@pytest.fixture(scope="session")
def fourth_day(five_days, tmp_path_factory) -> Home:
    """The same once an undisturbed run has published the fourth day; not to be changed."""
    home = five_days.copy(tmp_path_factory.mktemp("fourth-day"))
    home.run_on_sail(("advance", "--to", "2024-03-05"))
    return home
