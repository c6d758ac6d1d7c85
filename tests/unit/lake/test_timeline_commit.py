"""Many days are written in parts: whoever dies between two of them loses nothing. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from cells import cell_of_day, observed
from deltalake.exceptions import DeltaError
from killed import Killed
from lakes import a_spec

from strandline.engine.timeline import Observed
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.lake.timeline import commit as timeline_commit
from strandline.lake.timeline.commit import DaysToWrite, commit_days, refresh_facts
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import observed_days, read_facts
from strandline.model.facts import DayFacts
from strandline.spec import PipelineSpec

DAYS = [date(2024, 3, day) for day in (1, 2, 3)]
FACTS = {day: DayFacts(2, f"as of {day}", 1) for day in DAYS}
FOLLOWING = {"source__deduplicate": {"columns": ["position"], "within": "1d of arrival"}}


class Dying(Observed):
    """What a run has observed that is killed as it writes the second part."""

    def tables_of(self, days):
        if days != DAYS[:1]:
            raise Killed
        return super().tables_of(days)


@pytest.fixture(autouse=True)
def _two_records_at_once(monkeypatch):
    monkeypatch.setattr(timeline_commit, "_AT_ONCE", 2)


def write(store: Store, spec: PipelineSpec, *, dies: bool, replaced: bool) -> None:
    cells = observed(*(cell_of_day(day, "a", 2) for day in DAYS))
    fresh = Dying(cells.every) if dies else cells
    days = DaysToWrite(spec, {}, fresh, [], DAYS, {d: replace(FACTS[d], rows=3) for d in DAYS})
    assert days.in_parts() == [[day] for day in DAYS]
    commit_days(store, days, replace=replaced)


def test_a_commit_writes_no_more_days_than_files_may_be_open(monkeypatch):
    monkeypatch.setattr(timeline_commit, "_AT_ONCE", 1_000_000)
    monkeypatch.setattr(timeline_commit, "_DAYS_AT_ONCE", 2)
    cells = observed(*(cell_of_day(day, "a", 2) for day in DAYS))
    days = DaysToWrite(a_spec(), {}, cells, [], DAYS, FACTS)
    assert days.in_parts() == [DAYS[:2], DAYS[2:]]


def test_the_facts_of_very_many_days_are_refreshed_a_part_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline_commit, "_DAYS_AT_ONCE", 2)
    store = Lake.at(str(tmp_path)).pipeline("meter")
    cells = observed(*(cell_of_day(day, "a", 2) for day in DAYS))
    commit_days(store, DaysToWrite(a_spec(), {}, cells, [], DAYS, FACTS), replace=True)
    before, fresh = store.version("timeline"), {d: replace(FACTS[d], rows=4) for d in DAYS}
    refresh_facts(store, fresh)
    assert (read_facts(TimelineTable.open(store)), store.version("timeline")) == (fresh, before + 2)


@pytest.mark.parametrize("follow", [FOLLOWING, {}], ids=["each follows", "each by itself"])
@pytest.mark.parametrize("replaced", [True, False], ids=["other rules", "the same rules"])
def test_a_kill_between_two_parts_leaves_what_had_landed_of_the_other_days(
    tmp_path, follow, replaced
):
    """What the landing table said of a day tells whether its rows have changed since."""
    store = Lake.at(str(tmp_path)).pipeline("meter")
    before, spec = a_spec(**follow), a_spec(**follow, source__valid="amount > 0")
    if not replaced:
        spec = before
    cells = observed(*(cell_of_day(day, "a", 2) for day in DAYS))
    commit_days(store, DaysToWrite(before, {}, cells, [], DAYS, FACTS), replace=True)
    with pytest.raises(DeltaError, match="Killed"):
        write(store, spec, dies=True, replaced=replaced)

    table = TimelineTable.open(store)
    written, *others = DAYS
    assert read_facts(table) == FACTS | {written: replace(FACTS[written], rows=3)}
    # what counts of the others is what was observed of them before, if that still holds
    by_itself = not (replaced or follow)
    expected = {written, *others} if by_itself else {written}
    assert observed_days(table) == {spec.timeline_fingerprint: expected}

    write(store, spec, dies=False, replaced=False)
    table = TimelineTable.open(store)
    assert observed_days(table) == {spec.timeline_fingerprint: {*DAYS}}
    assert read_facts(table) == {day: replace(said, rows=3) for day, said in FACTS.items()}
