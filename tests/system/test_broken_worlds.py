"""What breaks below a run: it says so, and once all is mended the next leaves what it should."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from kills import Home
from small_disks import a_small_disk, filled

pytestmark = [pytest.mark.system, pytest.mark.kill]

COMMAND = ("advance", "--to", "2024-03-05")


@pytest.fixture(scope="module")
def undisturbed(five_days, tmp_path_factory):
    home = five_days.copy(tmp_path_factory.mktemp("ends"))
    home.run(COMMAND)
    return home


def a_file_of_the_day(home: Home) -> Path:
    return next((home.folder / "lake/landing/meter/arrived_on=2024-03-04").glob("*.parquet"))


def last_commit_of(home: Home, table: str) -> Path:
    return max((home.folder / "lake" / table / "_delta_log").glob("*.json"))


@contextmanager
def away(path: Path):
    """A file is not there for a while."""
    kept = path.read_bytes()
    path.unlink()
    yield
    path.write_bytes(kept)


@contextmanager
def cut(path: Path):
    """Half of a file is missing for a while."""
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 2])
    yield
    path.write_bytes(kept)


def fails(home: Home, output: Path | None = None, code: int | None = None) -> str:
    """What a run says that ends badly: an error, and no trace of it."""
    output = output or home.folder / "said"
    ended = home.start(COMMAND, output).wait(timeout=900)
    said = output.read_text()
    assert ended not in {0, 130} if code is None else ended == code, said
    assert "Traceback" not in said
    assert "\tat " not in said
    assert "panicked" not in said
    assert "error " in said
    return said


BROKEN = {
    "a landing file has vanished": lambda home: away(a_file_of_the_day(home)),
    "a landing file is cut": lambda home: cut(a_file_of_the_day(home)),
    "the landing's log is cut": lambda home: cut(last_commit_of(home, "landing/meter")),
    "the log of windows is cut": lambda home: cut(last_commit_of(home, "meter/windows")),
    "the log of the timeline is cut": lambda home: cut(last_commit_of(home, "meter/timeline")),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_named_and_once_it_is_mended_nothing_has_happened(
    five_days, undisturbed, tmp_path, what
):
    home = five_days.copy(tmp_path)
    right = [five_days.content(), undisturbed.content()]
    with BROKEN[what](home):
        fails(home)
    assert all(content in right for content in home.contents_by_ledger())
    home.run(COMMAND)
    assert home.content() == undisturbed.content()


def test_a_ledger_whose_log_is_cut_is_named(five_days, undisturbed, tmp_path):
    home = five_days.copy(tmp_path)
    with cut(last_commit_of(home, "meter/runs")):
        fails(home)
    home.run(COMMAND)
    assert home.content() == undisturbed.content()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, of a few megabytes."""
    with a_small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.mark.parametrize("kilobytes", [0, 64, 200])
def test_on_a_full_disk_a_run_says_so_and_goes_on_once_there_is_room(
    five_days, undisturbed, small_disk, kilobytes
):
    home = five_days.copy(small_disk / "home")
    with filled(small_disk, free_kilobytes=kilobytes):
        said = fails(home, small_disk.parent / "said", code=4)
    assert "the disk is full; free space there" in said
    home.run(COMMAND)
    assert home.content() == undisturbed.content()
