"""Modules that a thread imports while the engine starts."""

from __future__ import annotations

import subprocess
import sys


def test_the_client_of_an_engine_is_whole_before_a_thread_imports_from_it():
    program = """
import sys
from strandline.cli import running
from strandline.lake.sessions.choice import EngineChoice

class Thread:
    def __init__(self, **_):
        self.before = set(sys.modules)

    def start(self):
        print("pyspark.sql.connect.session" in self.before)

running.Thread = Thread
running._import_ahead(EngineChoice("sail"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
