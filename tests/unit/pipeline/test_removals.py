"""In which runs published windows may go without a question, by request and ledger alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import TimeRange
from strandline.pipeline.audit.verdict import may_shrink
from strandline.pipeline.request.request import Request

WITHIN = TimeRange(10, 20)
BY_HAND = Request("backfill", WITHIN)


def published(horizon_ms: int, within: TimeRange = WITHIN) -> Entry:
    return Entry(f"r-{horizon_ms}", 1, "published", "backfill", range=within, horizon_ms=horizon_ms)


@pytest.mark.parametrize(
    ("horizon_ms", "may"), [(29, True), (30, False), (31, False)], ids=["before", "at", "after"]
)
def test_windows_may_go_as_of_an_earlier_cut_off_than_theirs(horizon_ms, may):
    state = PipelineState.of([published(25), published(30), published(40, TimeRange(20, 30))])
    assert may_shrink(BY_HAND, state, WITHIN, horizon_ms) is may


@pytest.mark.parametrize("asked", ["allow_removals", "reopen", "recreate"])
def test_windows_may_go_where_the_request_says_so(asked):
    state = PipelineState.of([published(30)])
    assert may_shrink(replace(BY_HAND, reason="a mistake", **{asked: True}), state, WITHIN, 30)


def test_before_the_first_run_nothing_is_as_of_an_earlier_cut_off():
    assert not may_shrink(BY_HAND, PipelineState.of([]), WITHIN, 30)
