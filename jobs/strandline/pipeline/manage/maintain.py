"""Upkeep that keeps a long-lived pipeline small. No Spark.

Each part is independent and idempotent, so that a killed call loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from deltalake import DeltaTable

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.arrow_diff import only_deleted
from strandline.lake.store.days import PARTITIONS
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store, storage_errors
from strandline.lake.upkeep import leftovers, upkeep
from strandline.lake.upkeep.erasure import drop_older, older_rows
from strandline.lake.upkeep.leftovers import spent_steps
from strandline.pipeline.manage.retention import Retention
from strandline.pipeline.publish.abandon import drop_prepared
from strandline.spec import PipelineSpec
from strandline.tables import QUARANTINE
from strandline.visible import number_of


@dataclass(frozen=True)
class Upkeep:
    """The upkeep of one pipeline at an instant."""

    spec: PipelineSpec
    store: Store
    ledger: Ledger
    retention: Retention
    now: datetime

    def before(self, days: int) -> datetime:
        """The instant so many days ago, at the earliest the first instant."""
        earliest = datetime.min.replace(tzinfo=UTC)
        return earliest if days >= (self.now - earliest).days else self.now - timedelta(days)

    @property
    def first_quarantine_day(self) -> date | None:
        """The first arrival day whose quarantined rows stay; None: all stay."""
        days = self.spec.quarantine_days
        return None if days is None else self.before(days).date()


def upkeep_of(spec: PipelineSpec, lake: Lake, retention: Retention) -> dict[str, Any]:
    """What `maintain` would do now; nothing is written.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        retention: what is kept, and for how long.

    Returns:
        `pipeline`; `notice`: about an unfinished publish, or None; for each of the `tables` the
        `files` and `bytes` that are `in_use`, those `stored` (including old versions), the `days`
        whose files would be compacted, and the `unneeded` files that would be removed;
        `quarantine`: the number of rows to remove; `staging`, `reports`: the runs, files and bytes
        to remove; `ledger`: the number of steps to remove.

    Raises:
        InputError: nothing has run yet, or the arrival day of quarantined rows is not known.
    """
    todo = _opened(spec, lake, retention)
    state = todo.ledger.state()
    tables: dict[str, Any] = {}
    for name in (*PARTITIONS, "runs"):
        table = todo.store.table(name)
        if table is None:
            continue
        days = [] if name == "runs" else upkeep.scattered_days(table, PARTITIONS[name])
        unneeded = upkeep.unneeded(table, retention.keep_days, _needed(state, name))
        tables[name] = _sizes(table) | {"days": len(days), "unneeded": unneeded}
    return {
        "pipeline": spec.pipeline,
        "notice": state.unfinished and state.unfinished.notice,
        "tables": tables,
        "quarantine": older_rows(todo.store, spec.source, todo.first_quarantine_day),
        "staging": leftovers.dead_staging(todo.store, state, todo.before(retention.staging_days)),
        "reports": leftovers.old_reports(todo.store, todo.before(retention.report_days)),
        "ledger": len(spent_steps(state, todo.before(retention.ledger_days))),
    }


def maintain(
    spec: PipelineSpec,
    lake: Lake,
    retention: Retention,
    now: datetime | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Do what `upkeep_of` describes.

    Published tables are not touched while a publish is unfinished. No rows change, except
    quarantined rows older than `quarantine_days`, which are removed.

    Returns:
        `pipeline`, `notice`, and for each of the `tables` what is `in_use` and `stored` now.

    Raises:
        InputError: as for `upkeep_of`.
        RetryableError: a live run publishes, and did not end within a quarter of an hour.
    """
    todo = _opened(spec, lake, retention, now)
    run_id = next_run_id(todo.ledger, "maintain")
    for name in PARTITIONS:
        if todo.store.version(name) is None:
            continue
        progress(name)
        with _whole(todo) as may:
            if may:
                _keep_small(todo, name, run_id)
    progress("staging, reports, ledger")
    state = _drop_old_staging(todo)
    leftovers.drop_reports(todo.store, todo.before(retention.report_days))
    _keep_ledger_small(todo)
    tables = {name: todo.store.table(name) for name in (*PARTITIONS, "runs")}
    return {
        "pipeline": spec.pipeline,
        "notice": state.unfinished and state.unfinished.notice,
        "tables": {name: _sizes(table) for name, table in tables.items() if table},
    }


def _drop_old_staging(todo: Upkeep) -> PipelineState:
    """Remove old staged results, and old steps of the ledger, under the publishers' lock.

    Returns:
        The state of the ledger before.
    """
    with storage_errors(todo.store.root), todo.store.lock():
        # whoever publishes what a run has staged has the lock, and has said so in the ledger
        state, old = todo.ledger.state(), todo.before(todo.retention.staging_days)
        dead = leftovers.dead_staging(todo.store, state, old)["runs"]
        days = number_of(todo.retention.staging_days, "day")
        drop_prepared(todo.ledger, dead, f"maintain removed its staging after {days}")
        for dead_run in dead:
            todo.store.drop_staging(dead_run)
        todo.ledger.forget(spent_steps(state, todo.before(todo.retention.ledger_days)))
    return state


def _keep_ledger_small(todo: Upkeep) -> None:
    """Remove old files of the ledger's table."""
    with storage_errors(todo.store.root), todo.store.ledger_lock():
        if (steps := todo.store.table("runs")) is not None:
            # on an object store steps are written without a lock: files of today are not touched
            least = 0 if todo.store.lake.folder else 1
            upkeep.vacuum(steps, max(todo.retention.keep_days, least), ())


def _sizes(table: DeltaTable) -> dict[str, Any]:
    return {"in_use": upkeep.in_use(table), "stored": upkeep.stored(table)}


def _opened(
    spec: PipelineSpec, lake: Lake, retention: Retention, now: datetime | None = None
) -> Upkeep:
    store = lake.pipeline(spec.pipeline)
    ledger = Ledger(store)
    ledger.state_after_runs()
    return Upkeep(spec, store, ledger, retention, now or datetime.now(UTC))


@contextmanager
def _whole(todo: Upkeep) -> Iterator[bool]:
    """Hold the pipeline's lock; yields whether no publish is unfinished."""
    with storage_errors(todo.store.root), todo.store.lock():
        yield todo.ledger.state().unfinished is None


def _keep_small(todo: Upkeep, name: str, run_id: str) -> None:
    """Maintain one table, and write a step with its new version, if the ledger named the old one.

    If it did not, someone else has written the table since, which upkeep must not hide. That rows
    are removed is written before they are, with the versions that the ledger names: nobody could
    say so afterwards if upkeep were killed.
    """
    store, state = todo.store, todo.ledger.state()
    table, named = store.table(name), state.versions
    if table is None:
        return
    is_named = (named or {}).get(name) == table.version()
    step = Entry(run_id, 1, "maintained", "maintain", versions=named)
    first_day = todo.first_quarantine_day if name == QUARANTINE.name else None
    if first_day is not None:
        source = todo.spec.source
        if removed := older_rows(store, source, first_day):
            diff = {name: only_deleted(removed)}
            todo.ledger.append(replace(step, diff=diff), datetime.now(UTC))
            drop_older(store, source, first_day)
        table.update_incremental()
    upkeep.compact(table, name, upkeep.scattered_days(table, PARTITIONS[name]))
    upkeep.vacuum(table, todo.retention.keep_days, _needed(state, name))
    versions = versions_with(todo.ledger, [name]) if is_named else named
    if versions != named:
        todo.ledger.append(replace(step, versions=versions), datetime.now(UTC))


def _needed(state: PipelineState, name: str) -> list[int]:
    """The versions of a table that readers, or the end of an unfinished publish, may need."""
    asked = [*state.whole[-1:], *state.published[-1:]]
    if state.unfinished is not None:
        asked.append(state.unfinished.begun)
    versions = [(entry.versions or {}).get(name) for entry in asked]
    return [version for version in versions if version is not None]


def versions_with(ledger: Ledger, names: Iterable[str]) -> dict[str, int] | None:
    """The versions in the ledger, with the present ones of some tables; None: the ledger has none.

    The caller holds the lock, and no publish is unfinished.
    """
    named = ledger.state().versions
    if named is None:
        return None
    now = {name: ledger.store.version(name) for name in names}
    return {
        **named,
        **{name: version for name, version in now.items() if version is not None},
    }


def next_run_id(ledger: Ledger, kind: str) -> str:
    """An id for steps outside of runs, from the ledger's next position."""
    return f"{kind}-{ledger.state().position + 1}"
