"""The beginning of a run: its id, and its first step in the ledger."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.model.command import shared_id
from strandline.pipeline.request.request import Request
from strandline.spec import PipelineSpec


def first_step(spec: PipelineSpec, request: Request, step: str, **facts: Any) -> Entry:
    """The first step of a requested run, without its id; `facts` are further fields of `Entry`."""
    return Entry(
        run_id="",
        attempt=0,
        step=step,
        kind=request.kind,
        spec_fingerprint=spec.spec_fingerprint,
        timeline_fingerprint=spec.timeline_fingerprint,
        reason=request.reason,
        requested_by=request.requested_by,
        **facts,
    )


def begin_run(
    ledger: Ledger, step: Entry, run_key: str | None = None, *, dry_run: bool = False
) -> Entry:
    """Write the first step of a new run, and give it an id; of a dry run nothing is written.

    Two drivers that begin at once for the same caller's run get different ids.

    Args:
        ledger: the pipeline's ledger.
        step: the step without an id.
        run_key: the caller's run; None: a new one.
        dry_run: whether the run writes nothing.
    """
    named = partial(as_next_attempt, run_key, step)
    return named(ledger.state()) if dry_run else ledger.append_named(named, datetime.now(UTC))


def as_next_attempt(run_key: str | None, step: Entry, state: PipelineState) -> Entry:
    """The first step of a new run: with its id, and the number of the attempt of the caller's run.

    Args:
        run_key: the caller's run; None: a new one.
        step: its other facts.
        state: the pipeline's state; all attempts share the part of the id before the number.
    """
    shared = shared_id(run_key or uuid.uuid4().hex)
    attempts = [
        int(number)
        for before, _, number in (run_id.rpartition("-") for run_id in state.runs)
        if before == shared
    ]
    attempt = 1 + max(attempts, default=0)
    return replace(step, run_id=f"{shared}-{attempt}", attempt=attempt)
