"""Streams of which some records are duplicates under a rule, as the model tells them apart."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from engine_under_test import LANDING
from hypothesis import strategies as st

from strandline.model.intervals import DAY_MS
from strandline.reference.records import without_duplicates
from strandline.spec.source import Deduplicate

if TYPE_CHECKING:
    from strategies import Stream

    from strandline.reference.records import Record

RULES = st.builds(
    lambda columns, within_ms: {"columns": columns, "within": f"{within_ms}ms of arrival"},
    st.sampled_from([["k"], ["value"], ["channel", "marker"], ["k", "candidate_ms"]]),
    st.sampled_from([1, 2, 10, 61, 10 * DAY_MS, 2**63 - 1]),
)


def deduplicated(stream: Stream, rule: dict[str, Any]) -> tuple[Stream, list[Record]]:
    """The stream under a rule, with the records that count; and the duplicates, by the model."""
    source = stream.spec.source.model_copy(update={"deduplicate": Deduplicate(**rule)})
    rows = {row["id"]: {n: row.get(n) for n in LANDING.names} for row in stream.rows()}

    def whole_row(record: Record) -> str:
        # a null is no column: docs/decisions/0007
        row = rows[record.payload["id"]].items()
        there = {name: value for name, value in row if value is not None}
        text = json.dumps(there, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    def compared(record: Record) -> tuple:
        return tuple(rows[record.payload["id"]][name] for name in rule["columns"])

    sequenced, by_arrival = stream.spec.source.sequence, stream.spec.arrival_is_event_time
    ordered = [
        replace(
            record,
            record_id=whole_row(record),
            sequence=record.sequence if sequenced else None,
            ts_ms=record.arrival_ms if by_arrival else record.ts_ms,
        )
        for record in stream.records
    ]
    _, repeated = without_duplicates(ordered, compared, within_ms=source.deduplicate.within)
    gone = {record.payload["id"] for record in repeated}
    return (
        replace(
            stream,
            spec=stream.spec.model_copy(update={"source": source}),
            records=tuple(r for r in stream.records if r.payload["id"] not in gone),
        ),
        repeated,
    )
