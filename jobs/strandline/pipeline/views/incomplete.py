"""The incomplete windows of a pipeline, and why they are incomplete."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from functools import reduce
from operator import or_
from typing import Any

from strandline.lake.store.days import Days
from strandline.model.intervals import text_or_none
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import SlotsByDay, shown_days
from strandline.pipeline.views.slots import Slot, shares_instants_with, slots_of
from strandline.pipeline.views.why import MEANINGS, Cause


def incomplete_in(
    shown: Shown,
    since: date | None = None,
    until: date | None = None,
    *,
    limit: int,
    skip: int = 0,
) -> dict[str, Any]:
    """The slots of some days that are not complete, the newest first, and why.

    Args:
        shown: the pipeline.
        since: the first of these days; None: the trailing ones, see `shown_days`.
        until: the last of them; None: the last there is.
        limit: the largest number of slots to list, and to hold in memory.
        skip: the number of newest slots to skip.

    Returns:
        `incomplete`: the number of incomplete slots, out of `slots`; `causes`: the number of slots
        by cause; `listed`: each as in `Slot.to_json`, with its `why`; `left_out`: the number of
        older ones that are not listed.

    Raises:
        InputError: the last day is before the first one.
    """
    days = shown_days(shown.spec, shown.store, since, until)
    by_cause, found, rows = Counter[str](), 0, 0

    def counted() -> Iterator[tuple[int, int, Slot, list[Cause]]]:
        nonlocal found, rows
        for slot, why in _incomplete(shown, days):
            found, rows = found + slot.slots, rows + 1
            for cause in why:
                by_cause[cause.name] += slot.slots
            yield slot.start_ms, slot.end_ms, slot, why

    newest = heapq.nlargest(skip + limit, counted(), key=lambda one: one[:2])[skip:]
    watermark = shown.watermark
    return {
        "pipeline": shown.spec.pipeline,
        "lake": shown.store.lake.root,
        "notice": shown.notice,
        "processed_up_to": text_or_none(shown.state.frontier_ms),
        "watermark": None if watermark is None else str(watermark),
        "days": days.named,
        # sessions have no edges that all keys share
        "unit": "slot" if shown.spec.window.merging else "window",
        "slots": SlotsByDay.of(shown.spec, shown.store).on_days(days),
        "incomplete": found,
        "causes": {name: by_cause[name] for name in MEANINGS if by_cause[name]},
        "listed": [
            {**slot.to_json(), "why": [asdict(cause) for cause in why]}
            for _, _, slot, why in newest
        ],
        "left_out": max(rows - skip - len(newest), 0),
    }


def _incomplete(shown: Shown, days: Days) -> Iterator[tuple[Slot, list[Cause]]]:
    touched = [shares_instants_with(within) for within in shown.causes.touched]
    wanted = reduce(or_, touched) if touched else None
    for slot in slots_of(shown, days, wanted, incomplete=True):
        if why := shown.causes.why(slot):
            yield slot, why
