"""The state that earlier runs have left, without their tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.open_slots import EdgeSlots
from strandline.pipeline.request.request import Request


def remembered_by(state: PipelineState, kind: str = "advance", **known: Any) -> EarlierRuns:
    """The state of earlier runs, of which the tables say what is given, and else nothing."""
    log = SimpleNamespace(known_until_ms=None, horizon_ms=None)
    ctx = SimpleNamespace(landing=SimpleNamespace(log=log))
    found = EarlierRuns(ctx, Request(kind), state, observation=None)
    nothing = {
        "to_recompute": (),
        "_observed_since": set(),
        "rows_may_have_moved": False,
        "last_slot_ms": None,
        "first_open": None,
        "late_slots": lambda before_ms, since_ms: frozenset(),
        "states_in": lambda within: EdgeSlots(),
        "last_end": lambda within: None,
        "has_slots_outside": lambda within: False,
        "landed_before": lambda one: None,
        "whole_within": lambda rules, within, horizon_ms, watermark_ms: None,
    }
    vars(found).update(nothing | known)
    return found
