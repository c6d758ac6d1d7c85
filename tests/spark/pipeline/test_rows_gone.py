"""Rows that vanish, and ranges that shrink: nothing published goes without a person's word."""

from __future__ import annotations

import pytest
from changes import march, of_days, owed, some_days, take_away, three_days
from killed import Killed
from lakes import Line, a_record, a_spec, at, instant, land, ms
from replayed import assert_books_balance, assert_told_by_replay, of_range

from strandline.errors import AuditFailedError, InputError
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import read_facts
from strandline.pipeline.manage.acknowledge import acknowledge
from strandline.pipeline.publish.abandon import drop_run
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.request.outcome import Outcome
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

SPEC = a_spec()
DAYS = some_days(5)


@pytest.fixture(scope="module")
def until4(begun, spark, tmp_path_factory):
    """Three days have landed and are published, and a fourth has landed."""
    line = begun(three_days, spark, tmp_path_factory.mktemp("until4"))
    # where nothing was published, nothing can go
    assert not [one for one in line.ledger[-1].audit if "removed" in one["expectation"]]
    land(line.folder, of_days(DAYS, 4), mode="append")
    return line


@pytest.fixture(scope="module")
def without_2(until4, tmp_path_factory):
    """The rows of the second day have gone."""
    line = until4.copy(tmp_path_factory.mktemp("without"))
    take_away(line, 2)
    return line


@pytest.fixture(scope="module")
def untouched(until4, tmp_path_factory):
    """The tables of the next scheduled run, where no rows have gone."""
    line = until4.copy(tmp_path_factory.mktemp("untouched"))
    line.advance("5")
    return line.published()


# ------------------------------------------------------------------------------------- rows vanish


def test_a_range_that_needs_rows_that_have_gone_is_refused_with_the_way_out(without_2, tmp_path):
    line = without_2.copy(tmp_path)
    before = line.published()
    with pytest.raises(InputError, match=r"2024-03-02.* are missing .*--accept-loss") as caught:
        line.backfill("2", "3")
    assert caught.value.exit_code == 2
    assert line.ledger[-1].step == "failed"
    assert line.published() == before


def test_a_scheduled_run_leaves_the_windows_of_rows_that_have_gone_and_names_the_days(
    without_2, untouched, tmp_path
):
    line = without_2.copy(tmp_path)
    outcome = line.advance("5")
    assert outcome.missing == ["2024-03-02"]
    assert line.ledger[-1].lost == [march(2)]
    assert any("2024-03-02" in note for note in outcome.notes)
    assert line.published() == untouched  # it reads none of them
    assert_books_balance(line)
    assert_acknowledging_ends_the_warning(line)


def assert_acknowledging_ends_the_warning(line: Line) -> None:
    """It stood for ever: the rows of a day between others, which no run needs."""
    (found,) = (one for one in status_of(line.spec, line.lake)["findings"] if one["name"] == "lost")
    assert found["severity"] == "warning"
    assert "strandline acknowledge meter lost --reason REASON" in found["sentence"]
    acknowledge(line.spec, line.lake, ["lost"], reason="wrong rows")
    names = [one["name"] for one in status_of(line.spec, line.lake)["findings"]]
    assert "lost" not in names


def test_rows_gone_that_open_windows_need_leave_these_as_they_are_until_they_land_again(
    until4, untouched, tmp_path
):
    line, days = until4.copy(tmp_path), (1, 2, 3)
    take_away(line, *days)
    before = line.rows("windows")
    outcome = line.advance("5")
    assert outcome.missing == [f"2024-03-{day:02d}" for day in days]
    assert outcome.frontier_ms == instant("4")  # what is left out is still to come
    start = outcome.range.start_ms
    for row in line.rows("windows"):
        expected = before if ms(row["window_start"]) < start else untouched["windows"]
        assert row in expected
    assert_books_balance(line)

    land(line.folder, of_days(DAYS, *days), mode="append")
    healed = line.advance("5")
    assert (healed.missing, healed.frontier_ms) == ([], instant("5"))
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")


def test_a_day_to_recompute_waits_for_the_rows_that_have_gone_and_each_says_so(until4, tmp_path):
    line = until4.copy(tmp_path)
    take_away(line, 2)
    land(line.folder, [a_record("1 23:00", "1 12:00", position=900)], mode="append")
    for _ in range(2):  # the next scheduled run does not recompute it, either
        notes = line.advance("5").notes
        assert [note for note in notes if note.startswith("2024-03-01 changed")] == [
            "2024-03-01 changed after being observed, or landed late: to recompute once the "
            "missing rows have landed again, or are accepted as lost"
        ]
    assert owed(line) == [1]


def test_to_accept_the_loss_makes_the_tables_say_what_is_left(without_2, tmp_path):
    line = without_2.copy(tmp_path)
    outcome = line.advance("5", accept_loss="gone", allow_removals=True)
    assert outcome.status == "published"
    assert_loss_accepted(line, outcome)


def test_a_loss_that_is_prepared_by_hand_is_accepted_once_that_is_published(without_2, tmp_path):
    line = without_2.copy(tmp_path)
    asked = {"accept_loss": "gone", "allow_removals": True, "prepare": True}
    run = line.backfill("1", "6", as_of="5", **asked)
    assert not [entry for entry in line.ledger if entry.owed]
    publish_prepared(line.spec, line.lake, run.run_id, line.spark)
    assert_loss_accepted(line, run)


def assert_loss_accepted(line: Line, outcome: Outcome) -> None:
    """The ledger and the notes say so, the tables are of what is left, and no day is missing."""
    assert line.ledger[-1].accepted_loss == "gone"
    named = "rows of 2024-03-02 have disappeared from the landing table"
    assert [named in note for note in outcome.notes].count(True) == 1
    assert_told_by_replay(line, of_days(DAYS, 1, 3, 4), "5")
    assert_books_balance(line)
    assert status_of(line.spec, line.lake)["lost"] == []


def test_a_loss_is_accepted_neither_by_a_run_that_is_rejected_nor_by_one_that_is_taken_back(
    without_2, untouched, tmp_path, monkeypatch
):
    line = without_2.copy(tmp_path)
    before = line.versions()
    with pytest.raises(AuditFailedError, match="expect_removed_share_to_be_at_most"):
        line.advance("5", accept_loss="gone")
    assert (line.ledger[-1].step, line.ledger[-1].accepted_loss) == ("rejected", "gone")
    assert status_of(line.spec, line.lake)["lost"] == ["2024-03-02"]
    assert {**line.versions(), "firings": 0} == {**before, "firings": 0}
    assert not [entry for entry in line.ledger if entry.owed]

    def dying(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("strandline.pipeline.publish.publish._published", dying)
    with pytest.raises(Killed):
        line.advance("5", accept_loss="gone", allow_removals=True)
    monkeypatch.undo()
    dead = line.ledger[-1].run_id
    assert [entry.step for entry in line.ledger][-3:] == ["publishing", "owed", "observed"]
    drop_run(SPEC, line.lake, dead, reason="it was a mistake")
    assert line.advance("5").missing == ["2024-03-02"]
    assert line.published() == untouched


def test_one_that_dies_as_it_publishes_is_finished_and_its_loss_is_accepted_again(
    without_2, tmp_path, monkeypatch
):
    line = without_2.copy(tmp_path)

    def dying(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr("strandline.pipeline.run.commit_observed", dying)
    with pytest.raises(Killed):
        line.advance("5", accept_loss="gone", allow_removals=True)
    monkeypatch.undo()
    assert line.ledger[-1].step == "publishing"
    assert line.advance("5", dry_run=True).missing == ["2024-03-02"]
    again = line.advance("5", accept_loss="gone", allow_removals=True)
    assert again.repeats is None
    assert not again.diff["windows"]["delete"]
    assert "2024-03-02" in again.to_recompute
    assert_told_by_replay(line, of_days(DAYS, 1, 3, 4), "5")


def test_retention_and_a_changed_rule_delete_no_published_history(until4, tmp_path):
    line = until4.copy(tmp_path)
    history = of_range(line.rows("windows"), "1", "3")
    slots = of_range(line.rows("completeness"), "1", "3")
    late = [row for row in line.rows("quarantine") if row["arrived_on"] < march(3)]
    assert history
    take_away(line, 1, 2)
    facts = read_facts(TimelineTable.open(line.lake.pipeline("meter")))
    for day, bound in (("5", "25m"), ("6", "20m")):
        line = line.of(a_spec(watermark__bound=bound))
        outcome = line.advance(day)
        assert outcome.missing == ["2024-03-01", "2024-03-02"]
        assert not outcome.diff["windows"]["delete"]
        assert of_range(line.rows("windows"), "1", "3") == history
        assert [
            (row["slot_start"], row["on_time"], row["late"])
            for row in of_range(line.rows("completeness"), "1", "3")
        ] == [(row["slot_start"], row["on_time"], row["late"]) for row in slots]
        assert [row for row in line.rows("quarantine") if row["arrived_on"] < march(3)] == late
        kept = read_facts(TimelineTable.open(line.lake.pipeline("meter")))
        assert {day: kept[day] for day in (march(1), march(2))} == {
            day: facts[day] for day in (march(1), march(2))
        }
    assert_books_balance(line)
    by_rules = status_of(line.spec, line.lake)["rules"]
    assert by_rules[0]["spec_fingerprint"] == SPEC.spec_fingerprint
    assert by_rules[-1]["spec_fingerprint"] == line.spec.spec_fingerprint
    with pytest.raises(InputError, match="--accept-loss"):
        line.backfill("1", "6")


# ---------------------------------------------------------------------------------- a range shrinks

STRICT = a_spec(source__valid="amount < 60")


def test_a_range_that_loses_many_windows_is_a_question_unless_the_pipeline_allows_it(
    until4, tmp_path
):
    line = until4.copy(tmp_path).of(STRICT)
    before = line.rows("windows")
    with pytest.raises(
        AuditFailedError, match=r"expect_removed_share_to_be_at_most: \d+ of \d+ published"
    ) as caught:
        line.backfill("1", "4", as_of="4")
    assert caught.value.exit_code == 3
    assert "--allow-removals" in str(caught.value)
    assert line.rows("windows") == before
    assert line.ledger[-1].step == "rejected"

    preview = line.backfill("1", "4", as_of="4", dry_run=True)
    assert preview.status == "would be rejected"
    assert preview.diff["windows"]["delete"] > 0.2 * len(before)

    lenient = line.of(a_spec(source__valid="amount < 60", quality__max_removed_share=0.9))
    assert lenient.backfill("1", "4", as_of="4").diff == preview.diff
    assert len(line.rows("windows")) < 0.8 * len(before)


def test_a_session_that_reaches_far_behind_its_range_is_not_made_anew_of_what_is_left(
    spark, tmp_path
):
    """The rows that have gone are more than a gap behind it: a chain of records leads there."""
    spec = a_spec(source__channels=["a"], window={"session": "1h"})
    line = Line(spark, tmp_path, spec)
    chain = ["1 23:30", "2 00:20", "2 01:10", "2 02:00"]
    rows = [a_record(when, when, position=place) for place, when in enumerate(chain)]
    rows += [a_record("3 00:05", "2 02:50", position=4), a_record("4 10:00", "4 10:00", position=5)]
    land(tmp_path, rows)
    line.advance("5")
    assert [row["window_end"] for row in line.rows("windows")] == [at("2 03:50")]
    take_away(line, 3)
    with pytest.raises(InputError, match=r"2024-03-03.* are missing .*--accept-loss"):
        line.backfill("1", "2", as_of="5")


def test_sessions_that_merge_are_not_removed(spark, tmp_path):
    spec = a_spec(source__channels=["a"], window={"session": "1h"}, quality__max_removed_share=0.0)
    line = Line(spark, tmp_path, spec)
    rows = [
        a_record("1 10:00", "1 10:00", position=0),
        a_record("1 11:20", "1 11:20", position=1),
        a_record("1 18:00", "1 18:00", position=2),
    ]
    land(tmp_path, rows)
    line.advance("2")
    assert len(line.rows("windows")) == 2
    between = a_record("1 11:25", "1 10:40", position=3)
    land(tmp_path, [between], mode="append")
    outcome = line.advance("2")
    assert outcome.diff["windows"]["delete"]
    assert len(line.rows("windows")) == 1
    assert_told_by_replay(line, [*rows, between], "2")
    assert line.rows("windows")[0]["window_end"] == at("1 12:20")
