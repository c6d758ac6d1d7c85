"""Leftovers of runs that are not needed: dead staging, old reports, and steps of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs

from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.in_force import with_missing_days
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.reads import files_below
from strandline.lake.store.store import Store
from strandline.lake.upkeep.upkeep import size_of

_STAGING, _REPORTS = "_staging", "_reports"
_PAGES_THAT_STAY = {"report.html", "index.html"}
"""Pages that each report overwrites, and so are not removed."""


def dead_staging(store: Store, state: PipelineState, before: datetime) -> dict[str, Any]:
    """The staging of runs without a step since an instant.

    The staging of an unfinished publication is never among it, since it is needed to finish.

    Returns:
        `runs`: the runs' names; `files` and `bytes`: their totals.
    """
    dead = dict(_dead(store, state, before))
    return {"runs": [*dead], **size_of(file.size for files in dead.values() for file in files)}


def old_reports(store: Store, before: datetime) -> dict[str, int]:
    """The `files` and `bytes` of audit results and their pages from before an instant."""
    return size_of(file.size for file in _reports(store, before))


def drop_reports(store: Store, before: datetime) -> None:
    """Remove the files of `old_reports`, and the folders that become empty."""
    files = store.files()
    for file in _reports(store, before):
        with suppress(FileNotFoundError):
            files.delete_file(file.path)
        for folder in list(PurePosixPath(file.path).parents)[:4]:  # table, run, time
            if folder.name == _REPORTS or files.get_file_info(fs.FileSelector(str(folder))):
                break
            files.delete_dir(str(folder))


def whatever_is_left(store: Store) -> dict[str, Any]:
    """All staging, and all reports and audit results, of any age.

    Returns:
        `staging`: the runs' names; `reports`: the number of files.
    """
    staged = {PurePosixPath(one.path).parts[1] for one in files_below(store.files(), _STAGING)}
    return {"staging": sorted(staged), "reports": len(files_below(store.files(), _REPORTS))}


def drop_whatever_is_left(store: Store) -> None:
    """Remove all staging, and all reports and audit results, of any age."""
    for folder in (_STAGING, _REPORTS):
        with suppress(OSError):
            store.files().delete_dir(folder)


def _dead(
    store: Store, state: PipelineState, before: datetime
) -> Iterator[tuple[str, list[fs.FileInfo]]]:
    """The runs with dead staging, each with its files."""
    found = store.files().get_file_info(fs.FileSelector(_STAGING, allow_not_found=True))
    folders = (one for one in found if one.type == fs.FileType.Directory)
    for folder in sorted(folders, key=lambda one: one.path):
        run_id = PurePosixPath(folder.path).name
        files = files_below(store.files(), f"{_STAGING}/{run_id}")
        step_times = [step.written_at for step in state.runs.get(run_id, ())]
        times = [*step_times, *(file.mtime for file in files or [folder])]
        last = max((at for at in times if at is not None), default=before)
        if last < before and (state.unfinished is None or state.unfinished.run_id != run_id):
            yield run_id, files


def _reports(store: Store, before: datetime) -> list[fs.FileInfo]:
    return [
        file
        for file in files_below(store.files(), _REPORTS)
        if file.extension in {"json", "html"}
        and file.base_name not in _PAGES_THAT_STAY
        and file.mtime < before
    ]


_STEPS_THAT_STAY = ("published", "erasing", "erased", "acknowledged")
"""Kinds of steps that always stay: later runs depend on them, or they prove what a person did."""
_WROTE_NOTHING = ("repeated", "already_processed")
"""Steps of runs that have written nothing under their id, which may be given again."""


def spent_steps(state: PipelineState, before: datetime) -> list[int]:
    """The positions of the removable steps of runs that ended before an instant.

    Steps of publications stay, and all steps that hold state of the pipeline: missing days, days to
    recompute, the start of the clock, the layout of tables, an unfinished publication, up to when
    the windows of overridden ranges are final (a revert may give a range back), and that upkeep has
    removed rows. The last step of each run stays too: the id of a run is not given again, and what
    waits to be published, or goes on elsewhere, is known.
    """
    kept = {entry.run_id for entry in _remembered(state)}
    overridden = {run.run_id for run in state.published if run.overrides}
    ends = (steps[-1] for steps in state.runs.values() if steps[-1].kind not in UPKEEP)
    last = {end.position for end in ends if end.step not in _WROTE_NOTHING}
    return [
        entry.position
        for entry in state.steps
        if entry.step not in _STEPS_THAT_STAY
        and entry.run_id not in kept
        and not (entry.step == "publishing" and entry.run_id in overridden)
        and entry.position not in last
        and (ended := state.runs[entry.run_id][-1].written_at) is not None
        and ended < before
    ]


def _remembered(state: PipelineState) -> list[Entry]:
    """The steps that hold state for later runs."""
    newest_first = state.steps[::-1]
    found = [
        next(with_missing_days(state.steps), None),
        next((e for e in state.steps if e.clock_start_ms is not None), None),
        next((e for e in newest_first if e.layout or e.publish), None),
        next((e for e in newest_first if e.step == "maintained" and e.diff), None),
        None if state.unfinished is None else state.unfinished.begun,
    ]
    days = {*state.days_to_recompute}
    notes = [entry for entry in state.steps if days & {*(entry.owed or ())}]
    return [*filter(None, found), *state.whole[-1:], *state.steps[-1:], *notes]
