"""A session of Sail that waits, as while a diff is published, is there when it is needed again."""

from __future__ import annotations

import time

import psutil
import pytest

from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.embedded import IDLE_SECONDS
from strandline.lake.sessions.remote import CLIENT_MODE
from strandline.lake.sessions.start import start

pytestmark = pytest.mark.system

WAITING_S = 4
LONGEST_WAIT_S = 30 * 24 * 60 * 60
SAIL = EngineChoice("sail", trust_this_machine=True)


def test_a_session_waits_longer_than_sail_would_by_itself(monkeypatch):
    monkeypatch.setenv(CLIENT_MODE, "1")  # a session sets it; commands of later tests have it not
    waiting = start(SAIL, "waits")
    monkeypatch.setenv(IDLE_SECONDS, "1")
    forgotten = start(SAIL, "is forgotten")
    try:
        time.sleep(WAITING_S)
        with pytest.raises(Exception, match="is not running"):
            forgotten.spark.range(3).count()
        assert waiting.spark.range(3).count() == 3
        said = psutil.Process(waiting.server.pid).environ()
        assert int(said[IDLE_SECONDS]) > LONGEST_WAIT_S
    finally:
        waiting.stop()
        forgotten.stop()
