"""runs drop: abandon a run; what its publish has begun to write is taken back. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from deltalake.exceptions import DeltaError

from strandline.errors import InputError
from strandline.lake.ledger import Entry, Ledger
from strandline.lake.steps import begun_drop, unfinished_publish
from strandline.lake.store import Lake, Store, storage_errors
from strandline.model.intervals import text_of
from strandline.spec import PipelineSpec


def drop_run(
    spec: PipelineSpec, lake: Lake, run_id: str, *, reason: str, requested_by: str | None = None
) -> dict[str, Any]:
    """Abandon a run that has not published, so that the next one goes on as if it had never run.

    A publish that has begun is taken back: its tables return to the versions from before it. Of any
    other run only the staging goes. May be killed at any point: the next run, or the same call,
    goes on. Dropping a run twice is dropping it once.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        run_id: as the ledger names it.
        reason: why; kept in the ledger.
        requested_by: who asks; kept in the ledger.

    Returns:
        `pipeline`, `run_id`, `status` (`dropped`) and `versions`: of the tables that went back.

    Raises:
        InputError: there is no such run, it has published, or an old version cannot be had.
        RetryableError: a live run publishes, and did not end within a quarter of an hour.
    """
    store = lake.pipeline(spec.pipeline)
    ledger = Ledger(store)
    if not any(entry.run_id == run_id for entry in ledger.entries()):
        raise InputError(run_id, "no such run", f"see strandline runs list {spec.pipeline}")
    with storage_errors(store.root), store.lock():
        entries = ledger.entries()
        steps = [entry for entry in entries if entry.run_id == run_id]
        # what a run says once it is dropped is not its last word
        last = next((step for step in steps if step.step == "dropped"), steps[-1])
        _refuse_published(entries, run_id, spec.pipeline)
        begun = unfinished_publish(entries)
        asked = replace(last, reason=reason, requested_by=requested_by)
        if begun is None or begun.run_id != run_id:
            store.drop_staging(run_id)
            if last.step != "dropped":
                _note(ledger, step_of(asked, "dropped"))
            return _told(spec, run_id, last.versions if last.step == "dropped" else None)
        if begun_drop(entries, begun) is None:
            _note(ledger, step_of(asked, "dropping", versions=_versions_before(store, begun)))
        return _told(spec, run_id, finish_drop(store, begun))


def finish_drop(store: Store, begun: Entry) -> Mapping[str, int] | None:
    """Finish the drop of a publish, if one has begun; call it under the lock.

    Args:
        store: the pipeline's tables.
        begun: the `publishing` step of the run.

    Returns:
        The versions that the tables went back to; None: nobody has asked for a drop.

    Raises:
        InputError: such a version cannot be had any more.
    """
    ledger = Ledger(store)
    asked = begun_drop(ledger.entries(), begun)
    if asked is None:
        return None
    versions = asked.versions or {}
    for name, version in versions.items():
        try:
            store.restore(name, version, f"{begun.run_id}/dropped")
        except DeltaError as error:
            raise _cannot_go_back(store, name, begun, str(error).splitlines()[0]) from error
    store.drop_staging(begun.run_id)
    went_back = ", ".join(f"{name} {version}" for name, version in versions.items())
    _note(ledger, step_of(asked, "dropped", versions=versions, message=f"back to: {went_back}"))
    return versions


def _refuse_published(entries: list[Entry], run_id: str, pipeline: str) -> None:
    for entry in entries:
        if entry.run_id == run_id and entry.step == "published":
            within = entry.range
            start, end = (
                ("START", "END")
                if within is None
                else (text_of(within.start_ms), text_of(within.end_ms))
            )
            raise InputError(
                run_id,
                "has published, and is not to be dropped",
                "mend the pipeline file or the landing table, then rebuild what it has published: "
                f"strandline backfill {pipeline} --start {start} --end {end}",
            )


def _versions_before(store: Store, begun: Entry) -> dict[str, int]:
    """The versions from before a publish.

    A ledger of before these were recorded names none. Then they are the last versions from before
    the step was written: after it, under the lock, only this publish has written these tables.
    """
    if begun.versions is not None:
        return dict(begun.versions)
    found = {}
    for name in (begun.publish or {}).get("parts", []):
        version = None
        if begun.written_at is not None:
            version = store.version_before(name, begun.written_at)
        if version is None:
            raise _cannot_go_back(store, name, begun, "its log does not reach back that far")
        found[name] = version
    return found


def _cannot_go_back(store: Store, name: str, begun: Entry, problem: str) -> InputError:
    return InputError(
        f"{store.pipeline}: {name}",
        f"cannot go back to before run {begun.run_id} ({problem})",
        "bring the table's folder back from a copy; or remove the pipeline's folder but for its "
        "_reports, and backfill all of it",
    )


def step_of(run: Entry, step: str, **more: Any) -> Entry:
    """A step that says which run it is of, why and who asks; nothing of what it has computed."""
    return Entry(
        run_id=run.run_id,
        attempt=run.attempt,
        step=step,
        kind=run.kind,
        range=run.range,
        horizon_ms=run.horizon_ms,
        spec_fingerprint=run.spec_fingerprint,
        timeline_fingerprint=run.timeline_fingerprint,
        landing_version=run.landing_version,
        landing_id=run.landing_id,
        reason=run.reason,
        requested_by=run.requested_by,
        **more,
    )


def _note(ledger: Ledger, entry: Entry) -> None:
    ledger.append(entry, datetime.now(UTC))


def _told(spec: PipelineSpec, run_id: str, versions: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "pipeline": spec.pipeline,
        "run_id": run_id,
        "status": "dropped",
        "versions": dict(versions or {}),
    }
