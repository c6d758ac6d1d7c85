"""What `runs revert` refuses by the ledger alone, and what it makes the pipeline remember."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from lakes import a_spec, instant
from no_session import spark_of

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.lake.upkeep.leftovers import spent_steps
from strandline.model.intervals import TimeRange
from strandline.pipeline.manage.revert import Reverted, require_revertible
from strandline.pipeline.rebuild.listed_gaps import first_accepted_before

if TYPE_CHECKING:
    from strandline.pipeline.request.context import Context

SPEC = a_spec()
REBUILD = r"strandline backfill meter --start 2024-03-02T00:00:00Z --end 2024-03-03T00:00:00Z"


def published(run_id: str, start: str, end: str, position: int, **more: object) -> list[Entry]:
    within = TimeRange(instant(start), instant(end))
    known = {"horizon_ms": instant(end), "frontier_ms": instant(end), "versions": {"windows": 1}}
    begun = Entry(run_id, 1, "publishing", "advance", within, position=position, **(known | more))
    return [
        replace(begun, publish=ToPublish(key=("device",), parts=("windows",))),
        replace(begun, step="published", position=position + 1),
    ]


NIGHTS = [*published("first", "1", "2", 1), *published("second", "2", "3", 3)]


def of(entries: list[Entry]) -> PipelineState:
    return PipelineState.of(entries)


def revertible(entries: list[Entry], run_id: str) -> Reverted:
    return require_revertible(Lake.at("lake").pipeline("meter"), of(entries), run_id)


def test_the_last_run_of_a_range_is_taken_back_with_what_stood_before_it():
    nights = [*NIGHTS, *published("elsewhere", "3", "4", 5)]
    nights[3] = replace(nights[3], settled=[date(2024, 3, 2)], closed=True)
    reverted = revertible(nights, "second")
    first = reverted.first_step(spark_of(), SPEC, "a mistake", "ann")
    assert (first.kind, first.range) == ("revert", nights[3].range)
    assert first.frontier_ms == instant("2")
    assert of(nights).frontier_after(first, None) == instant("2")
    assert first.reopened  # what it had closed is open again
    assert reverted.days_to_recompute == [date(2024, 3, 2)]


def test_the_first_run_of_all_leaves_no_frontier():
    reverted = revertible(NIGHTS[:2], "first")
    first = reverted.first_step(spark_of(), SPEC, "a mistake", None)
    assert of(NIGHTS[:2]).frontier_after(first, None) is None


def test_a_run_under_later_ones_is_refused_with_their_names():
    later = [*published("third", "2 12:00", "3", 5), *published("fourth", "2", "3", 7)]
    with pytest.raises(InputError, match=rf"since then: third, fourth; revert the last.*{REBUILD}"):
        revertible([*NIGHTS, *later], "second")


def test_a_run_is_refused_where_another_has_published_among_the_gaps_that_it_had_listed():
    listed = published("second", "2", "3", 3, touched_until_ms=instant("5"))
    among_them = published("elsewhere", "3", "4", 5)
    with pytest.raises(InputError, match="since then: elsewhere"):
        revertible([*NIGHTS[:2], *listed, *among_them], "second")


def test_a_run_that_has_replaced_all_is_refused_with_where_the_old_rows_are_read():
    anew = published("anew", "1", "4", 5, recreated=True)
    with pytest.raises(InputError, match=r"--recreate\).*--as-of-ledger 4;.*--recreate --reason"):
        revertible([*NIGHTS, *anew], "anew")


def test_a_run_that_has_accepted_a_loss_is_refused():
    with pytest.raises(InputError, match=rf"accepted a loss.*{REBUILD}"):
        revertible(published("loss", "2", "3", 1, accepted_loss="gone"), "loss")


def test_a_run_that_has_reopened_what_was_closed_is_refused():
    closed = published("closing", "2", "3", 1, closed=True)
    reopened = published("reopening", "2", "3", 3, reopened=True)
    with pytest.raises(InputError, match=rf"--close had closed before; .*{REBUILD} --close"):
        revertible([*closed, *reopened], "reopening")


CANCEL = r"has not published .*strandline runs cancel meter first"
DROP = r"has begun to publish; the next one finishes .*strandline runs drop meter first --reason"
NEITHER = r"has not published .*strandline runs list meter shows"
UNPUBLISHED = {
    CANCEL: ["started", "observed", "audited", "prepared", "dropping"],
    DROP: ["publishing", "publishing failed", "rejected publishing", "prepared publishing"],
    NEITHER: ["failed", "rejected", "dropped", "repeated", "already_processed"],
}


@pytest.mark.parametrize(
    ("steps", "said"), [(steps, said) for said, of_it in UNPUBLISHED.items() for steps in of_it]
)
def test_for_a_run_that_has_not_published_it_proposes_what_works_in_its_state(steps, said):
    run = [
        replace(NIGHTS[0], step=step, position=number)
        for number, step in enumerate(["started", *steps.split()], 1)
    ]
    with pytest.raises(InputError, match=said):
        revertible(run, "first")


def test_a_run_that_is_not_there_is_not_reverted():
    with pytest.raises(InputError, match=r"no such run.*strandline runs list meter"):
        revertible(NIGHTS, "thrid")


def back(entries: list[Entry], run_id: str) -> list[Entry]:
    """A ledger once a run of it is taken back, by one of the same id after a minus."""
    first = revertible(entries, run_id).first_step(spark_of(), SPEC, "x", None)
    begun = replace(first, run_id=f"-{run_id}", position=entries[-1].position + 1)
    begun = replace(begun, step="publishing", versions={"windows": 1})
    done = replace(begun, step="published", position=begun.position + 1)
    return [*entries, begun, replace(done, frontier_ms=of(entries).frontier_after(done, None))]


def night(run_id: str, end: str, position: int, start: str = "1", **more: object) -> list[Entry]:
    """A scheduled run up to a midnight."""
    return published(run_id, start, end, position, completes_ms=instant(end), **more)


THREE = [*night("a", "2", 1), *night("b", "3", 3), *night("c", "4", 5)]


def test_one_run_after_the_other_is_taken_back_and_what_stands_counts():
    two = back(THREE, "c")
    one = back(two, "b")
    for ledger, runs, last in ((THREE, "abc", "4"), (two, "ab", "3"), (one, "a", "2")):
        assert [entry.run_id for entry in of(ledger).in_force] == [*runs]
        assert of(ledger).frontier_ms == of(ledger).largest_horizon() == instant(last)
    none = of(back(one, "a"))
    assert (none.in_force, none.frontier_ms, none.largest_horizon()) == ([], None, None)


def test_what_is_taken_back_twice_is_named_and_refused():
    with pytest.raises(InputError, match=r"c: was reverted by run -c; .*runs revert meter -c"):
        revertible(back(THREE, "c"), "c")


def test_a_revert_that_is_taken_back_brings_back_how_far_all_was():
    again = of(back(back(THREE, "c"), "-c"))
    assert again.frontier_ms == again.largest_horizon() == instant("4")
    assert [entry.run_id for entry in again.in_force] == ["a", "b", "c"]


def test_what_stands_beside_a_run_that_was_taken_back_is_no_further_than_that_had_come():
    """The run since began where the one that is gone had ended, in a range of its own."""
    nights = [*night("a", "2", 1), *night("b", "4", 3, "3"), *night("c", "6", 5, "5")]
    without_b = back(nights, "b")
    assert of(without_b).frontier_ms == instant("2")
    assert of([*without_b, *night("d", "6", 9, "3")]).frontier_ms == instant("6")


def test_of_a_range_that_two_runs_have_published_both_are_taken_back():
    """Each revert is of the run that it names, and not of the revert before it."""
    twice = [*published("a", "1", "3", 1), *published("b", "1", "3", 3)]
    assert of(back(back(twice, "b"), "a")).in_force == []


def test_what_a_run_had_closed_is_open_once_it_is_taken_back():
    closed = published("closing", "2", "3", 1, closed=True)
    reverted = back(closed, "closing")
    assert [of(ledger).closures != [] for ledger in (closed, reverted)] == [True, False]


def test_the_first_record_that_a_run_had_accepted_is_unknown_again_once_it_is_taken_back():
    """Where gaps begin goes by what stands."""
    rules = {"spec_fingerprint": SPEC.spec_fingerprint}
    nights = [
        *published("a", "1", "2", 1, first_accepted_ms=instant("1"), **rules),
        *published("b", "1", "3", 3, first_accepted_ms=instant("1") - 1, **rules),
    ]
    ctx = cast("Context", SimpleNamespace(spec=SPEC))
    assert first_accepted_before(ctx, of(nights)) == instant("1") - 1
    assert first_accepted_before(ctx, of(back(nights, "b"))) == instant("1")


def test_after_the_ledgers_retention_it_says_that_the_ledger_no_longer_keeps_what_stood_before():
    long_ago = datetime(2024, 3, 4, tzinfo=UTC)
    written = [replace(entry, written_at=long_ago) for entry in NIGHTS]
    spent = spent_steps(of(written), long_ago + timedelta(days=400))
    left = [entry for entry in written if entry.position not in spent]
    assert "first" in {entry.run_id for entry in left}
    with pytest.raises(
        InputError, match="the ledger no longer keeps the versions before it"
    ) as told:
        revertible(left, "first")
    assert "strandline backfill meter --start 2024-03-01" in told.value.way_out


def test_what_is_older_than_an_erasure_is_rebuilt_and_upkeep_itself_stays():
    """Nobody is sent to revert the erasure first."""
    erasing, erased = (
        Entry("erase-5", 1, step, "erase", position=position, versions={"windows": 2})
        for position, step in ((5, "erasing"), (6, "erased"))
    )
    with pytest.raises(InputError, match=f"older than an erasure.*{REBUILD}") as caught:
        revertible([*NIGHTS, erasing, erased], "second")
    assert "revert the last of these" not in str(caught.value)
    with pytest.raises(InputError, match="a run of erase cannot be reverted"):
        revertible([*NIGHTS, erasing, erased], "erase-5")
