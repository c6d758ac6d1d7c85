"""A consistent read of published tables, at the versions that the ledger names.

```python
from strandline.lake.read import published_tables

tables = published_tables("lake", "flights")       # or run="…", or as_of_ledger=12
tables.dataset("windows").to_table()               # Arrow, without Spark
tables.frame(spark, "windows")                     # Spark
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from strandline.errors import InputError, NoSuchRunError, file_missing
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.publications import UnfinishedPublish
from strandline.lake.ledger.state import WHOLE, PipelineState
from strandline.lake.store.days import Days, days_of
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import columns_of, dataset_of, scanned
from strandline.lake.store.store import PUBLISHED, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEDGER = "runs"
READABLE = (*PUBLISHED, LEDGER)
"""The tables that can be read."""
_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class ConsistentTables:
    """The tables of a pipeline at the versions after a step of the ledger.

    Attributes:
        store: the tables at these versions.
        step: the step.
        state: the pipeline's current state.
    """

    store: Store
    step: Entry
    state: PipelineState

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions of the tables."""
        return self.store.versions()

    @property
    def notice(self) -> str | None:
        """The notice of an unfinished publication, whose rows are not in these tables; or None."""
        return _notice_of(self.state.unfinished)

    def columns(self, name: str, chosen: Sequence[str] | None = None) -> pa.Schema:
        """The columns of a table, or the `chosen` columns.

        Raises:
            InputError: the table or a column does not exist.
        """
        there = columns_of(self._table(name))
        for column in chosen or ():
            if column not in there.names:
                raise InputError(column, f"no column of {name}", f"it has {', '.join(there.names)}")
        return (
            there if chosen is None else pa.schema([there.field(c) for c in dict.fromkeys(chosen)])
        )

    def dataset(self, name: str) -> ds.Dataset:
        """A table as an Arrow dataset.

        Raises:
            InputError: the table does not exist, or this version has been cleaned up.
        """
        table = self._table(name)
        rows = dataset_of(table)
        if name != LEDGER:
            return rows
        return rows.filter(ds.field("position") <= self.step.position)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """A table as a Spark DataFrame.

        Raises:
            InputError: as for `dataset`.
        """
        self._table(name)
        rows = self.store.frame(spark, name)
        if name != LEDGER:
            return rows
        return rows.where(rows["position"] <= self.step.position)

    def batches(
        self, name: str, columns: Sequence[str] | None = None, days: Days | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table in batches, in the order of their days.

        Args:
            name: the table's name.
            columns: names of columns; None: all columns.
            days: the days to read; None: all days.

        Raises:
            InputError: as for `dataset`, or files of this version have been vacuumed.
        """
        if name == LEDGER:
            rows, wanted = self.dataset(name), None
        else:
            rows, wanted = days_of(self._table(name), name, days or Days())
        try:
            yield from scanned(
                rows, wanted, columns, at_once=_BATCH_ROWS, files_ahead=1
            ).to_batches()
        except FileNotFoundError:
            raise self._unreadable(name) from None

    def _table(self, name: str) -> DeltaTable:
        if name not in READABLE:
            raise InputError(name, "is not a published table", f"read one of {', '.join(READABLE)}")
        try:
            table = self.store.table(name)
        except DeltaError:
            raise self._unreadable(name) from None
        if table is None:
            found = [one for one in READABLE if self.versions.get(one) is not None]
            raise InputError(
                f"{self.store.pipeline}: {name}",
                "there is no such table at this state",
                f"read {', '.join(found)}" if found else "read another state",
            )
        return table

    def _unreadable(self, name: str) -> InputError:
        version = (self.store.pinned or {}).get(name)
        if version is None or version == self._newest_version(name):
            return file_missing(f"{self.store.pipeline}: {name}", self.store.pipeline)
        return InputError(
            f"{self.store.pipeline}: {name}",
            f"version {version} is not there any more: it was vacuumed",
            "read the published rows, without --run and --as-of-ledger; --keep-days of "
            "strandline maintain sets for how long versions stay",
        )

    def _newest_version(self, name: str) -> int | None:
        """The newest version of a table; None if its log cannot be read."""
        try:
            table = self.store.newest(name)
        except DeltaError:
            return None
        return None if table is None else int(table.version())


def published_tables(
    lake: Lake | str, pipeline: str, *, run: str | None = None, as_of_ledger: int | None = None
) -> ConsistentTables:
    """The tables of a pipeline after its last publication, or after an older one.

    Args:
        lake: the lake's root.
        pipeline: the pipeline's name.
        run: the run after which to read the tables.
        as_of_ledger: the position of the ledger at which to read the tables.

    Raises:
        InputError: nothing was published by then, the run has published nothing, or the ledger ends
            before the position.
    """
    store = (Lake.at(lake) if isinstance(lake, str) else lake).pipeline(pipeline)
    if run is not None and as_of_ledger is not None:
        raise InputError("--run", "contradicts --as-of-ledger", "give one of them")
    state = Ledger(store).state()
    if as_of_ledger is not None and state.steps and as_of_ledger > state.position:
        raise _after_the_end(as_of_ledger, state)
    step = _whole_of(state if as_of_ledger is None else state.until(as_of_ledger), run)
    if step is None:
        raise _nothing_published(store, state, run, as_of_ledger)
    return ConsistentTables(store.at(step.versions or {}), step, state)


def current_tables(lake: Lake, pipeline: str) -> ConsistentTables:
    """The tables with the malformed rows that were observed after the last publication.

    Raises:
        InputError: nothing has run yet.
    """
    ledger = Ledger(lake.pipeline(pipeline))
    state = ledger.state_after_runs()
    store, _ = tables_shown(ledger)
    return ConsistentTables(store, state.steps[-1], state)


def _whole_of(state: PipelineState, run: str | None) -> Entry | None:
    """The last step, or the last step of a run, that names the versions of all tables."""
    if run is None:
        return state.whole[-1] if state.whole else None
    done = (step for step in reversed(state.runs.get(run, ())) if step.step in WHOLE)
    return next((step for step in done if step.versions is not None), None)


def tables_shown(ledger: Ledger) -> tuple[Store, str | None]:
    """The current tables without the rows of an unfinished publication.

    Unlike those of `published_tables` they have malformed rows that were observed later.

    Returns:
        The tables; and the notice of an unfinished publication, or None.
    """
    state = ledger.state()
    unfinished = state.unfinished
    versions: Mapping[str, int] = ledger.store.versions()
    if unfinished is None:
        # one that has begun while the versions were read has named those of before
        since = (step for step in ledger.state().steps if step.position > state.position)
        begun = next((step for step in since if step.step == "publishing"), None)
        unfinished = None if begun is None else UnfinishedPublish(begun)
    if unfinished is not None:
        # what the publish does not write is as it was
        versions = {**versions, **(unfinished.begun.versions or {})}
    return ledger.store.at(versions), _notice_of(unfinished)


def _notice_of(unfinished: UnfinishedPublish | None) -> str | None:
    return None if unfinished is None else unfinished.notice


def _after_the_end(position: int, state: PipelineState) -> InputError:
    return InputError(
        "--as-of-ledger",
        f"{position} is not a position of the ledger, which ends at {state.position}",
        "give one of strandline changes, or leave it out for the newest state",
    )


def _nothing_published(
    store: Store, state: PipelineState, run: str | None, as_of_ledger: int | None
) -> InputError:
    pipeline = store.pipeline
    listed = f"see strandline runs list {pipeline}"
    if run is not None:
        if run in state.runs:
            return InputError(run, "has published nothing", listed)
        return NoSuchRunError(run, pipeline, store.lake.root)
    if as_of_ledger is not None and state.steps:
        return InputError(
            "--as-of-ledger", f"nothing was published at position {as_of_ledger}", listed
        )
    return InputError(
        pipeline,
        f"has published nothing yet in the lake {store.lake.root}",
        "run strandline backfill or advance first, or name another lake (--lake)",
    )
