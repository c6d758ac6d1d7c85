"""The result of a scenario by the record-by-record reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from strandline.conformance.answer import (
    Answer,
    AnyAnswer,
    FiringRow,
    LateRow,
    OpenRow,
    PairRow,
    PairsAnswer,
    StatusRow,
    ThenAnswer,
    ThenFiring,
    ThenLate,
    ThenOpen,
    WatermarkRow,
    WindowRow,
)
from strandline.conformance.scenario import ChainedScenario, Scenario
from strandline.model.windows import GLOBAL_WINDOW
from strandline.reference.answer import (
    Emission,
    Firing,
    LateRecord,
    Origin,
    Pane,
    Replay,
    StatusChange,
)
from strandline.reference.chained import replay_chained
from strandline.reference.joins import PairReplay, replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.spec.join import SIDES, IntervalJoinSpec, WindowJoinSpec
from strandline.spec.pipeline import PipelineSpec


def answer_by_reference(scenario: Scenario) -> AnyAnswer:
    """Replay the scenario, record by record.

    Raises:
        TypeError: its pipeline reads the results of another one, and has no records of its own.
    """
    spec = scenario.spec
    how: dict[str, Any] = {
        "start_ms": scenario.start_ms,
        "horizon_ms": scenario.horizon_ms,
        "end_of_input": scenario.end_of_input,
    }
    if isinstance(spec, IntervalJoinSpec):
        return _of_pairs(replay_interval_join(spec, scenario.records, **how))
    if isinstance(spec, WindowJoinSpec):
        content = _records_of_both if spec.join.window is None else _pairs_of
        return _of_windows(
            replay_windows_of_two(spec, scenario.records, **how), content, _records_of_both
        )
    if not isinstance(spec, PipelineSpec):
        msg = f"{spec.pipeline} has no records of its own"
        raise TypeError(msg)
    replayed = replay(spec, scenario.records, **how)
    answer = _of_windows(replayed)
    if isinstance(scenario, ChainedScenario):
        return answer.model_copy(update={"then": _then(scenario, replayed)})
    return answer


_Content = Callable[[Pane], dict[str, Any]]
"""Gives the fields of a window's row (`WindowRow`): its key, bounds, and records or pairs."""


def _records_of(pane: Pane) -> dict[str, Any]:
    is_global = pane.window == GLOBAL_WINDOW
    return {
        "key": pane.key[0],
        "start": None if is_global else pane.window.start_ms,
        "end": None if is_global else pane.window.end_ms,
        "count": len(pane.members),
        "sum": sum(record.payload["value"] for record in pane.members),
        "ids": _ids(pane.members),
    }


def _records_of_both(pane: Pane) -> dict[str, Any]:
    sides = {
        name: _ids(record for record in pane.members if record.input == name) for name in SIDES
    }
    return _records_of(pane) | sides


def _pairs_of(pane: Pane) -> dict[str, Any]:
    both = _records_of_both(pane)
    del both["sum"]
    return both | {"count": len(both["left"]) * len(both["right"])}


def _of_windows(
    replayed: Replay, content: _Content = _records_of, open_content: _Content = _records_of
) -> Answer:
    return Answer(
        firings=[FiringRow(**content(fired), **_firing(fired)) for fired in replayed.firings],
        late=[_late(refused) for refused in replayed.late],
        no_window=[_id(refused.record) for refused in replayed.no_window],
        final=[WindowRow(**content(pane)) for pane in replayed.final],
        open_at_end=[
            OpenRow(**open_content(pane), end_passed=pane.end_passed)
            for pane in replayed.open_at_end
        ],
        final_watermark=replayed.final_watermark_ms,
        watermarks=[_watermark(emission) for emission in replayed.watermarks],
        valve_status=[_status(change) for change in replayed.valve_status],
    )


def _of_pairs(replayed: PairReplay) -> PairsAnswer:
    return PairsAnswer(
        pairs=[
            PairRow(
                left=_id(pair.left),
                right=_id(pair.right),
                ts=pair.ts_ms,
                watermark=pair.watermark_ms,
                arrival_ms=pair.origin.at_ms,
                after_record_id=_after(pair.origin),
            )
            for pair in replayed.pairs
        ],
        late=[_late(refused) for refused in replayed.late],
        buffered={name: _ids(records) for name, records in replayed.kept.items()},
        final_watermark=replayed.final_watermark_ms,
        watermarks=[_watermark(emission) for emission in replayed.watermarks],
        input_watermarks=[_watermark(one, name) for name, one in replayed.input_watermarks],
        valve_status=[_status(change, name) for name, change in replayed.input_status],
    )


def _then(scenario: ChainedScenario, replayed: Replay) -> ThenAnswer:
    same_key = bool(scenario.then.source.key)

    def result(firing: Firing, record: Record) -> Record:
        value = sum(member.payload["value"] for member in firing.members)
        key = firing.key if same_key else ("",)
        return replace(record, key=key, payload={"id": firing.seq, "value": value})

    then = replay_chained(scenario.then, replayed, result)

    def content(pane: Pane) -> dict[str, Any]:
        return _records_of(pane) | {"seqs": _ids(pane.members)}

    return ThenAnswer(
        firings=[ThenFiring(**content(fired), **_firing(fired)) for fired in then.firings],
        late=[ThenLate(seq=_id(late.record), watermark=late.watermark_ms) for late in then.late],
        open_at_end=[
            ThenOpen(**content(pane), end_passed=pane.end_passed) for pane in then.open_at_end
        ],
    )


def _firing(firing: Firing) -> dict[str, Any]:
    return {
        "watermark": firing.watermark_ms,
        "arrival_ms": firing.origin.at_ms,
        "after_record_id": _after(firing.origin),
        "cause": firing.origin.cause.value,
        "timer": firing.timer_ms,
        "seq": firing.seq,
    }


def _late(late: LateRecord) -> LateRow:
    of_input = {"input": late.record.input} if late.record.input else {}
    return LateRow(id=_id(late.record), watermark=late.watermark_ms, **of_input)


def _watermark(emission: Emission, name: str | None = None) -> WatermarkRow:
    return WatermarkRow(
        at_arrival_ms=emission.origin.at_ms,
        after_record_id=_after(emission.origin),
        cause=emission.origin.cause.value,
        watermark=emission.watermark_ms,
        input=name,
    )


def _status(change: StatusChange, name: str | None = None) -> StatusRow:
    return StatusRow(
        at_arrival_ms=change.origin.at_ms,
        after_record_id=_after(change.origin),
        cause=change.origin.cause.value,
        status=change.status,
        input=name,
    )


def _ids(records: Iterable[Record]) -> list[int]:
    return sorted(_id(record) for record in records)


def _id(record: Record) -> int:
    return int(record.payload["id"])


def _after(origin: Origin) -> int | None:
    return None if origin.after_record is None else _id(origin.after_record)
