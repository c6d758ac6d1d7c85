"""Progress of a run: the current step, its time so far, and its share of the time expected."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from strandline.cli import show
from strandline.cli.console import dropping_unread, escape


@contextmanager
def progress(
    *, quiet: bool, took_before: Mapping[str, float] | None = None
) -> Iterator[Callable[[str], None]]:
    """Show the current step and its time on stderr.

    Args:
        quiet: whether to print one line for each step, as for a log, instead of a moving bar.
        took_before: the seconds of earlier runs by the names of their parts (`seconds_by_part`).
    """
    begun = time.monotonic()

    def say(step: str) -> None:
        with dropping_unread(sys.stderr):
            show.err.print(f"[dim]{time.monotonic() - begun:7.1f} s[/]  {escape(step)}")

    if quiet or not show.err.is_terminal:
        yield say
        return
    from strandline.cli.moving_bar import moving_bar  # noqa: PLC0415 - no other command needs it

    with moving_bar(took_before or {}) as show_step:

        def begin(step: str) -> None:
            say(step)
            show_step(step)

        yield begin
