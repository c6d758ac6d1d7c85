"""Acknowledges findings about published data that will not be mended. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.read import tables_shown
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange
from strandline.pipeline.views.audited import findings_of_audits
from strandline.pipeline.views.audited_data import AuditedData
from strandline.pipeline.views.missing_rows import MISSING, acknowledgeable_missing_rows
from strandline.quality.findings.check import Finding
from strandline.spec import PipelineSpec


def acknowledge(
    spec: PipelineSpec,
    lake: Lake,
    names: Sequence[str],
    *,
    reason: str,
    requested_by: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Acknowledge findings about published data: status and report no longer have them.

    They are the findings of audits, and missing rows that no scheduled run waits for. What a later
    run finds is a finding again, except for acknowledged gaps, and for acknowledged days as long as
    rows of them are missing, even more rows. Others, such as a failed run, cannot be acknowledged.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        names: the names of findings; empty: all that stand.
        reason: why they stay as they are; kept in the ledger.
        requested_by: who acknowledges them.
        dry_run: whether to write nothing.

    Returns:
        `pipeline`; `run_id`: the id of the ledger's step, None for a dry run, or without findings;
        `acknowledged`: the findings; `reason`.

    Raises:
        InputError: nothing has run yet, or a name is not one of a finding that stands.
    """
    ledger = Ledger(lake.pipeline(spec.pipeline))
    found: Sequence[Finding] = ()

    def step(state: PipelineState) -> Entry:
        nonlocal found
        store, _ = tables_shown(ledger)
        data = AuditedData(spec, store, state)
        can_be = [*findings_of_audits(data), *acknowledgeable_missing_rows(data)]
        found = _asked(spec.pipeline, can_be, names)
        written = step_about(found, data)
        return replace(written, reason=reason, requested_by=requested_by)

    written = step(ledger.state_after_runs())
    is_written = bool(found) and not dry_run
    if is_written:  # a run may have found something meanwhile
        written = ledger.append_named(step, datetime.now(UTC))
    return {
        "pipeline": spec.pipeline,
        "run_id": written.run_id if is_written else None,
        "acknowledged": [one.to_json() for one in found],
        "reason": reason,
    }


def step_about(found: Sequence[Finding], data: AuditedData) -> Entry:
    """The step of the ledger that acknowledges some findings, without who does so and why."""
    found_by = [one.run_id for one in found if one.name == "gaps" and one.run_id is not None]
    rejected = [run for run in found_by if data.state.runs[run][-1].step == "rejected"]
    gaps = data.ranges_of_gaps(rejected) if found_by else []
    has_missing = any(one.name == MISSING for one in found)
    return Entry(
        run_id=f"acknowledge-{data.state.position + 1}",
        attempt=1,
        step="acknowledged",
        kind="acknowledge",
        range=TimeRange(gaps[0].start_ms, gaps[-1].end_ms) if gaps else None,
        kept=[(one.start_ms, one.end_ms) for one in gaps] or None,
        settled=data.state.missing_days if has_missing else None,
        acknowledged={one.name: one.sentence for one in reversed(found)},
        message=", ".join(dict.fromkeys(one.name for one in found)),
    )


def _asked(pipeline: str, in_force: Sequence[Finding], names: Sequence[str]) -> Sequence[Finding]:
    """The findings of some names; of all names if none is given."""
    known = {one.name for one in in_force}
    for name in names:
        if name not in known:
            there = f"these can: {', '.join(sorted(known))}" if known else "there is none that can"
            raise InputError(
                f"{pipeline} finding {name}",
                "no finding of this name can be acknowledged now",
                f"{there}; what ends any other finding stands beside it in strandline status "
                f"{pipeline}",
            )
    return [one for one in in_force if not names or one.name in names]
