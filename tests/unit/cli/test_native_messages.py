"""Messages of libraries in other languages are shown but for those that no user needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from strandline.cli.native_messages import worth_showing

_PANIC = b"""
thread 'tokio-rt-worker' (7) panicked at object_store-0.13.2/src/buffered.rs:369:41:
Already shut down
stack backtrace:
   0: rust_begin_unwind
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
"""
_SHORT_PANIC = b"\nthread '<unnamed>' panicked at a.rs:1:2:\nAlready shut down\n"
_OF_JAVA = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
_PROGRAM = """
import os, subprocess, sys
from strandline.cli import native_messages
with native_messages.filtered():
    subprocess.run([sys.executable, "-c", "import os; os.write(2, bytes.fromhex('%s'))"])
    print("by Python", file=sys.stderr)
print("after it", file=sys.stderr)
os.write(2, b"by the process\\n")
"""


@pytest.mark.parametrize(
    "noise", [_PANIC, _SHORT_PANIC, _OF_JAVA, _PANIC + _PANIC, _PANIC + _SHORT_PANIC]
)
def test_panics_and_the_warning_of_every_jvm_are_left_out_and_other_lines_stay(noise):
    lines = b"before it\n" + noise + b"ERROR after\nand its cause\n"
    assert [*worth_showing(lines.splitlines(keepends=True))] == [
        b"before it\n",
        b"ERROR after\n",
        b"and its cause\n",
    ]


def test_the_lines_of_child_processes_are_filtered_and_those_of_python_come_too():
    child = (_OF_JAVA + b"ERROR of the child\n").hex()
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM % child],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert sorted(ran.stderr.splitlines()) == [
        "ERROR of the child",
        "after it",
        "by Python",
        "by the process",
    ]


def test_where_the_process_crashes_python_says_where():
    crash = "import os\nwith native_messages.filtered():\n    os.abort()\n"
    program = "from strandline.cli import native_messages\n" + crash
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode < 0
    assert "Aborted" in ran.stderr
