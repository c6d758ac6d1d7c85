"""Days that land late or change after they were observed: the next scheduled run judges again."""

from __future__ import annotations

import pytest
from changes import land_again, landing_of, of_days, owed, some_days
from killed import Killed
from lakes import Line, a_record, a_spec, instant, land
from replayed import assert_books_balance, assert_told_by_replay, of_range

from strandline.errors import RetryableError
from strandline.pipeline.observe import commit_observation
from strandline.pipeline.request.request import Request
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

SPEC = a_spec()
DAYS = some_days(5)


@pytest.fixture(scope="module")
def until4(spark, tmp_path_factory):
    """Three days have landed and are published; copy it to change it."""
    line = Line(spark, tmp_path_factory.mktemp("until4"), SPEC)
    land(line.folder, of_days(DAYS, 1, 2, 3))
    line.advance("4")
    return line


def more_of(day: int) -> list[dict]:
    """Rows that a day turns out to have had: in order, early in it and for a day before it."""
    return [
        a_record(f"{day} 03:00", f"{day} 02:50", amount=71, position=901),
        a_record(f"{day} 13:00", f"{day} 12:20", "b", amount=72, position=902),
        a_record(f"{day} 21:00", f"{day - 1} 21:10", "b", amount=73, position=903),
    ]


# -------------------------------------------------------------------------- a day behind the others


@pytest.fixture(scope="module")
def one_missing(spark, tmp_path_factory):
    """Days 1 and 3 were published up to 4; then day 2 has landed, and day 4."""
    line = Line(spark, tmp_path_factory.mktemp("missing"), SPEC)
    land(line.folder, of_days(DAYS, 1, 3))
    line.advance("4")
    land(line.folder, of_days(DAYS, 2, 4), mode="append")
    return line


def test_a_day_that_lands_after_its_run_is_judged_by_the_next_one(one_missing, tmp_path):
    line = one_missing.copy(tmp_path)
    outcome = line.advance("5")
    assert outcome.to_recompute == ["2024-03-02"]
    assert outcome.evaluated_since_ms == instant("2")
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")
    assert_books_balance(line)
    assert owed(line) == []


def test_a_day_is_owed_in_the_ledger_before_it_counts(one_missing, tmp_path, monkeypatch):
    line = one_missing.copy(tmp_path)

    def dies(*_, **__):
        raise Killed

    monkeypatch.setattr(commit_observation, "commit_days", dies)
    before = line.versions()["timeline"]
    with pytest.raises(Killed):
        line.advance("5")
    assert owed(line) == [2]
    assert line.versions()["timeline"] == before
    monkeypatch.undo()

    # and a run that dies once it counts leaves it owed: the next one observes nothing
    def until_audited(step: str) -> None:
        if step == "audit":
            raise Killed

    with pytest.raises(Killed):
        line.run(Request("advance", to_ms=instant("5")), until_audited)
    assert owed(line) == [2]
    healed = line.advance("5")
    assert healed.observed_days == []
    assert healed.to_recompute == ["2024-03-02"]
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")
    assert owed(line) == []


def test_a_watermark_that_a_day_to_recompute_has_raised_finds_no_window_open_behind_it(
    spark, tmp_path
):
    """The days of channel b land after the run: what it had held open is built by the next one."""
    line = Line(spark, tmp_path, SPEC)
    rows = of_days(DAYS, 1, 2, 3)
    late = [row for row in rows if row["source"] == "b" and row["arrived_on"].day > 1]
    land(line.folder, [row for row in rows if row not in late])
    line.advance("4")
    land(line.folder, late, mode="append")
    line.backfill("1", "1 06:00")

    told = status_of(line.spec, line.lake)
    assert told["owed"] == ["2024-03-02", "2024-03-03"]
    assert told["open_behind_watermark"] == 0
    assert [one["severity"] for one in told["findings"] if one["name"] == "owed"] == ["warning"]
    assert "critical" not in {one["severity"] for one in told["findings"]}

    line.advance("4")
    assert_told_by_replay(line, rows, "4")
    assert status_of(line.spec, line.lake)["open_behind_watermark"] == 0


# ---------------------------------------------------------------------------------- a day that grew


@pytest.fixture(scope="module")
def grown(spark, tmp_path_factory):
    """What is published where the second day had all its rows from the start."""
    line = Line(spark, tmp_path_factory.mktemp("grown"), SPEC)
    land(line.folder, [*of_days(DAYS, 1, 2, 3), *more_of(2)])
    line.backfill("1", "5")
    return line.published()


@pytest.mark.parametrize("within", [("2", "3"), ("3", "4")], ids=["inside", "outside"])
def test_rows_of_an_observed_day_make_a_range_right_and_are_owed_to_all_others(
    until4, grown, tmp_path, within
):
    line = until4.copy(tmp_path)
    land(line.folder, more_of(2), mode="append")
    rows = [*of_days(DAYS, 1, 2, 3), *more_of(2)]

    outcome = line.backfill(*within)
    assert outcome.status == "published"
    for name in ("windows", "completeness"):
        found, expected = (of_range(each, *within) for each in (line.rows(name), grown[name]))
        assert found == expected, name
    assert owed(line) == [2]
    assert any("left to the next scheduled run" in note for note in outcome.notes)

    land(line.folder, of_days(DAYS, 4), mode="append")
    line.advance("5")
    assert_told_by_replay(line, [*rows, *of_days(DAYS, 4)], "5")
    assert_books_balance(line)
    assert owed(line) == []


@pytest.mark.parametrize(
    ("spec", "partition_by"),
    [(SPEC, []), (a_spec(source__arrival_date=None), [])],
    ids=["not partitioned", "without a column of days"],
)
def test_a_day_that_grew_is_noticed_where_the_log_cannot_tell_days(
    spark, tmp_path, spec, partition_by
):
    line = Line(spark, tmp_path, spec)
    land(tmp_path, of_days(DAYS, 1, 2, 3), partition_by=partition_by)
    line.advance("4")
    land(tmp_path, more_of(2), mode="append", partition_by=partition_by)
    healed = line.advance("4")
    assert healed.to_recompute == healed.observed_days == ["2024-03-02"]
    assert_told_by_replay(line, [*of_days(DAYS, 1, 2, 3), *more_of(2)], "4")


# ------------------------------------------------------------------------- late rows of older slots

OLD_SLOT = [
    *(a_record(f"{d} {h}:05", f"{d} {h}:00", position=d) for d in (1, 2) for h in (10, 14, 18)),
    a_record("2 19:00", "1 10:20", amount=40, position=40),
]
"""A record that is late for a slot of the day before."""


def late_slots(line: Line) -> list[int]:
    return [row["late"] for row in line.rows("completeness") if row["late"]]


@pytest.mark.parametrize(
    "row",
    [
        a_record("2 19:10", "2 18:50", amount=41, position=41),
        a_record("2 18:50", "2 18:40", amount=40, position=42),
    ],
    ids=["lands no more", "becomes a duplicate"],
)
def test_a_late_row_that_goes_leaves_quarantine_and_its_slots_counts(spark, tmp_path, row):
    rule = {"columns": ["amount"], "within": "15m of arrival"}
    line = Line(spark, tmp_path, a_spec(source__channels=["a"], source__deduplicate=rule))
    land(tmp_path, OLD_SLOT)
    line.advance("3")
    assert late_slots(line) == [1]
    kept = OLD_SLOT[:-1] if row["position"] == 41 else OLD_SLOT
    rows = [*kept, row, a_record("3 10:05", "3 10:00", position=3)]
    land_again(line, 2, of_days(rows, 2))
    land(tmp_path, of_days(rows, 3), mode="append")
    outcome = line.advance("4")
    assert outcome.to_recompute == ["2024-03-02"]
    assert late_slots(line) == []
    assert_told_by_replay(line, rows, "4")
    assert_books_balance(line)


def test_an_advance_beside_a_backfill_of_older_slots_that_it_mends_doubles_no_late_row(
    spark, tmp_path
):
    line = Line(spark, tmp_path, a_spec(source__channels=["a"]))
    land(tmp_path, of_days(OLD_SLOT, 1))
    line.advance("2")
    land(tmp_path, of_days(OLD_SLOT, 2), mode="append")

    def meanwhile(step: str) -> None:
        if step == "publish":
            line.backfill("1", "2")

    with pytest.raises(RetryableError, match="has published into its range") as caught:
        line.run(Request("advance", to_ms=instant("3")), meanwhile)
    assert caught.value.exit_code == 4
    assert [row["amount"] for row in line.rows("quarantine")] == [40]
    line.advance("3")
    assert_told_by_replay(line, OLD_SLOT, "3")


@pytest.mark.parametrize("step", ["rebuild", "publish"])
def test_rows_that_another_run_observes_meanwhile_are_read_by_the_next_one(until4, step, tmp_path):
    """The timeline has them, as if they had been read, and the day was not published before."""
    line, late = until4.copy(tmp_path), more_of(4)
    if step == "rebuild":
        land(line.folder, of_days(DAYS, 4), mode="append")

    def meanwhile(name: str) -> None:
        if name == step:
            of_day = late if step == "rebuild" else [*of_days(DAYS, 4), *late]
            land(line.folder, of_day, mode="append")
            line.backfill("1", "2", as_of="5", prepare=True)

    line.run(Request("advance", to_ms=instant("5")), meanwhile)
    assert owed(line) == [4]
    land(line.folder, of_days(DAYS, 5), mode="append")
    assert line.advance("6").to_recompute == ["2024-03-04"]
    assert_told_by_replay(line, [*DAYS, *late], "6")
    assert owed(line) == []


# ------------------------------------------------------------------------------- rewritten, updated


def test_rows_that_only_move_into_other_files_make_nothing_owed(spark, tmp_path):
    line = Line(spark, tmp_path, SPEC)
    rows = of_days(DAYS, 1, 2, 3)
    for part in range(3):
        land(tmp_path, rows[part::3], mode="append")
    line.advance("4")
    before = landing_of(line).file_uris()
    landing_of(line).optimize.compact()
    assert len(landing_of(line).file_uris()) < len(before)
    land(tmp_path, of_days(DAYS, 4), mode="append")
    outcome = line.advance("5")
    assert (outcome.to_recompute, outcome.observed_days) == ([], ["2024-03-04"])
    assert_told_by_replay(line, of_days(DAYS, 1, 2, 3, 4), "5")


def test_rows_that_are_updated_in_place_are_judged_again(until4, tmp_path, spark):
    line = until4.copy(tmp_path)
    table = f"delta.`{line.folder / 'landing/meter'}`"
    chosen = [row["position"] for row in of_days(DAYS, 2)][::2]
    named = ", ".join(str(position) for position in chosen)
    spark.sql(f"UPDATE {table} SET amount = amount + 100 WHERE position IN ({named})")
    rows = [
        {**row, "amount": row["amount"] + 100 * (row["position"] in chosen)}
        for row in of_days(DAYS, 1, 2, 3)
    ]
    outcome = line.advance("4")
    assert outcome.to_recompute == outcome.observed_days == ["2024-03-02"]
    assert outcome.diff["windows"]["update"]
    assert_told_by_replay(line, rows, "4")
