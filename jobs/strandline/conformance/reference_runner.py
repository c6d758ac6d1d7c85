"""The record-by-record reference's answer to a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strandline.conformance.answer import (
    Answer,
    FiringRow,
    LateRow,
    OpenRow,
    StatusRow,
    WatermarkRow,
    WindowRow,
)
from strandline.conformance.scenario import Scenario
from strandline.model.windows import TimeWindow
from strandline.reference import Moment, Record, replay


def answer_by_reference(scenario: Scenario) -> Answer:
    """Replay the scenario, record by record."""
    replayed = replay(
        scenario.spec,
        scenario.records,
        start_ms=scenario.start_ms,
        horizon_ms=scenario.horizon_ms,
        end_of_input=scenario.end_of_input,
    )
    return Answer(
        firings=[
            FiringRow(
                **_content(firing.key, firing.window, firing.members),
                watermark=firing.watermark_ms,
                arrival_ms=firing.moment.at_ms,
                after_record_id=_after(firing.moment),
                cause=firing.moment.cause.value,
            )
            for firing in replayed.firings
        ],
        late=[LateRow(id=_id(late.record), watermark=late.watermark_ms) for late in replayed.late],
        no_window=[_id(gone.record) for gone in replayed.no_window],
        final=[
            WindowRow(**_content(pane.key, pane.window, pane.members)) for pane in replayed.final
        ],
        open_at_end=[
            OpenRow(**_content(held.key, held.window, held.members), end_passed=held.end_passed)
            for held in replayed.open_at_end
        ],
        final_watermark=replayed.final_watermark_ms,
        watermarks=[
            WatermarkRow(
                at_arrival_ms=emission.moment.at_ms,
                after_record_id=_after(emission.moment),
                cause=emission.moment.cause.value,
                watermark=emission.watermark_ms,
            )
            for emission in replayed.watermarks
        ],
        valve_status=[
            StatusRow(
                at_arrival_ms=change.moment.at_ms,
                after_record_id=_after(change.moment),
                cause=change.moment.cause.value,
                status=change.status,
            )
            for change in replayed.valve_status
        ],
    )


def _content(key: tuple[Any, ...], window: TimeWindow, members: Sequence[Record]) -> dict[str, Any]:
    return {
        "key": key[0],
        "start": window.start_ms,
        "end": window.end_ms,
        "count": len(members),
        "sum": sum(record.payload["value"] for record in members),
        "ids": sorted(_id(record) for record in members),
    }


def _id(record: Record) -> int:
    return int(record.payload["id"])


def _after(moment: Moment) -> int | None:
    return None if moment.after_record is None else _id(moment.after_record)
