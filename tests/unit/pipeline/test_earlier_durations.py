"""What a run will take, by what those like it took; of an honest ledger only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from strandline.cli.progress import part_of
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.books import Book
from strandline.pipeline.plan.earlier_durations import records_of, seconds_by_part, similar_runs

BEGUN = datetime(2024, 3, 1, tzinfo=UTC)


def a_run(name, records=100, seconds=10.0, *, steps=("observed", "staged"), **more):
    """The steps of a run, the last one `seconds` after the first."""
    content = {"kind": "advance", **more}
    kind = content.pop("kind")
    names = ("started", *steps, "published")
    ends = BEGUN + timedelta(seconds=seconds)
    books = [Book("range", records, {"accepted": records})]
    return [
        Entry(name, 1, step, kind, written_at=BEGUN, **({} if step != "published" else content))
        for step in names[:-1]
    ] + [Entry(name, 1, "published", kind, written_at=ends, books=books, **content)]


def test_runs_over_about_as_many_records_tell_what_the_next_takes():
    ledger = [*a_run("a", 100, 10), *a_run("b", 250, 20.04), *a_run("c", 9_000, 300)]
    assert similar_runs(PipelineState.of(ledger), "advance", 120) == {
        "runs": 2,
        "records": [100, 250],
        "seconds": [10, 20.0],
    }


def test_a_record_of_a_window_and_of_a_new_day_counts_once():
    def books(*totals):
        names = ("arrival day 2024-03-01", "arrival day 2024-03-02", "range", "older windows")
        return [Book(name, of, {}) for name, of in zip(names, totals, strict=True)]

    assert records_of(books(90, 10, 95, 5)) == 100
    assert records_of(books(90, 10, 20, 0)) == 100
    assert records_of(books(0, 0, 20, 1)) == 21
    assert records_of([]) == 0


def test_where_none_was_of_that_size_the_newest_of_the_kind_tell():
    ledger = [*a_run("a", 100, 10), *a_run("c", 9_000, 300)]
    assert similar_runs(PipelineState.of(ledger), "advance", 10**6)["records"] == [100, 9_000]
    assert similar_runs(PipelineState.of(ledger), "backfill", 100) is None
    assert similar_runs(PipelineState.of([]), "advance", 100) is None


def test_only_the_newest_runs_tell():
    ledger = [entry for n in range(9) for entry in a_run(str(n), 100, n)]
    assert similar_runs(PipelineState.of(ledger), "advance", 100) == {
        "runs": 5,
        "records": [100, 100],
        "seconds": [4, 8],
    }


@pytest.mark.parametrize(
    "waited",
    [
        a_run("a", steps=("staged", "prepared")),
        a_run("a", steps=("staged", "rejected")),
        a_run("a", message="finished by run b"),
        a_run("a")[:-1],
        a_run("a")[1:],
    ],
    ids=["for an approval", "for somebody to accept it", "for another run", "for ever", "unknown"],
)
def test_a_run_that_waited_for_somebody_tells_nothing(waited):
    assert similar_runs(PipelineState.of(waited), "advance", 100) is None


def test_a_ledger_that_keeps_no_books_tells_the_seconds():
    (*steps, last) = a_run("a")
    old = [*steps, Entry("a", 1, "published", "advance", written_at=last.written_at)]
    assert similar_runs(PipelineState.of(old), "advance", 100) == {
        "runs": 1,
        "records": [0, 0],
        "seconds": [10, 10],
    }


def test_each_part_of_a_run_has_the_median_seconds_of_the_runs_before():
    def timed(name, *seconds, **more):
        at, steps = BEGUN, ("started", "staged", "audited", "publishing", "published")
        found = [Entry(name, 1, steps[0], "advance", written_at=at)]
        for step, took in zip(steps[1:], seconds, strict=True):
            at += timedelta(seconds=took)
            found.append(Entry(name, 1, step, "advance", written_at=at, **more))
        return found

    ledger = [*timed("a", 10, 1, 2, 3), *timed("b", 14, 1, 2, 3), *timed("c", 60, 1, 2, 9)]
    parts = {"observe and rebuild": 14, "audit": 1, "diff": 2, "publish": 3}
    assert seconds_by_part(PipelineState.of(ledger), "advance") == parts
    assert (
        seconds_by_part(
            PipelineState.of([*ledger, *timed("d", 99, 9, 9, 9, message="late")]), "advance"
        )
        == parts
    )
    assert seconds_by_part(PipelineState.of(ledger), "backfill") == {}


def test_a_step_shows_the_share_of_the_time_that_earlier_runs_took():
    usual = {"observe and rebuild": 14.2, "audit": 0.3, "publish": 134.2}
    observing = part_of("observe", usual, None, 100)
    assert observing is not None
    assert observing.in_words("observe", 107) == (
        "observe and rebuild: 49 % of the 14s in earlier runs"
    )
    rebuilding = part_of("rebuild", usual, observing, 108)
    assert rebuilding == observing  # the time of both is known as one
    auditing = part_of("audit", usual, rebuilding, 113)
    assert auditing is not None
    assert auditing.in_words("audit", 113.5) == "50 % of the 1s in earlier runs"
    publishing = part_of("publish", usual, None, 0)
    assert publishing is not None
    assert publishing.in_words("publish", 1) == "0 % of the 2m 14s in earlier runs"
    assert part_of("start Spark", usual, publishing, 2) is None


def test_a_step_that_takes_longer_than_in_earlier_runs_says_so_and_claims_no_share():
    diffing = part_of("diff", {"diff": 20}, None, 0)
    assert diffing is not None
    assert diffing.share(15) == 0.75
    assert diffing.share(20) is None
    assert diffing.in_words("diff", 19.99) == "99 % of the 20s in earlier runs"
    assert diffing.in_words("diff", 21) == "longer than the 20s in earlier runs"
