"""Erases the rows of a person from everything that holds single records. No Spark.

Windows, slots and the timeline are aggregates and stay.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

from strandline.errors import InputError, NoRunsError, RetryableError
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.arrow_diff import only_deleted
from strandline.lake.store.days import PARTITIONS
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store, storage_errors
from strandline.lake.upkeep import leftovers, upkeep
from strandline.lake.upkeep.erasure import erase as erase_rows
from strandline.lake.upkeep.erasure import has_columns, matching, sides_with_columns
from strandline.lake.upkeep.row_condition import condition_on_row
from strandline.pipeline.manage.maintain import next_run_id, versions_with
from strandline.pipeline.publish.abandon import drop_prepared
from strandline.pipeline.request.driver import is_of_later_version, last_driven, state_of
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS

_OF_RECORDS = ("quarantine", "firings", PAIRS)
"""The tables with rows of single records."""
WAIT_S = 60.0
"""The default time in seconds that an erasure waits for runs in progress."""
_PAUSE_S = 0.5


def erasure_of(spec: PipelineSpec, lake: Lake, expression: str) -> dict[str, Any]:
    """The rows and files that `erase` would remove; nothing is written.

    Returns:
        `pipeline`; `rows`: the number of rows that meet the condition in `quarantine`, and in
        `firings` and `pairs` if they exist, None if a table lacks a column of the condition;
        `staging`: the runs whose staging would be removed; `reports`: the number of files of audits
        and pages.

    Raises:
        InputError: the condition is not one on a row of these tables.
        NoRunsError: nothing has run yet.
    """
    store = lake.pipeline(spec.pipeline)
    expression = condition_on_row(expression)
    quarantine = store.table("quarantine")
    if quarantine is None:
        raise NoRunsError(spec.pipeline, lake.root)
    rows = {name: _rows(store, name, expression) for name in _OF_RECORDS if store.table(name)}
    if all(count is None for count in rows.values()):
        matching(quarantine, expression)  # says which column there is none of
    return {"pipeline": spec.pipeline, "rows": rows, **leftovers.whatever_is_left(store)}


def erase(
    spec: PipelineSpec,
    lake: Lake,
    expression: str,
    *,
    reason: str,
    requested_by: str | None = None,
    wait_s: float = WAIT_S,
) -> dict[str, Any]:
    """Remove the rows of `erasure_of`, and the old versions that hold them.

    It first waits for runs in progress; a run that begins later finds the erasure in the ledger
    before it writes anything. The call may be killed at any point: the same call resumes it. The
    ledger keeps the number of rows, the reason and who asked, but only a digest of the condition,
    which may contain personal data.

    Raises:
        InputError: as for `erasure_of`; or a publish is unfinished.
        RetryableError: a run in progress may hold the rows, and has not ended in time.
    """
    store = lake.pipeline(spec.pipeline)
    ledger, expression = Ledger(store), condition_on_row(expression)
    _wait_for_runs(spec, ledger, wait_s)
    with storage_errors(store.root), store.lock():
        _refuse_unfinished_publish(spec, ledger.state())
        _refuse_runs_in_progress(spec, ledger.state())
        found = erasure_of(spec, lake, expression)
        step = Entry(
            run_id=next_run_id(ledger, "erase"),
            attempt=1,
            step="erasing",
            kind="erase",
            diff={name: only_deleted(rows) for name, rows in found["rows"].items() if rows},
            reason=reason,
            requested_by=requested_by,
            message=f"condition sha256:{hashlib.sha256(expression.encode()).hexdigest()}",
        )
        ledger.append(step, datetime.now(UTC))
        tables = [name for name, rows in found["rows"].items() if rows is not None]
        for name in tables:
            table = DeltaTable(store.uri(name))
            sides = _sides(table, name, expression)
            erase_rows(table, PARTITIONS[name], expression, "erase", sides)
        drop_prepared(ledger, ledger.state().runs, "erase removed its staging")
        leftovers.drop_whatever_is_left(store)
        _note_erased(ledger, tables, step)
        for name in tables:
            upkeep.vacuum(DeltaTable(store.uri(name)), 0, ())
    return found


def _note_erased(ledger: Ledger, tables: list[str], step: Entry) -> None:
    """Write a step about erased rows, unless one for the same versions exists."""
    versions, last = versions_with(ledger, tables), ledger.state().steps[-1]
    if (last.step, last.versions) != ("erased", versions):
        erased = replace(step, step="erased", versions=versions)
        ledger.append(erased, datetime.now(UTC))


def _rows(store: Store, name: str, expression: str) -> int | None:
    """The number of rows of a table that meet the condition; None: it lacks a column of it."""
    table = DeltaTable(store.uri(name))
    sides = _sides(table, name, expression)
    if not (sides or (name != PAIRS and has_columns(table, expression))):
        return None
    return matching(table, expression, sides)


def _sides(table: DeltaTable, name: str, expression: str) -> list[str]:
    """The sides of pairs whose records the condition is about."""
    return sides_with_columns(table, expression) if name == PAIRS else []


def _wait_for_runs(spec: PipelineSpec, ledger: Ledger, wait_s: float) -> None:
    """Wait until no run is in progress; a publishing run holds the lock, which is waited for.

    Raises:
        RetryableError: a run is still in progress.
    """
    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s and _in_progress(ledger.state()):
        time.sleep(_PAUSE_S)
    _refuse_runs_in_progress(spec, ledger.state())


def _refuse_runs_in_progress(spec: PipelineSpec, state: PipelineState) -> None:
    live = _in_progress(state)
    if not live:
        return
    runs = [" ".join(filter(None, of)) for of in live.items()]
    one = len(runs) == 1
    elsewhere = [run_id for run_id, where in live.items() if where]
    not_seen = (
        f"; whether {', '.join(elsewhere)} has ended cannot be seen from here: cancel it if so"
        if elsewhere
        else ""
    )
    raise RetryableError(
        f"{spec.pipeline} run{'' if one else 's'} {', '.join(runs)}",
        f"{'is' if one else 'are'} in progress, and may hold the rows{not_seen}",
        "erase again once it has ended, or end it: "
        f"strandline runs cancel {spec.pipeline} {next(iter(live)) if one else 'RUN'}",
    )


def _in_progress(state: PipelineState) -> dict[str, str]:
    """The runs that may still hold rows, except a publishing one, each with why that is not known.

    It is empty for a run whose process lives on this host.
    """
    found: dict[str, str] = {}
    for run_id, steps in state.runs.items():
        publishes = state.unfinished is not None and state.unfinished.run_id == run_id
        if publishes or steps[-1].kind in UPKEEP:
            continue
        outcome = state_of(steps)
        if outcome == "running":
            found[run_id] = ""
        elif outcome == "unknown":
            found[run_id] = _why_unknown(steps)
    return found


def _why_unknown(steps: Sequence[Entry]) -> str:
    if is_of_later_version(steps[-1]):
        return f"(its last step, {steps[-1].step}, is of a later version)"
    last = last_driven(steps)
    driver = None if last is None else last.driver
    return f"on {'an unknown host' if driver is None else driver.host}"


def _refuse_unfinished_publish(spec: PipelineSpec, state: PipelineState) -> None:
    unfinished = state.unfinished
    if unfinished is not None:
        raise InputError(
            f"{spec.pipeline} run {unfinished.run_id}",
            "has begun to publish and has not ended: its staging may contain the rows",
            "let the next run finish it, or strandline runs drop it, then erase again",
        )
