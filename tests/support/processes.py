"""Processes below a test, asked while they may end."""

from __future__ import annotations

from contextlib import suppress

import psutil


def command_line(process: psutil.Process) -> str:
    """The command that a process runs, in one line; empty when the process has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
