"""Progress of a run: the current step, its time so far, and its time in earlier runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from strandline.cli import show
from strandline.cli.console import escape
from strandline.quality.figures import duration


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
        show.err.print(f"[dim]{time.monotonic() - begun:7.1f} s[/]  {escape(step)}")

    if quiet or not show.err.is_terminal:
        yield say
        return
    from rich.progress import (  # noqa: PLC0415 - no other command needs it
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[before]}[/]"),
    )
    with Progress(*columns, console=show.err, transient=True) as live:
        shown: list[TaskID] = []

        def show_step(step: str) -> None:
            say(step)
            while shown:
                live.remove_task(shown.pop())
            before = took_before_of(step, took_before or {})
            shown.append(live.add_task(escape(step), total=None, before=before))

        yield show_step


def took_before_of(step: str, seconds: Mapping[str, float]) -> str:
    """The time of a step in earlier runs, such as `12s in earlier runs`; empty if it is unknown.

    Args:
        step: the step's name, such as `rebuild`.
        seconds: seconds by part; a part may cover several steps, as `observe and rebuild`.
    """
    for part, took in seconds.items():
        if step in part.split(" and "):
            whole = "" if part == step else f"{part}: "
            return f"{whole}{duration(max(round(took), 1) * 1000)} in earlier runs"
    return ""
