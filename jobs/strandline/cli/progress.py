"""Progress of a run: lines with each step, or a moving bar beside the time of earlier runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import RenderableType
from rich.progress import (
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress_bar import ProgressBar
from rich.text import Text

from strandline.cli import show
from strandline.cli.console import dropping_unread, escape
from strandline.quality.figures import duration

_WIDTH = 20
"""The width of the bar in characters."""


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
    with _moving_bar(took_before or {}) as show_step:

        def begin(step: str) -> None:
            say(step)
            show_step(step)

        yield begin


@dataclass(frozen=True)
class Part:
    """A part of a run that earlier runs had, too.

    Attributes:
        name: its name; it may be of several steps, as `observe and rebuild`.
        usual_s: the seconds that it took in earlier runs, at least one.
        begun_s: when it has begun, by the monotonic clock.
    """

    name: str
    usual_s: float
    begun_s: float

    def share(self, now_s: float) -> float | None:
        """The share of its usual time that has passed; None: it takes longer than usual."""
        passed_s = now_s - self.begun_s
        return passed_s / self.usual_s if passed_s < self.usual_s else None

    def in_words(self, step: str, now_s: float) -> str:
        """The share as text, such as `40 % of the 12s in earlier runs`."""
        usual = duration(round(self.usual_s) * 1000)
        share = self.share(now_s)
        so_far = "longer than" if share is None else f"{int(100 * share)} % of"
        whole = "" if self.name == step else f"{self.name}: "
        return f"{whole}{so_far} the {usual} in earlier runs"


def part_of(
    step: str, seconds: Mapping[str, float], before: Part | None, now_s: float
) -> Part | None:
    """The part to which a step belongs that begins now; None: its usual time is not known.

    Args:
        step: the step's name, such as `rebuild`.
        seconds: the seconds of earlier runs by part.
        before: the part of the step before it, which may go on.
        now_s: the monotonic clock.
    """
    name = next((name for name in seconds if step in name.split(" and ")), None)
    if name is None:
        return None
    return before if before and before.name == name else Part(name, max(seconds[name], 1), now_s)


@contextmanager
def _moving_bar(seconds: Mapping[str, float]) -> Iterator[Callable[[str], None]]:
    """A moving bar on stderr, and the callback that shows each step as it begins.

    Args:
        seconds: the seconds of earlier runs by part (`seconds_by_part`).
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        _Bar(),
        TimeElapsedColumn(),
        _Words(),
    )
    with Progress(*columns, console=show.err, transient=True) as live:
        task = live.add_task("", total=None, visible=False, step="", part=None)

        def show_step(step: str) -> None:
            part = part_of(step, seconds, live.tasks[0].fields["part"], time.monotonic())
            live.reset(task, description=escape(step), visible=True, step=step, part=part)

        yield show_step


class _Bar(ProgressColumn):
    """The bar of a part; it moves to and fro once the part takes longer than usual."""

    def render(self, task: Task) -> RenderableType:
        """The bar now; nothing if the usual time is not known."""
        part: Part | None = task.fields["part"]
        if part is None:
            return Text()
        now_s = time.monotonic()
        share = part.share(now_s)
        return ProgressBar(
            total=1,
            completed=share or 0,
            width=_WIDTH,
            pulse=share is None,
            animation_time=now_s,
        )


class _Words(ProgressColumn):
    """The share of a part as text."""

    def render(self, task: Task) -> Text:
        """The text now; nothing if the usual time is not known."""
        part: Part | None = task.fields["part"]
        text = "" if part is None else part.in_words(task.fields["step"], time.monotonic())
        return Text(text, style="dim")
