"""The context of a run, which every step of it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from strandline.engine.history.history import History
from strandline.engine.records.quarantine import second_of_two
from strandline.lake.landing.landing import Landing
from strandline.lake.ledger.ledger import Entry, Ledger
from strandline.lake.publish.staging import Staging, passing
from strandline.lake.read import tables_shown
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
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
