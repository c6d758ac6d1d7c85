"""Two sources in one timeline: what each of them has done is read back as its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
from cells import cell_of_day, observed
from deltalake import write_deltalake
from joined import JOIN

from strandline.engine.history.inputs import FreshOfTwo, OfInput
from strandline.engine.history.observed import ObservedDay
from strandline.engine.idleness.source import Source
from strandline.engine.idleness.state import Channel, SourceState, StatusChange, UnionState
from strandline.engine.idleness.steps import STEP_COLUMNS, step_rows
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import CellQuery
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.commit import DaysToWrite, commit_days
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import StoredTimeline, read_steps
from strandline.lake.upkeep.upkeep import compact, in_use, scattered_days
from strandline.model.facts import DayFacts
from strandline.model.intervals import DAY_MS, END_OF_INSTANTS_MS, midnight_of
from strandline.spec import parse_spec

SPEC = parse_spec(JOIN, origin="near.yaml")
DAYS = [date(2024, 3, 1), date(2024, 3, 2)]


FRESH = FreshOfTwo(
    observed(*(cell_of_day(day, "left/a", 2) for day in DAYS)),
    observed(cell_of_day(DAYS[0], "right/a", 5), cell_of_day(DAYS[1], "right/b", 7)),
)


def counts(timeline: OfInput) -> list[tuple[str, int]]:
    cells = timeline.cells(CellQuery(DAYS, columns=("channel", "records")))
    return sorted(cells.itertuples(index=False, name=None))


def test_the_cells_of_each_source_are_its_own_in_memory_and_as_they_are_kept(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("near")
    facts = {day: DayFacts(9, "", 1) for day in DAYS}
    axes = {name: Axis.of(side, 0) for name, side in SPEC.sides.items()}
    commit_days(store, DaysToWrite(SPEC, axes, FRESH, [], DAYS, facts), replace=True)
    kept = StoredTimeline(TimelineTable.open(store), SPEC.timeline_fingerprint, END_OF_INSTANTS_MS)
    for both in (FRESH, kept):
        assert counts(OfInput(both, "left")) == [("a", 2), ("a", 2)]
        assert counts(OfInput(both, "right")) == [("a", 5), ("b", 7)]
        assert [*OfInput(both, "right").channel_days["channel"]] == ["a", "b"]
        assert both.day_map["records"].sum() == 16


def test_where_each_source_went_idle_is_known_again_on_a_later_day(tmp_path):
    store, axes = Lake.at(str(tmp_path)).pipeline("near"), {}
    step_days = []
    nothing = pd.DataFrame(columns=[*STEP_COLUMNS])
    for name, side in SPEC.sides.items():
        axes[name] = Axis.of(side, 0)
        for number, day in enumerate(DAYS):
            until_ms, shift = midnight_of(day) + DAY_MS, int(name == "right")
            change = StatusChange(until_ms - 2 + shift, 2**30, idle=not number)
            state = SourceState(until_ms, combined_ms=number + shift, changes=(change,))
            step_days.append(ObservedDay(day, nothing, state, name))
    facts = {day: DayFacts(9, "", 1) for day in DAYS}
    commit_days(store, DaysToWrite(SPEC, axes, FRESH, step_days, DAYS, facts), replace=True)
    table, under = TimelineTable.open(store), SPEC.timeline_fingerprint
    for name, side in SPEC.sides.items():
        own = [one.carried for one in step_days if one.name == name]
        for known in (1, 2):
            steps = read_steps(
                table,
                Source(side, axes[name]),
                before_ms=midnight_of(DAYS[known - 1]) + DAY_MS,
                under=under,
                name=name,
            )
            assert steps.carried == own[known - 1]
            assert [*steps.changes] == [one.changes[0] for one in own[:known]]
            assert len(steps.steps.days) == known


def test_a_day_of_ticks_takes_little_room_in_the_timeline(tmp_path):
    """Each tick of a silent day is a step where two clocks stand behind one valve."""
    store, day, side = Lake.at(str(tmp_path)).pipeline("near"), DAYS[0], SPEC.sides["left"]
    axis, ticks_ms = Axis.of(side, 0), np.arange(midnight_of(day), midnight_of(day) + DAY_MS, 200)
    steps = step_rows(ticks_ms, np.zeros(len(ticks_ms), np.int64), ticks_ms - 5_000)
    silent = ObservedDay(
        day, steps.assign(arrival_date=day), SourceState(int(ticks_ms[-1])), "left"
    )
    written = DaysToWrite(SPEC, {"left": axis}, FRESH, [silent], [day], {day: DayFacts(9, "", 1)})
    commit_days(store, written, replace=True)
    files = [one.stat().st_size for one in tmp_path.glob("near/timeline/**/*.parquet")]
    assert 0 < sum(files) < 1_000_000  # 12 MB, as the numbers are
    source = Source(side, axis)
    table, end_ms = TimelineTable.open(store), midnight_of(day) + DAY_MS
    rule = SPEC.timeline_fingerprint
    kept = read_steps(table, source, before_ms=end_ms, under=rule, name="left")
    assert len(ticks_ms) == 432_000
    assert kept.carried == silent.carried
    # and still does once its files are compacted
    delta = store.table("timeline")
    write_deltalake(delta, delta.to_pyarrow_table(), mode="append", partition_by=["arrival_date"])
    compact(delta, "timeline", scattered_days(delta, "arrival_date"))
    stays = in_use(delta)
    assert stays["files"] == 1
    assert stays["bytes"] < 1_500_000, stays


def test_a_source_that_stands_alone_keeps_no_changes():
    state = SourceState(5, changes=(StatusChange(3, 2**30, idle=True),))
    assert "changes" not in state.to_json()
    assert SourceState.from_json(state.to_json(beside_another=True)) == state


def test_where_two_sources_behind_one_valve_stand_is_kept_with_those_of_each():
    change = (StatusChange(3, 2**30, idle=True),)
    left = SourceState(5, (Channel("a", watermark_ms=2, last_shown_ms=1),), changes=change)
    splits = (None, Channel("right", watermark_ms=3, active=False))
    state = UnionState(5, combined_ms=2, sources=(left, SourceState(5)), splits=splits)
    kept = SourceState.from_json(state.to_json())
    assert kept == replace(state, sources=(left.without_changes, SourceState(5)))
