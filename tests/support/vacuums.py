"""A vacuum that keeps nothing but the newest version."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalake import DeltaTable


def vacuum_all(table: DeltaTable) -> None:
    """Remove the files of all older versions.

    A vacuum keeps what was removed in its very millisecond, so it waits for the next one.
    """
    wait_for_the_next_millisecond()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)


def wait_for_the_next_millisecond() -> None:
    """Wait until the clock shows another millisecond."""
    now_ms = _clock_ms()
    while _clock_ms() <= now_ms:
        time.sleep(0.001)


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000
