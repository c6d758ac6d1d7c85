"""The views of Airflow's page, as plain values: the page itself loads no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from strandline.lake.store.days import Days
from strandline.lake.store.lake import Lake
from strandline.pipeline.views.calendar import calendar_page
from strandline.pipeline.views.incomplete import Cause, incomplete_in
from strandline.pipeline.views.runs import run_of, runs_of
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.slot import (
    Rows,
    channels_passed,
    malformed_and_late,
    refused_at,
    results_of,
    runs_into,
    slot_at,
)
from strandline.pipeline.views.slots import Slot, slots_of
from strandline.pipeline.views.status import status_of
from strandline.spec import PipelineSpec
from strandline.visible import visible

_MOST_RUNS = 20
"""The number of shown runs of a slot."""
PER_PAGE = 100
"""The number of slots on a page."""
_LONGEST = 200
"""The largest number of characters of a shown value."""
Asked = Mapping[str, Any]


def answer(view: str, spec: PipelineSpec, lake: Lake, asked: Asked, now_ms: int) -> Any:
    """A view of a pipeline.

    Args:
        view: `status`, `runs`, `run`, `calendar`, `day`, `incomplete` or `slot`.
        spec: the pipeline.
        lake: where its tables lie.
        asked: the parameters of the view.
        now_ms: the current time.

    Raises:
        InputError: there is no such thing in it, or it has not run.
    """
    if view == "status":
        return status_of(spec, lake, now_ms=now_ms)
    if view == "runs":
        every = runs_of(spec, lake)
        return [one for one in every if one["run_id"].rpartition("-")[0] == asked["shared"]]
    if view == "run":
        return run_of(spec, lake, asked["run_id"])
    return _OF_SLOTS[view](Shown.of(spec, lake), asked)


def _calendar(shown: Shown, asked: Asked) -> dict[str, Any]:
    return calendar_page(shown, _day(asked.get("until")))


def _one_day(shown: Shown, asked: Asked) -> dict[str, Any]:
    day, skip = date.fromisoformat(asked["day"]), (asked["page"] - 1) * PER_PAGE
    found = slots_of(shown, Days(day, day))
    slots = sorted(found, key=lambda slot: (slot.start_ms, slot.end_ms))
    return {
        "slots": len(slots),
        "pages": max(-(-len(slots) // PER_PAGE), 1),
        "listed": [
            _slot(slot) | {"why": _why(shown.causes.why(slot))}
            for slot in slots[skip : skip + PER_PAGE]
        ],
        "quarantine": _by_reason(malformed_and_late(shown.store, day)),
    }


def _incomplete(shown: Shown, asked: Asked) -> dict[str, Any]:
    since, until = _day(asked.get("since")), _day(asked.get("until"))
    return incomplete_in(shown, since, until, limit=PER_PAGE, skip=(asked["page"] - 1) * PER_PAGE)


def _one_slot(shown: Shown, asked: Asked) -> dict[str, Any]:
    slot, causes = slot_at(shown, asked["start_ms"], asked["end_ms"]), shown.causes
    fires_ms, closes_ms = causes.fires_at_ms(slot), causes.closes_at_ms(slot)
    passed = channels_passed(shown, fires_ms, closes_ms, slot.fired_at_ms)
    channels, many = passed or ([], 0)
    watermark, runs = shown.watermark, runs_into(shown, slot)
    return {
        "slot": _slot(slot),
        "why": _why(causes.why(slot)),
        "fires_ms": fires_ms,
        "closes_ms": closes_ms,
        "channels": channels,
        "channels_in_all": many,
        "watermark": None if watermark is None else str(watermark),
        "held_by": None if watermark is None else watermark.held_by,
        "results": _rows(results_of(shown, slot)),
        "quarantine": _by_reason(refused_at(shown, slot)),
        "runs": [
            {
                "run_id": step.run_id,
                "kind": step.kind,
                "ended": _text(step.written_at),
                "requested_by": step.requested_by,
                "reason": step.reason,
                "reverted_by": shown.state.reverted_by.get(step.run_id),
            }
            for step in runs[:_MOST_RUNS]
        ],
        "runs_in_all": len(runs),
    }


_OF_SLOTS: Mapping[str, Callable[[Shown, Asked], dict[str, Any]]] = {
    "calendar": _calendar,
    "day": _one_day,
    "incomplete": _incomplete,
    "slot": _one_slot,
}


def _slot(slot: Slot) -> dict[str, Any]:
    derived = {"share": slot.share, "accepted": slot.accepted, "refused": slot.refused}
    return asdict(slot) | derived


def _why(causes: Sequence[Cause]) -> list[dict[str, str]]:
    return [asdict(cause) for cause in causes]


def _by_reason(found: Mapping[str, Rows]) -> dict[str, Any]:
    return {reason: _rows(rows) for reason, rows in found.items()}


def _rows(found: Rows) -> dict[str, Any]:
    values = [[_value(value) for value in row] for row in found.rows]
    numbers = [
        any(map(_is_number, column)) and all(one is None or _is_number(one) for one in column)
        for column in zip(*found.rows, strict=True)
    ]
    return {
        "columns": list(found.columns),
        "numbers": numbers or [False] * len(found.columns),
        "values": values,
        "total": found.total,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _value(value: Any) -> str | None:
    """A value of the data as text, shortened if it is long."""
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    at = str(_text(value)).replace("T", " ") if isinstance(value, date) else None
    text = visible(str(value) if at is None else at)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _text(at: date | None) -> str | None:
    """A date or instant in ISO-8601; an instant without its fraction if that is zero."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        return at.isoformat()
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds").removesuffix(".000")


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
