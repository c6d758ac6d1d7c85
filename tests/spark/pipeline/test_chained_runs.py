"""A pipeline of days over the results of one of hours, run after run, as the reference tells it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from chained import HOURS, Chain, assert_told, found, told
from deltalake import DeltaTable
from lakes import a_record, a_spec, a_week, instant, land, of_one
from replayed import assert_books_balance

from strandline.errors import InputError
from strandline.lake.landing.changed_results import ranges_changed
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import TimeRange
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.views.deep import books_of_all
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.status import status_of

if TYPE_CHECKING:
    from pathlib import Path

    from strandline.lake.ledger.entry import Entry

pytestmark = pytest.mark.spark

ROWS = a_week(days=4)
SIX_HOURS: dict[str, Any] = {"window": {"tumbling": "6h", "offset": "15m"}}
SLIDING: dict[str, Any] = {"window": {"sliding": "12h", "every": "6h", "offset": "15m"}}
FIRING_BEFORE_THEIR_END: dict[str, dict[str, Any]] = {
    "early": {"trigger": {"continuous": "1h", "purging": True}, "firings": True},
    "counted": {"trigger": {"count": 2}, "firings": True},
}


@pytest.fixture(scope="module")
def until4(spark, tmp_path_factory) -> tuple[Path, Outcome]:
    """A lake where hours are published up to the fourth, and days: what their run has said."""
    folder = tmp_path_factory.mktemp("until4")
    chain = Chain(spark, folder, **SIX_HOURS)
    land(folder, ROWS)
    with pytest.raises(InputError, match="meter: has published nothing yet"):
        chain.days.advance("4")
    chain.hours.advance("4")
    with pytest.raises(InputError, match="published up to 2024-03-04"):
        chain.days.backfill("1", "3", as_of="5")
    return folder, chain.days.advance("9")  # it goes no further than the hours have come


@pytest.fixture
def chain(spark, until4, tmp_path) -> Chain:
    """The same, to change."""
    shutil.copytree(until4[0], tmp_path, dirs_exist_ok=True)
    return Chain(spark, tmp_path, **SIX_HOURS)


@pytest.mark.story
def test_hours_add_up_as_the_reference_tells_them(chain, until4):
    _, outcome = until4
    assert outcome.horizon_ms == instant("4")
    assert any("source.pipeline has not published all" in note for note in outcome.notes)
    assert_told(chain, ROWS, "4")
    assert chain.days.rows("quarantine")
    assert still_to_rebuild(chain) == []


def test_gaps_that_a_rebuild_of_changed_results_lists_are_shown_once(spark, tmp_path):
    """A dry run had shown the gaps between the new first result and the old one twice."""
    chain = Chain(spark, tmp_path, **SIX_HOURS)
    times = ("4 10:00, 4 09:00", "4 20:00", "5 10:00, 5 09:00", "5 20:00")
    rows = [row for source in "ab" for row in of_one(*times, first=1, source=source)]
    land(tmp_path, rows)
    for line in (chain.hours, chain.days):
        line.advance("6")
    land(tmp_path, [a_record("4 00:01", "2 02:00"), *rows])
    chain.hours.advance("7")
    steps = len(chain.days.ledger)
    shown = chain.days.advance("7", dry_run=True)
    chain.days.advance("7")
    published = [e for e in chain.days.ledger[steps:] if e.step == "published"]
    assert [one.diff for one in (*shown.rebuilt_first, shown)] == [e.diff for e in published]
    assert any(one.gaps_around is not None for one in shown.rebuilt_first)


def test_hours_add_up_run_after_run_also_where_an_old_day_has_grown(chain, tmp_path):
    # days have come, and an old one has landed again with one row more
    more = [*a_week(days=5), a_record("2 12:00", "2 11:50", amount=999, device="d2", position=-1)]
    land(tmp_path, more)
    steps = len(chain.days.ledger)
    chain.hours.advance("6")
    assert "results of meter of 2024-03-02 to " in state_of_days(chain)
    closed = TimeRange(instant("2 00:15"), instant("3 18:15"))  # of the dates that have changed
    assert still_to_rebuild(chain) == [closed]
    shown = chain.days.advance("6", dry_run=True)
    first = "a run first rebuilds 2024-03-02T00:15:00Z to 2024-03-03T18:15:00Z, as shown first"
    assert [first in note for note in of_results(shown)] == [True]
    outcome = chain.days.advance("6")
    (done,) = of_results(outcome)
    assert_told(chain, more, "6")
    published = [e for e in chain.days.ledger[steps:] if e.step == "published"]
    assert [entry.kind for entry in published] == ["backfill", "advance"]
    assert outcome.changed_first == [published[0].run_id]
    assert published[0].range == closed
    assert published[0].run_id in done
    # each change is shown once, where the run makes it
    assert [one.diff for one in (*shown.rebuilt_first, shown)] == [e.diff for e in published]
    assert still_to_rebuild(chain) == []
    assert state_of_days(chain) == "OK"
    # whoever takes the last run back has the rebuild of these results still; not if that goes, too
    back = replace(published[1], kind="revert", position=10**6, completes_ms=None)
    taken_back = [*chain.days.ledger, back]
    assert still_to_rebuild(chain, taken_back) == []
    back = replace(back, position=back.position + 1, reverts=published[0].run_id)
    assert still_to_rebuild(chain, [*taken_back, back]) == [closed]


def of_results(outcome: Outcome) -> list[str]:
    """What a run says of the results that have changed."""
    return [note for note in outcome.notes if note.startswith("results of meter have changed")]


def test_days_stand_as_what_has_landed_for_the_hours_goes_by_retention(chain, tmp_path):
    for line in (chain.hours, chain.days):
        line.advance("5")
    landed = DeltaTable(str(tmp_path / "landing/meter"))
    landed.delete("arrived_on < '2024-03-03'")
    day5 = [row for row in a_week(days=5) if row["arrived_on"].day == 5]
    land(tmp_path, day5, mode="append")
    chain.hours.advance("6")
    before = len(chain.days.ledger)
    seen = chain.days.advance("6")
    assert (seen.to_recompute, seen.missing) == ([], [])
    published = [step for step in chain.days.ledger[before:] if step.step == "published"]
    assert min(step.touched.start_ms for step in published) > instant("3 00:00")
    assert_told(chain, [*ROWS, *day5], "6")


def test_results_that_change_under_closed_windows_are_rebuilt_as_these_were_closed(chain, tmp_path):
    chain.days.backfill("2 00:15", "4 00:15", close=True)
    assert {row["state"] for row in chain.days.rows("windows")} == {"closed"}
    changed = a_record("2 12:00", "2 11:50", amount=999, device="d2", position=-1)
    land(tmp_path, [*a_week(days=5), changed])
    chain.hours.advance("6")
    before = len(chain.days.ledger)
    chain.days.advance("6")
    steps = chain.days.ledger[before:]
    assert [e.kind for e in steps if e.step == "published"] == ["backfill", "advance"]
    assert not any(entry.reopened for entry in steps)
    whole = TimeRange(instant("2 00:15"), instant("4 00:15"))
    closures = PipelineState.of(chain.days.ledger).closures_in(whole)
    assert [closure.windows for closure in closures] == [whole]
    assert still_to_rebuild(chain) == []


def by_range(
    within: dict[str, list[Any]], others: dict[str, list[Any]], days: TimeRange
) -> dict[str, list[Any]]:
    """The rows of each table, those that start in a range of one answer and the rest of another."""
    return {
        name: sorted(
            [row for row in within[name] if row[0][0] in days]
            + [row for row in others[name] if row[0][0] not in days]
        )
        for name in within
    }


OTHER_RULES: dict[str, tuple[dict[str, Any], set[str]]] = {
    # a result that comes too late for one sliding window is in time for the next
    "sliding": (SLIDING, {"windows", "completeness"}),
    "early": (
        SIX_HOURS | FIRING_BEFORE_THEIR_END["early"],
        {"windows", "completeness", "quarantine", "firings"},
    ),
}
"""Windows, and the tables that differ where a range of them goes by other rules."""


def test_a_range_by_other_rules_stands_and_its_changed_results_go_by_these_rules(spark, tmp_path):
    """Results of it have fired again, others have come, of other keys: none is for the file."""
    strict = {"allowed_lateness": "45m"}
    decided = TimeRange(instant("2 00:15"), instant("5 00:15"))
    lines = {
        name: [Chain(spark, tmp_path, pipeline=name, **windows, **rules) for rules in ({}, strict)]
        for name, (windows, _) in OTHER_RULES.items()
    }
    (hours, *_) = (chain.hours for chain, _ in lines.values())
    land(tmp_path, a_week(days=5))
    hours.advance("6")
    for _, by_hand in lines.values():
        by_hand.days.backfill("2 00:15", "5 00:15", overrides=strict, reason="slow days")

    def came(arrived: str, happened: str, device: str, position: int) -> dict[str, Any]:
        return a_record(arrived, happened, device=device, amount=999, position=position)

    late = [
        came("2 13:10", "2 11:50", "d2", -1),
        came("2 13:11", "2 11:50", "d9", -2),
        came("2 13:40", "2 11:50", "d2", -3),
        came("4 13:10", "3 22:30", "d8", -4),
        came("2 02:10", "2 00:50", "d7", -5),
        came("2 01:25", "2 00:10", "d7", -6),
        came("5 01:25", "5 00:10", "d7", -7),
        came("5 03:25", "5 02:10", "d7", -8),
    ]
    more = [*a_week(days=5), *late]
    land(tmp_path, more)
    hours.advance("6")
    for name, (chain, by_hand) in lines.items():
        shown = chain.days.advance("6", dry_run=True) if name == "early" else None
        before = len(chain.days.ledger)
        notes = chain.days.advance("6", accept_loss="none is missing").notes
        by_the_file = told(chain, more, "6")
        expected = by_range(told(by_hand, more, "6"), by_the_file, decided)
        differ = {table for table, rows in expected.items() if rows != by_the_file[table]}
        assert differ == OTHER_RULES[name][1], name
        for table, rows in found(chain).items():
            assert rows == expected[table], (name, table)
        assert any("are recomputed by these rules where" in note for note in notes)
        assert any("stay as run" in note and "(overridden: keep)" in note for note in notes)
        published = [step for step in chain.days.ledger[before:] if step.step == "published"]
        assert [step.overrides for step in published if step.range == decided] == [strict]
        if shown is not None:  # the dry run has shown just that
            assert any("as shown first" in note for note in of_results(shown))
            first = [(one.range, one.diff) for one in (*shown.rebuilt_first, shown)]
            assert first == [(step.range, step.diff) for step in published]
            assert all(one.preview["days"] for one in shown.rebuilt_first if one.changed)
        state = PipelineState.of(chain.days.ledger)
        assert [(one.windows, one.overrides) for one in state.overridden] == [(decided, strict)]
        assert_books_balance(chain.days)
        store = chain.days.lake.pipeline(name)
        books = books_of_all(ReadPipeline(chain.days.spec, store, state))
        assert [book.statement for book in books if not book.balanced] == []
        # what has changed once is not rebuilt again
        assert chain.to_rebuild("6") == []


def landing_of(chain: Chain) -> ResultsLanding:
    """The results that the days read."""
    days = chain.days
    landing = open_landing(days.spark, days.lake, days.spec)
    assert isinstance(landing, ResultsLanding)
    return landing


def still_to_rebuild(chain: Chain, ledger: list[Entry] | None = None) -> list[TimeRange]:
    """The closed ranges of the days whose results have changed since, by their ledger."""
    landing, state = landing_of(chain), PipelineState.of(ledger or chain.days.ledger)
    return ranges_changed(landing.log, landing.spec, state)


def state_of_days(chain: Chain) -> str:
    return str(status_of(chain.days.spec, chain.days.lake)["state"])


def test_hours_that_are_taken_back_take_back_what_the_days_made_of_them(spark, tmp_path):
    """Days stand for no more than hours do; once these go on, so do the days."""
    chain, rows = Chain(spark, tmp_path), a_week(days=3)
    land(tmp_path, rows)
    chain.hours.advance("3")
    hours = chain.hours.advance("4")
    chain.days.advance("4")
    assert state_of_days(chain) == "OK"
    revert_run(chain.hours.spec, chain.hours.lake, hours.run_id, spark, reason="a mistake")
    assert "up to 2024-03-03T00:00:00Z now: a run of meter was reverted" in state_of_days(chain)
    assert "changed" in str(status_of(chain.days.spec, chain.days.lake)["findings"])
    done = chain.days.advance("4")
    assert state_of_days(chain) == "OK"
    assert (done.horizon_ms, done.frontier_ms) == (instant("3"), instant("3"))
    (note,) = (it for it in done.notes if "withdrawn" in it)
    assert "used results of source.pipeline up to 2024-03-04T00:00:00Z" in note
    assert_told(chain, rows, "3")
    again = chain.days.advance("4")
    assert not again.changed  # as often as it is asked for
    assert not any("withdrawn" in it for it in again.notes)  # they are, by now
    edited = chain.then.over(HOURS.model_copy(update={"allowed_lateness": 0}))
    (waits,) = status_of(edited, chain.days.lake)["findings"]
    assert (waits["name"], waits["severity"]) == ("upstream", "info")
    assert waits["sentence"].startswith("every run waits: meter has not run yet by the present")

    chain.hours.advance("4")
    assert chain.days.advance("4").frontier_ms == instant("4")
    assert_told(chain, rows, "4")


def test_over_hours_without_a_midnight_days_have_no_result_and_run_none_the_less(spark, tmp_path):
    hours, no_limit = a_spec(firings=True, watermark__idleness="2h"), {"max_removed_share": 1.0}
    chain = Chain(spark, tmp_path, hours, quality=no_limit)
    land(tmp_path, a_week(days=2))
    first = chain.hours.advance("3")
    chain.days.advance("3")
    assert chain.days.rows("windows")
    revert_run(chain.hours.spec, chain.hours.lake, first.run_id, spark, reason="a mistake")
    done = chain.days.advance("3")
    assert (done.status, done.frontier_ms, chain.days.rows("windows")) == ("published", None, [])
    assert "so there are no results to count: run strandline advance for that" in done.notes[0]
    assert any("which has them up to no midnight now" in note for note in done.notes)


def test_days_fire_early_or_by_the_order_of_hours_run_after_run(spark, tmp_path):
    rows, window = a_week(days=3), {"tumbling": "6h", "offset": "15m"}
    land(tmp_path, rows)
    early, counted = (
        Chain(spark, tmp_path, pipeline=name, window=window, **fires)
        for name, fires in FIRING_BEFORE_THEIR_END.items()
    )
    for day, chains in (("2", [early]), ("4", [early, counted])):
        early.hours.advance(day)
        for chain in chains:
            chain.days.advance(day)
            assert_told(chain, rows, day)
    for chain in (early, counted):
        assert len(chain.days.rows("firings")) > len(chain.days.rows("windows"))
