"""runs cancel: end a run that has not begun to publish; its process is stopped. No Spark."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psutil

from strandline.errors import InputError, RetryableError
from strandline.lake.ledger import Entry, Ledger
from strandline.lake.steps import unfinished_publish
from strandline.lake.store import Lake, storage_errors
from strandline.pipeline.driver import process_of, state_of
from strandline.pipeline.drop import step_of
from strandline.spec import PipelineSpec

_TIMEOUT_S = 60


def cancel_run(
    spec: PipelineSpec,
    lake: Lake,
    run_id: str,
    *,
    reason: str | None = None,
    requested_by: str | None = None,
) -> dict[str, Any]:
    """End a run that has not begun to publish: it publishes nothing, and its staging goes.

    If it runs on this host, its process is asked to stop. Elsewhere it goes on, until it finds out
    in the ledger when it would publish. Twice is once.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        run_id: as the ledger names it.
        reason: why; kept in the ledger.
        requested_by: who asks; kept in the ledger.

    Returns:
        `pipeline`, `run_id`, `status` (`dropped`), `was` (what had become of it before, as `status`
        says it) and `host`, where it may still run, or null.

    Raises:
        InputError: there is no such run, or it has begun to publish, or has published.
        RetryableError: its process has not ended within a minute, or the lock was held for a
            quarter of an hour.
    """
    store = lake.pipeline(spec.pipeline)
    ledger = Ledger(store)
    # under the lock nobody publishes: whom it stops has not begun to
    with storage_errors(store.root), store.lock():
        entries = ledger.entries()
        steps = [entry for entry in entries if entry.run_id == run_id]
        was = _require_cancellable(spec.pipeline, entries, steps, run_id)
        if was != "dropped":
            asked = replace(steps[-1], reason=reason, requested_by=requested_by)
            ledger.append(step_of(asked, "dropped", message="cancelled"), datetime.now(UTC))
        process = _process_of(steps) if was in {"running", "dropped"} else None
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
    if process is not None:
        _wait_for(process, f"{spec.pipeline} run {run_id}")
    store.drop_staging(run_id)
    return {
        "pipeline": spec.pipeline,
        "run_id": run_id,
        "status": "dropped",
        "was": was,
        "host": steps[-1].host if was == "unknown" else None,
    }


def _require_cancellable(
    pipeline: str, entries: list[Entry], steps: list[Entry], run_id: str
) -> str:
    """What has become of a run that may be cancelled (`state_of`).

    Raises:
        InputError: it may not be.
    """
    if not steps:
        raise InputError(run_id, "no such run", f"see strandline runs list {pipeline}")
    state, place = state_of(steps), f"{pipeline} run {run_id}"
    begun = unfinished_publish(entries)
    if state == "published":
        raise InputError(
            place,
            "has published",
            f"to bring back what stood before: strandline runs revert {pipeline} {run_id} "
            "--reason TEXT",
        )
    if begun is not None and begun.run_id == run_id:
        raise InputError(
            place,
            "has begun to publish",
            "the next run ends that; to take back what it has begun: "
            f"strandline runs drop {pipeline} {run_id} --reason TEXT",
        )
    return state


def _process_of(steps: list[Entry]) -> psutil.Process | None:
    """The process of this host that still drives a run, unless it is this one."""
    by = [step for step in steps if step.host is not None]
    process = process_of(by[-1]) if by else None
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
