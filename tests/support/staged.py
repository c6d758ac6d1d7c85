"""Parts of a run's staging, from rows of a test."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from strandline.lake.publish.staging import Part, Staging
from strandline.lake.store.store import Store


def staged(store: Store, rows: pa.Table, run_id: str = "run", name: str = "rows") -> Part:
    """Rows as a part of a run; what is staged without the engine needs none."""
    return Staging(cast("Any", None), store, run_id).put(name, [rows])
