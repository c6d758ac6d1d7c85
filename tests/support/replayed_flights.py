"""What the reference says of the flights of 2013."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable
from lakes import ms

from strandline.model.intervals import datetime_of
from strandline.reference import Record, Replay, replay
from strandline.spec import PipelineSpec


def replayed_flights(spec: PipelineSpec, lake: Path, horizon_ms: int) -> Replay:
    """What the reference says of the flights that have landed before a horizon."""
    key = list(spec.source.key)
    columns = [*{"departed_at", "landed_at", "origin", *key}]
    landed = DeltaTable(str(lake / "landing" / "flights"))
    until = ("arrival_date", "<=", datetime_of(horizon_ms).date())
    rows = landed.to_pyarrow_table(columns=columns, filters=[until])
    flights = [
        Record(
            ms(row["landed_at"]),
            ms(row["departed_at"]),
            str(number),
            row["origin"],
            tuple(row[name] for name in key),
        )
        for number, row in enumerate(rows.to_pylist())
        if row["landed_at"] and row["departed_at"] and ms(row["landed_at"]) < horizon_ms
    ]
    return replay(spec, flights, start_ms=spec.source.start, horizon_ms=horizon_ms)
