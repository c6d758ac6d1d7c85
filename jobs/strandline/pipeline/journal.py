"""The journal of a run: it alone writes the run's steps into the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from strandline.lake.ledger import Entry
from strandline.pipeline.context import Context, Progress
from strandline.pipeline.request import Request


class Journal:
    """What is known of a run so far; each step that it writes says all of it."""

    def __init__(self, ctx: Context, request: Request, attempt: int, progress: Progress) -> None:
        """Of a run that begins now.

        Args:
            ctx: the run.
            request: what is asked.
            attempt: the how manieth it is of the caller's run.
            progress: told each part of the run as it begins.
        """
        self._ctx = ctx
        self._progress = progress
        self.entry = Entry(
            run_id=ctx.run_id,
            attempt=attempt,
            step="started",
            kind=request.kind,
            range=request.range,
            spec_fingerprint=ctx.spec.spec_fingerprint,
            timeline_fingerprint=ctx.spec.timeline_fingerprint,
            landing_version=ctx.landing.version,
            layout=ctx.spec.layout,
            recreated=request.recreate,
            overrides=request.overrides or None,
            reason=request.reason,
            requested_by=request.requested_by,
        )
        self.seconds: dict[str, float] = {}

    def know(self, **what: Any) -> None:
        """From now on every step says this, too: fields of `Entry`."""
        self.entry = replace(self.entry, **what)

    def write(self, step: str, **what: Any) -> None:
        """Write a step; `what` is said by this one alone. A dry run writes none."""
        self._ctx.note(replace(self.entry, step=step, **what))

    def write_failed(self, message: str) -> None:
        """Write that the run has failed, and why."""
        self.write("failed", message=message)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A part of the run: told as it begins, timed as it ends."""
        self._progress(name)
        begun = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begun, 2)
