"""The command that makes the same request once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.lake.ledger.entry import Entry
from strandline.model.command import option_of
from strandline.model.intervals import text_of
from strandline.pipeline.request.request import MOST_SHOWN, Request


def command_of(request: Request) -> list[str]:
    """The words of the command that makes a request, without its pipeline.

    Without the options of a dry run, and of who asks. What a scheduled run has started is made by
    the command of that run. Example: `["backfill", "--start", "2024-03-01T00:00:00Z", "--end",
    "2024-03-02T00:00:00Z", "--as-of", "2024-03-05T00:00:00Z", "--prepare"]`.
    """
    asked = request.started_by or request
    return [asked.kind, *_of_windows(asked), *_of_effects(asked)]


def _of_windows(request: Request) -> Iterator[str]:
    """The options that say which windows are computed, from which arrivals and by which rules."""
    if request.kind == "advance":
        yield from ("--to", text_of(request.until_ms))
    if request.range is not None:
        yield from request.range.as_options.split()
    for name, value in request.overrides.items():
        yield from (option_of(name), value)
    if request.as_of_ms is not None:
        yield from ("--as-of", text_of(request.as_of_ms))


def _of_effects(request: Request) -> Iterator[str]:
    """The options that say what a run may change, and why."""
    flags = {
        "--close": request.close,
        "--reopen": request.reopen,
        "--recreate": request.recreate,
        "--allow-removals": request.allow_removals,
        "--prepare": request.prepare,
    }
    yield from (option for option, given in flags.items() if given)
    values = {
        "--accept-loss": request.accept_loss,
        "--max-bytes": request.max_bytes,
        "--preview-rows": None if request.preview_rows == MOST_SHOWN else request.preview_rows,
        "--reason": request.reason,
    }
    for option, value in values.items():
        if value is not None:
            yield from (option, str(value))


def known_command_of(steps: Sequence[Entry]) -> Sequence[str] | None:
    """`command_of` a run, by its steps; None: an earlier version has written them."""
    kept = (step.to_publish.command for step in reversed(steps))
    return next((command for command in kept if command is not None), None)
