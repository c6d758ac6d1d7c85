"""The lock of who publishes: one process holds it, and none that has died. No Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.errors import InputError, RetryableError
from strandline.lake.store import lock
from strandline.lake.store.lock import exclusive

HOLDING = """
import sys
from pathlib import Path
from strandline.lake.store.lock import exclusive

with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(lock, "_TIMEOUT_S", 1)


def holding(path: Path) -> subprocess.Popen[str]:
    """A process of its own that holds the lock until its input ends."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    driver = subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], **pipes)
    assert driver.stdout.readline() == "held\n"
    return driver


def taken(path: Path) -> bool:
    try:
        with exclusive(path):
            return True
    except RetryableError:
        return False


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("killed", [True, False])
def test_one_process_holds_it_until_it_lets_go_or_is_killed(tmp_path, killed):
    path = tmp_path / "meter" / "_lock"
    driver = holding(path)
    assert not taken(path)
    if killed:
        os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert taken(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "meter").write_text("a file")
    with pytest.raises(InputError, match="cannot be written"), exclusive(tmp_path / "meter/_lock"):
        pass
