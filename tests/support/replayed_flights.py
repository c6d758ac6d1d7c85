"""What the reference says of the flights of 2013."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable
from lakes import ms

from strandline.model.intervals import datetime_of
from strandline.reference.answer import Replay
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.spec import PipelineSpec


def replayed_flights(spec: PipelineSpec, lake: Path, horizon_ms: int) -> Replay:
    """What the reference says of the flights that have landed before a horizon."""
    key = list(spec.source.key)
    columns = [*{"departed_at", "landed_at", "origin", *key}]
    landing = DeltaTable(str(lake / "landing" / "flights")).to_pyarrow_dataset()
    before = pc.field("landed_at") < datetime_of(horizon_ms)
    rows = landing.to_table(columns, filter=before & pc.field("departed_at").is_valid())
    flights = [
        Record(
            ms(row["landed_at"]),
            ms(row["departed_at"]),
            str(number),
            row["origin"],
            tuple(row[name] for name in key),
        )
        for number, row in enumerate(rows.to_pylist())
    ]
    return replay(spec, flights, start_ms=spec.source.start, horizon_ms=horizon_ms)
