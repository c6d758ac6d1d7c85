"""Whether the tables of a pipeline may be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from errno import EACCES, EROFS
from pathlib import Path

from strandline.errors import not_writable
from strandline.lake.store.store import RESULTS, Store


def require_writable(store: Store) -> None:
    """Check that the folders of existing tables on this machine may be written.

    Folders of their partitions are not looked at.

    Raises:
        InputError: one may not; a run would end in the middle of its publishing.
    """
    if store.lake.folder is None:
        return
    for folder in _folders(store):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            code = EROFS if is_read_only else EACCES
            raise not_writable(str(folder), OSError(code, os.strerror(code)))


def _folders(store: Store) -> Iterator[Path]:
    yield Path(store.root, "_staging")
    for name in RESULTS:
        yield from (Path(store.uri(name)), Path(store.uri(name), "_delta_log"))
