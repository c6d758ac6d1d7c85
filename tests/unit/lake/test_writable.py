"""Whether the tables of a pipeline may be written, before a run has its first step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_disks import a_small_disk, read_only

from strandline.errors import InputError
from strandline.lake.store.lake import Lake


@pytest.mark.parametrize("refused", ["windows", "runs/_delta_log", "_staging"])
def test_a_folder_that_may_not_be_written_is_named_before_anything_is(
    tmp_path, monkeypatch, refused
):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    store.require_writable()  # nothing exists yet
    for name in ("windows/_delta_log", "runs/_delta_log", "_staging"):
        Path(store.root, name).mkdir(parents=True)
    store.require_writable()
    folder = Path(store.root, refused)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    with pytest.raises(InputError, match=f"{folder}: cannot be written \\(Permission denied\\)"):
        store.require_writable()


def test_a_read_only_disk_is_called_so(tmp_path):
    with a_small_disk(tmp_path / "disk") as disk:
        store = Lake.at(str(disk)).pipeline("meter")
        Path(store.root, "windows", "_delta_log").mkdir(parents=True)
        with read_only(disk), pytest.raises(InputError, match=r"\(Read-only file system\)"):
            store.require_writable()
