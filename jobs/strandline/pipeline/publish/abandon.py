"""Abandons runs that have not published (`runs cancel`, `runs drop`). No Spark.

Both use `take_back`, and so does a later run that finds one of them unfinished: tables that a
publish has begun to write are restored, the run's staging is removed, and the ledger gets a step
`dropped`. Upkeep and erasure drop the prepared runs whose staging they remove.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psutil
from deltalake.exceptions import DeltaError

from strandline.errors import InputError, RetryableError
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store, storage_errors
from strandline.pipeline.request.driver import (
    is_of_later_version,
    last_driven,
    process_of,
    state_of,
)
from strandline.spec import PipelineSpec

_TIMEOUT_S = 60


def drop_run(
    spec: PipelineSpec, lake: Lake, run_id: str, *, reason: str, requested_by: str | None = None
) -> dict[str, Any]:
    """Abandon a run that has not published, so that the next run proceeds as if it had never run.

    If the run has begun to publish, its tables are restored to the versions before it; otherwise
    only its staging is removed. The call may be killed at any point: the next run, or the same
    call, resumes it. It is idempotent.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        run_id: as the ledger names it.
        reason: why; kept in the ledger.
        requested_by: who asks; kept in the ledger.

    Returns:
        `pipeline`, `run_id`, `status` (`dropped`) and `versions` of the restored tables.

    Raises:
        InputError: there is no such run, it has published, or an old version is no longer
            available.
        RetryableError: a live run publishes, and did not end within a quarter of an hour.
    """
    with _to_abandon(spec, lake, run_id) as (ledger, _):
        versions = _abandon(ledger, run_id, reason=reason, requested_by=requested_by)
    return {
        "pipeline": spec.pipeline,
        "run_id": run_id,
        "status": "dropped",
        "versions": dict(versions),
    }


def cancel_run(
    spec: PipelineSpec,
    lake: Lake,
    run_id: str,
    *,
    reason: str | None = None,
    requested_by: str | None = None,
) -> dict[str, Any]:
    """Abandon a run that has not begun to publish, and ask its process on this host to stop.

    On another host it continues until it reads the ledger before publishing. The call is
    idempotent.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        run_id: as the ledger names it.
        reason: why; kept in the ledger.
        requested_by: who asks; kept in the ledger.

    Returns:
        `pipeline`, `run_id`, `status` (`dropped`), `was` (its state before, as in `status`) and
        `host` (where it may still run, or null).

    Raises:
        InputError: there is no such run, or it has begun to publish, or has published.
        RetryableError: its process has not ended within a minute, or the lock was held for a
            quarter of an hour.
    """
    # under the lock nobody publishes: a run that is stopped has not begun to
    with _to_abandon(spec, lake, run_id) as (ledger, steps):
        require_not_begun(spec.pipeline, ledger.state(), run_id)
        was, process = state_of(steps), None
        driver = None if is_of_later_version(steps[-1]) else steps[-1].driver
        if was in {"running", "dropped"}:
            process = _process_of(steps)
        _abandon(ledger, run_id, reason=reason, requested_by=requested_by, message="cancelled")
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
    if process is not None:
        _wait_for(process, f"{spec.pipeline} run {run_id}")
        ledger.store.drop_staging(run_id)  # what it has staged since
    return {
        "pipeline": spec.pipeline,
        "run_id": run_id,
        "status": "dropped",
        "was": was,
        "host": driver.host if was == "unknown" and driver is not None else None,
    }


def drop_prepared(ledger: Ledger, run_ids: Iterable[str], message: str) -> None:
    """Abandon the runs of some that wait to be published, before their staging is removed.

    The caller holds the lock, and `message` says what removes the staging.
    """
    runs = ledger.state().runs
    for run_id in run_ids:
        if run_id in runs and state_of(runs[run_id]) == "prepared":
            _abandon(ledger, run_id, message=message)


@contextmanager
def _to_abandon(
    spec: PipelineSpec, lake: Lake, run_id: str
) -> Iterator[tuple[Ledger, Sequence[Entry]]]:
    """Hold the pipeline's lock; yields its ledger, and the steps of a run that may be abandoned.

    Raises:
        InputError: see `_require_unpublished`; a run that cannot be abandoned waits for no lock.
    """
    ledger = Ledger(lake.pipeline(spec.pipeline))
    _require_unpublished(spec, ledger, run_id)
    with storage_errors(ledger.store.root), ledger.store.lock():
        yield ledger, _require_unpublished(spec, ledger, run_id)


def _abandon(
    ledger: Ledger,
    run_id: str,
    *,
    reason: str | None = None,
    requested_by: str | None = None,
    message: str | None = None,
) -> Mapping[str, int]:
    """Abandon a run; the caller holds the lock.

    Returns:
        The versions that its tables were restored to, also if it had been dropped before.
    """
    state = ledger.state()
    steps, unfinished = state.runs[run_id], state.unfinished
    dropped = next((step for step in steps if step.step == "dropped"), None)
    if dropped is not None:
        ledger.store.drop_staging(run_id)
        return dropped.versions or {}
    why = {"reason": reason, "requested_by": requested_by, "message": message}
    if unfinished is None or unfinished.run_id != run_id:
        return take_back(ledger, _dropping(steps[-1], **why))
    asked = unfinished.drop
    if asked is None:
        asked = _dropping(steps[-1], versions=unfinished.begun.versions, **why)
        ledger.append(asked, datetime.now(UTC))
    return take_back(ledger, asked)


def take_back(ledger: Ledger, asked: Entry) -> Mapping[str, int]:
    """Restore the tables and remove the staging of a run, as its step `dropping` says.

    Args:
        ledger: the pipeline's ledger.
        asked: that step, with the versions to restore.

    Returns:
        These versions.

    Raises:
        InputError: such a version is no longer available.
    """
    store, versions = ledger.store, asked.versions or {}
    for name, version in versions.items():
        try:
            store.restore(name, version, f"{asked.run_id}/dropped")
        except DeltaError as error:
            raise _cannot_go_back(store, name, asked.run_id, error) from error
    store.drop_staging(asked.run_id)
    message = asked.message
    if versions:
        message = "back to: " + ", ".join(f"{name} {number}" for name, number in versions.items())
    ledger.append(replace(asked, step="dropped", message=message), datetime.now(UTC))
    return versions


def _require_unpublished(spec: PipelineSpec, ledger: Ledger, run_id: str) -> Sequence[Entry]:
    """The steps of a run that may be abandoned.

    Raises:
        InputError: there is no such run, it has published or has nothing to take back, or it is
            one of upkeep, an erasure or an acknowledgement.
    """
    steps = ledger.state().steps_of(run_id, ledger.store)
    last, place = steps[-1], f"{spec.pipeline} run {run_id}"
    if last.kind in UPKEEP:
        raise InputError(place, f"a run of {last.kind} cannot be dropped or cancelled")
    if last.step in {"repeated", "already_processed"}:
        raise InputError(place, f"ended as {last.step}", "it has changed nothing to take back")
    for step in steps:
        if step.step == "published":
            raise InputError(
                place,
                "has published",
                f"to restore the state before it: strandline runs revert {spec.pipeline} {run_id} "
                f"--reason TEXT; or {rebuild_by_hand(spec.pipeline, step)}",
            )
    return steps


def require_not_begun(pipeline: str, state: PipelineState, run_id: str) -> None:
    """Refuse a run that has begun to publish.

    Raises:
        InputError: it has begun to publish.
    """
    unfinished = state.unfinished
    if unfinished is None or unfinished.run_id != run_id:
        return
    place = f"{pipeline} run {run_id}"
    drop = f"strandline runs drop {pipeline} {run_id} --reason TEXT"
    if unfinished.drop is not None:
        raise InputError(
            place, "is being dropped", f"{unfinished.end_in_words}, as {drop} does at once"
        )
    raise InputError(
        place, "has begun to publish", f"{unfinished.end_in_words}; to undo it instead: {drop}"
    )


def rebuild_by_hand(pipeline: str, done: Entry) -> str:
    """The way out for a run that cannot be taken back."""
    way_out = "correct the pipeline file or the landing table, then rebuild what it has published: "
    if done.range is None:
        return way_out + f"strandline backfill {pipeline}"
    return way_out + f"strandline backfill {pipeline} {done.range.as_options}"


def _process_of(steps: Sequence[Entry]) -> psutil.Process | None:
    """The process of this host that still drives a run, unless it is this one."""
    last = last_driven(steps)
    process = None if last is None else process_of(last)
    return None if process is None or process.pid == os.getpid() else process


def _wait_for(process: psutil.Process, place: str) -> None:
    try:
        process.wait(_TIMEOUT_S)
    except psutil.TimeoutExpired:
        raise RetryableError(
            place,
            f"is cancelled, and publishes nothing, but process {process.pid} has not ended within "
            f"{_TIMEOUT_S} s",
            "cancel it again, or end that process",
        ) from None


def _cannot_go_back(store: Store, name: str, run_id: str, error: Exception) -> InputError:
    return InputError(
        f"{store.pipeline}: {name}",
        f"cannot go back to before run {run_id} ({str(error).splitlines()[0]})",
        "bring the table's folder back from a copy; or remove the pipeline's folder but for its "
        "_reports, and backfill all of it",
    )


def _dropping(run: Entry, **more: Any) -> Entry:
    """The step `dropping` of a run, with the reason in `more`, without the results of the run."""
    return Entry(
        run_id=run.run_id,
        attempt=run.attempt,
        step="dropping",
        kind=run.kind,
        range=run.range,
        horizon_ms=run.horizon_ms,
        spec_fingerprint=run.spec_fingerprint,
        timeline_fingerprint=run.timeline_fingerprint,
        landing_version=run.landing_version,
        landing_id=run.landing_id,
        **more,
    )
