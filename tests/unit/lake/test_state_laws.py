"""The state of a pipeline: the same in whatever pieces its ledger is folded; and each fact of it.

Ledgers are drawn; what each fact is, the tests say by its definition, day by day. No JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise

import pyarrow as pa
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.lake.ledger.entry import Entry, entries_of, row_of
from strandline.lake.ledger.publications import earlier_of
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.model.intervals import DAY_MS, TimeRange

DAYS = range(8)
RUNS = [f"r-{number}" for number in range(5)]
STEPS = [
    *("started", "owed", "observed", "audited", "prepared", "rejected", "failed"),
    *("publishing", "dropping", "dropped", "published", "published", "published"),
    *("maintained", "erased"),
]
FACTS = [
    *("days_to_recompute", "taken_back", "in_force", "frontier_ms", "closures", "overridden"),
    *("versions", "position", "clock_start_ms", "missing_days", "timeline_rules"),
]
ARRIVAL_DAYS = st.lists(st.integers(1, 4).map(lambda day: date(2024, 3, day)), max_size=3)
MIDNIGHTS = st.none() | st.integers(0, 8).map(lambda day: day * DAY_MS)


def a_range(edges: tuple[int, int]) -> TimeRange:
    start, end = sorted(edges)
    return TimeRange(start * DAY_MS, (end + 1) * DAY_MS)


# strategies of a step, made once: what is made anew for each step is also validated anew
RANGES = st.tuples(st.sampled_from(DAYS), st.sampled_from(DAYS)).map(a_range)
MAYBE_A_RANGE = st.none() | RANGES
MAYBE_DAYS = st.none() | ARRIVAL_DAYS
LENGTHS = st.integers(0, 14)
IDS, NAMES, FINGERPRINTS = (st.sampled_from(values) for values in (RUNS, STEPS, "ab"))
KINDS = st.sampled_from(["advance", "backfill", "advance"])
KINDS_OR_REVERT = st.sampled_from(["advance", "backfill", "revert"])
BOOLEANS = st.booleans()
ONE_IN_TEN = st.integers(0, 9).map(lambda number: number == 0)


@st.composite
def ledgers(draw: st.DrawFn) -> list[Entry]:
    """Steps of a few runs in any order, which no program would write; each with a position."""
    steps: list[Entry] = []
    for position in range(1, draw(LENGTHS) + 1):
        published = [step.run_id for step in steps if step.step == "published"]
        kind = draw(KINDS_OR_REVERT if published else KINDS)
        kept = draw(MAYBE_A_RANGE)
        step = Entry(
            run_id=draw(IDS),
            attempt=1,
            step=draw(NAMES),
            kind=kind,
            range=draw(MAYBE_A_RANGE),
            horizon_ms=draw(MIDNIGHTS),
            closed=draw(BOOLEANS),
            reopened=draw(BOOLEANS),
            frontier_ms=draw(MIDNIGHTS),
            completes_ms=draw(MIDNIGHTS),
            base=draw(st.integers(0, position)),
            owed=draw(MAYBE_DAYS),
            settled=draw(MAYBE_DAYS),
            lost=draw(MAYBE_DAYS),
            versions={"windows": position} if draw(BOOLEANS) else None,
            diff={"windows": {"insert": 1}} if draw(BOOLEANS) else None,
            recreated=draw(ONE_IN_TEN),
            overrides={"bound": f"{position}h"} if draw(BOOLEANS) else None,
            kept=None if kept is None else [(kept.start_ms, kept.end_ms)],
            reverts=draw(st.sampled_from(published)) if kind == "revert" else None,
            timeline_fingerprint=draw(FINGERPRINTS),
            clock_start_ms=draw(MIDNIGHTS),
            position=position,
        )
        steps.append(step)
    return steps


@DEAR
@given(ledgers(), st.lists(st.integers(0, 14), max_size=4))
def test_a_ledger_folded_piece_by_piece_is_the_ledger_folded_whole(steps, cuts):
    one_by_one = in_pieces = PipelineState()
    for step in steps:
        one_by_one = one_by_one.after([step])
    edges = [0, *sorted(min(cut, len(steps)) for cut in cuts), len(steps)]
    for start, end in pairwise(edges):
        in_pieces = in_pieces.after(steps[start:end])
    whole = PipelineState.of(steps)
    for state in (one_by_one, in_pieces):
        assert state == whole
        assert [getattr(state, fact) for fact in FACTS] == [getattr(whole, fact) for fact in FACTS]
    for step in steps:
        before = [other for other in steps if other.position <= step.position]
        assert whole.until(step.position) == PipelineState.of(before)


def a_ledger_that_is_written_and_read_comes_to_the_same(steps: Sequence[Entry]) -> None:
    written = [replace(step, written_at=datetime(2024, 3, 9, tzinfo=UTC)) for step in steps]
    rows = [row_of(one, one.position, one.written_at) for one in written]
    read = entries_of(pa.concat_tables(rows)) if rows else []
    assert read == written
    assert PipelineState.of(read) == PipelineState.of(written)


# ------------------------------------------------------------- each fact, by its definition


def of_these_tables(steps: Sequence[Entry]) -> list[Entry]:
    """What was published since the tables were last recreated."""
    since = max((s.position for s in steps if s.step == "published" and s.recreated), default=0)
    return [s for s in steps if s.step == "published" and s.position >= since]


def days_to_recompute_are_those_noted_last_that_no_run_has_settled_since(
    steps: Sequence[Entry],
) -> None:
    expected = []
    for day in sorted({day for step in steps for day in step.owed or ()}):
        notes = [s for s in steps if s.step == "owed" and day in (s.owed or ())]
        if notes and not any(
            run.position > notes[-1].position
            and (notes[-1].position <= run.base or notes[-1].run_id == run.run_id)
            for run in steps
            if run.step == "published" and day in (run.settled or ())
        ):
            expected.append(day)
    assert PipelineState.of(steps).days_to_recompute == expected


def a_publish_is_unfinished_if_none_began_after_it_and_its_run_did_not_end_it(
    steps: Sequence[Entry],
) -> None:
    begun = [step for step in steps if step.step == "publishing"][-1:]
    since = [s for one in begun for s in steps if s.position > one.position]
    of_run = [step.step for step in since if step.run_id == begun[0].run_id]
    unfinished = PipelineState.of(steps).unfinished
    if not begun or {"published", "dropped"} & {*of_run}:
        assert unfinished is None
    else:
        assert unfinished is not None
        assert unfinished.begun == begun[0]
        assert (unfinished.drop is not None) == ("dropping" in of_run)


def of_each_day_the_last_run_in_force_that_closed_or_reopened_it_decides(
    steps: Sequence[Entry],
) -> None:
    state = PipelineState.of(steps)
    for day in DAYS:
        at = TimeRange(day * DAY_MS, (day + 1) * DAY_MS)
        runs = [
            r
            for r in state.in_force
            if r.range and r.range.overlaps(at) and r.horizon_ms is not None
        ]
        decides = [run for run in runs if run.closed or run.reopened][-1:]
        expected = [run.horizon_ms for run in decides if run.closed]
        assert [closure.at_ms for closure in state.closures_in(at)] == expected


def a_day_is_by_the_rules_of_each_run_in_force_whose_range_no_later_one_recomputed(
    steps: Sequence[Entry],
) -> None:
    state = PipelineState.of(steps)
    for day in DAYS:
        at = TimeRange(day * DAY_MS, (day + 1) * DAY_MS)
        rules: list[Mapping[str, str]] = []
        for run in state.in_force:
            covers = run.range is not None and run.range.overlaps(at)
            if covers and not any(TimeRange(*kept).overlaps(at) for kept in run.kept or ()):
                rules = []
            if covers and run.overrides:
                rules.append(run.overrides)
        assert [one.overrides for one in state.overridden if one.windows.overlaps(at)] == rules


def what_is_in_force_is_published_by_no_revert_and_no_revert_in_force_names_it(
    steps: Sequence[Entry],
) -> None:
    state = PipelineState.of(steps)
    published = of_these_tables(steps)
    assert [*state.published] == published
    taken_back = {pair.run.position for pair in state.taken_back}
    assert [*state.in_force] == [
        run for run in published if run.kind != "revert" and run.position not in taken_back
    ]
    for pair in state.taken_back:
        assert pair.by.kind == "revert"
        assert pair.by.reverts == pair.run.run_id
        assert pair.by.position not in taken_back
    assert len(taken_back) == len(state.taken_back)


LAWS = [
    a_ledger_that_is_written_and_read_comes_to_the_same,
    days_to_recompute_are_those_noted_last_that_no_run_has_settled_since,
    a_publish_is_unfinished_if_none_began_after_it_and_its_run_did_not_end_it,
    of_each_day_the_last_run_in_force_that_closed_or_reopened_it_decides,
    a_day_is_by_the_rules_of_each_run_in_force_whose_range_no_later_one_recomputed,
    what_is_in_force_is_published_by_no_revert_and_no_revert_in_force_names_it,
]
"""Of one ledger: to draw it takes longer than all of them."""


@DEAR
@given(ledgers())
def test_each_fact_is_what_its_definition_says(steps):
    for holds in LAWS:
        holds(steps)


# --------------------------------------------------------------- histories that runs do write


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Published runs as they follow each other: each says the frontier that follows from it."""
    steps: list[Entry] = []
    for position in range(1, draw(st.integers(1, 9)) + 1):
        state = PipelineState.of(steps)
        run = Entry(
            run_id=f"r-{position}",
            attempt=1,
            step="published",
            kind=draw(st.sampled_from(["advance", "backfill"])),
            range=draw(RANGES),
            horizon_ms=draw(st.integers(0, 8)) * DAY_MS,
            completes_ms=draw(MIDNIGHTS),
            diff=draw(st.none() | st.just({"windows": {"insert": 1}})),
            position=position,
        )
        steps.append(replace(run, frontier_ms=state.frontier_after(run, run.completes_ms)))
    return steps


def reverted(steps: Sequence[Entry], run: Entry) -> list[Entry]:
    """The history once a run is taken back."""
    state = PipelineState.of(steps)
    revert = replace(run, run_id=f"-{run.run_id}", kind="revert", reverts=run.run_id)
    revert = replace(revert, position=state.position + 1, completes_ms=None)
    return [*steps, replace(revert, frontier_ms=state.frontier_after(revert, None))]


@DEAR
@given(histories())
def test_the_last_run_taken_back_is_out_of_force_and_once_that_is_taken_back_in_force_again(steps):
    before, after = PipelineState.of(steps[:-1]), PipelineState.of(steps)
    without = reverted(steps, steps[-1])
    again = PipelineState.of(reverted(without, without[-1]))
    frontier_ms = earlier_of(before.frontier_ms, after.frontier_ms)
    assert PipelineState.of(without).frontier_ms == frontier_ms
    assert PipelineState.of(without).in_force == before.in_force
    assert again.frontier_ms == after.frontier_ms
    assert again.in_force == after.in_force


@DEAR
@given(histories(), st.data())
def test_without_an_older_run_the_frontier_is_no_further_than_before_it(steps, data):
    run = data.draw(st.sampled_from(steps))
    before = PipelineState.of(step for step in steps if step.position < run.position).frontier_ms
    without = PipelineState.of(reverted(steps, run)).frontier_ms
    assert without is None or (before is not None and without <= before)
    assert run not in PipelineState.of(reverted(steps, run)).in_force


def test_days_stay_missing_until_the_run_that_accepts_their_loss_has_published():
    day = date(2024, 3, 3)
    run = Entry("r-1", 1, "published", "advance", lost=[day], position=1)
    accepting = Entry("r-2", 1, "staged", "advance", lost=[], accepted_loss="x", position=2)
    steps = [run, accepting]
    for step in ("rejected", "failed", "prepared", "publishing"):
        steps.append(replace(accepting, step=step, position=len(steps) + 1))
        assert PipelineState.of(steps).missing_days == [day]
    assert not PipelineState.of([*steps, replace(accepting, step="published")]).missing_days
    first = replace(accepting, step="rejected", publish=ToPublish(accepted=(day,)))
    assert PipelineState.of([first]).missing_days == [day]
