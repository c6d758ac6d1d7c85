"""The context of a run, which every step of it uses, and its journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from strandline.engine.history.history import History
from strandline.engine.records.quarantine import second_of_two
from strandline.lake.landing.landing import Landing
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.publish.staging import Staging, passing
from strandline.lake.read import tables_shown
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.pipeline.request.begin import first_step
from strandline.pipeline.request.driver import this_driver
from strandline.pipeline.request.request import Request
from strandline.spec import PipelineSpec
from strandline.tables import COMPLETENESS, QUARANTINE

Progress = Callable[[str], None]
"""Called with the name of each step as it begins."""


@dataclass(frozen=True)
class Context:
    """The fixed context of a run, with its ledger opened once.

    `versions`: the versions at which published tables are read; None: the newest.
    """

    spark: SparkSession
    spec: PipelineSpec
    lake: Lake
    landing: Landing
    ledger: Ledger
    run_id: str
    dry_run: bool
    versions: Mapping[str, int] | None = None

    @property
    def store(self) -> Store:
        """The pipeline's tables; a dry run does not read a half-finished publish."""
        if self.dry_run:
            return self._shown[0]
        store = self.ledger.store
        return store if self.versions is None else store.at(self.versions)

    @property
    def as_published(self) -> Context:
        """The same context, pinned to the present versions of the tables that a rebuild reads.

        A dry run commits nothing, and is not pinned.
        """
        tables = (QUARANTINE.name, COMPLETENESS.name)
        return self if self.dry_run else replace(self, versions=self.store.versions(tables))

    @property
    def notice(self) -> str | None:
        """A notice about the tables that a dry run reads; None: nothing to say."""
        return self._shown[1] if self.dry_run else None

    @cached_property
    def _shown(self) -> tuple[Store, str | None]:
        return tables_shown(self.ledger)

    @cached_property
    def staging(self) -> Staging:
        """The run's staging; the staging of a dry run is removed at its end."""
        kind = passing if self.dry_run else Staging
        return replace(kind(self.spark, self.store, self.run_id), second_of=self.second_of)

    def second_of(self) -> dict[str, str]:
        """The second columns of quarantine for two landing tables, each with its column's name."""
        sides = {side: one.frame.schema for side, one in self.landing.inputs.items()}
        return second_of_two(sides, self.spec)

    @property
    def validations_folder(self) -> Path | None:
        """The folder for the audit's results, for Data Docs; None: they are not kept."""
        return None if self.dry_run else self.lake.validations(self.spec.pipeline)

    def records(self, history: History) -> DataFrame:
        """The rows of all arrival days that a rebuild may read, as `Landing.records` reads them."""
        return self.landing.records(history.days.rebuilt)

    def append_step(self, entry: Entry) -> int:
        """Append a step to the ledger, unless this is a dry run; its position."""
        return 0 if self.dry_run else self.ledger.append(entry, datetime.now(UTC))

    def place(self, what: str) -> str:
        """A place for errors: the pipeline and a part of it."""
        return f"{self.spec.pipeline}: {what}"


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
