"""What runs have left in a pipeline's folder that nobody asks for any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strandline.lake.state import PipelineState
from strandline.lake.store import Store

_STAY = {"report.html", "index.html"}
"""Pages that are written again under the same name."""


def dead_staging(store: Store, state: PipelineState, before: datetime) -> dict[str, Any]:
    """The staging of runs of which nothing has been heard since an instant.

    Never that of a publish which has begun and not ended: it is finished from there.

    Returns:
        `runs`: their names; `files` and `bytes` of all.
    """
    folders = list(_dead(store, state, before))
    files = [file for folder in folders for file in _files(folder)]
    return {"runs": [folder.name for folder in folders], **_size(files)}


def drop_staging(store: Store, state: PipelineState, before: datetime) -> None:
    """Remove it; elsewhere than in a folder the store's own rules do."""
    for folder in _dead(store, state, before):
        store.drop_staging(folder.name)


def old_reports(store: Store, before: datetime) -> dict[str, int]:
    """Results of audits, and pages made of them, from before an instant: `files` and `bytes`."""
    return _size(_reports(store, before))


def drop_reports(store: Store, before: datetime) -> None:
    """Remove them, and the folders that they leave empty."""
    for file in _reports(store, before):
        file.unlink(missing_ok=True)
        for folder in list(file.parents)[:4]:  # table, run, time
            if folder.name == "_reports" or any(folder.iterdir()):
                break
            folder.rmdir()


def whatever_is_left(store: Store) -> dict[str, Any]:
    """All staging, and all reports and results of audits, of whatever age.

    Returns:
        `staging`: the names of the runs; `reports`: how many files.
    """
    staging, reports = _folder(store, "_staging"), _folder(store, "_reports")
    return {
        "staging": [] if staging is None else sorted(one.name for one in staging.iterdir()),
        "reports": 0 if reports is None else len(_files(reports)),
    }


def drop_whatever_is_left(store: Store) -> None:
    """Remove it."""
    for folder in filter(None, (_folder(store, "_staging"), _folder(store, "_reports"))):
        shutil.rmtree(folder, ignore_errors=True)


def _dead(store: Store, state: PipelineState, before: datetime) -> Iterator[Path]:
    root = _folder(store, "_staging")
    if root is None:
        return
    for folder in sorted(root.iterdir()):
        last = max((_written(file) for file in _files(folder)), default=_written(folder))
        said = (step.written_at for step in state.runs.get(folder.name, ()))
        last = max([last, *(at for at in said if at is not None)])
        if last < before and (state.unfinished is None or state.unfinished.run_id != folder.name):
            yield folder


def _reports(store: Store, before: datetime) -> list[Path]:
    root = _folder(store, "_reports")
    pages = () if root is None else _files(root)
    return [
        file
        for file in pages
        if file.suffix in {".json", ".html"} and file.name not in _STAY and _written(file) < before
    ]


def _folder(store: Store, name: str) -> Path | None:
    folder = store.lake.folder
    found = None if folder is None else folder / store.pipeline / name
    return found if found is not None and found.is_dir() else None


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _size(files: Iterable[Path]) -> dict[str, int]:
    sizes = [file.stat().st_size for file in files]
    return {"files": len(sizes), "bytes": sum(sizes)}
