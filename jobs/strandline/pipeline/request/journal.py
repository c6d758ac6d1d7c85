"""The journal of a run: its known facts, which each step that it writes to the ledger has."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from strandline.lake.landing.landing import Landing
from strandline.lake.ledger.ledger import Entry
from strandline.pipeline.request.begin import first_step
from strandline.pipeline.request.context import Context, Progress
from strandline.pipeline.request.driver import this_driver
from strandline.pipeline.request.request import Request
from strandline.spec import PipelineSpec


def started(spec: PipelineSpec, landing: Landing, request: Request) -> Entry:
    """The first step of a run that begins now, without its id."""
    return first_step(
        spec,
        request,
        "started",
        range=request.range,
        landing_version=landing.version,
        landing_id=landing.log.table_id,
        layout=spec.layout | {"rules": spec.rules},
        recreated=request.recreate,
        overrides=request.overrides or None,
        driver=this_driver(landing.spark),
    )


class Journal:
    """The known facts of a run so far; each step that it writes contains all of them.

    Attributes:
        entry: the facts.
        seconds: the seconds of each part of the run, by its name.
        quarantined: the malformed rows that the run has inserted, updated and deleted in
            quarantine; empty: none.
    """

    def __init__(self, ctx: Context, started: Entry, progress: Progress) -> None:
        """Start the journal of a run.

        Args:
            ctx: the run.
            started: its first step.
            progress: called with each part of the run as it begins.
        """
        self._ctx = ctx
        self._progress = progress
        self.entry = replace(started, position=0)
        self.seconds: dict[str, float] = {}
        self.quarantined: Mapping[str, int] = {}

    def add_facts(self, **facts: Any) -> None:
        """Add facts to all further steps: fields of `Entry`."""
        self.entry = replace(self.entry, **facts)

    def write(self, step: str, **facts: Any) -> None:
        """Write a step with facts of its own; a dry run writes none."""
        self._ctx.append_step(replace(self.entry, step=step, **facts))

    def write_failed(self, message: str) -> None:
        """Write that the run has failed, and why."""
        self.write("failed", message=message)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part of the run, and report its beginning to `progress`."""
        self._progress(name)
        begun = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begun, 2)
