"""Whether the tables of a pipeline may be written."""

from __future__ import annotations

import os
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
    tables = [Path(store.uri(name), below) for name in RESULTS for below in ("", "_delta_log")]
    for folder in [Path(store.root, "_staging"), *tables]:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            code = EROFS if is_read_only else EACCES
            raise not_writable(str(folder), OSError(code, os.strerror(code)))
