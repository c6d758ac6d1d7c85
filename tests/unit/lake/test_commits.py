"""Rows that only lie in other files are no change; rows that have come and gone are one."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from lakes import FIRST_DAY, a_record, a_spec, land

from strandline.lake.landing.landing import Landing
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.store.commits import commits, days_changed, keeps_rows, only_moved
from strandline.lake.store.lake import Lake
from strandline.model.facts import DayFacts, KnownDays, LandedDays, LandingChanges, compare

DAYS = [FIRST_DAY.replace(day=day) for day in (1, 2, 3)]


class Landed:
    """A landing table of three days, each in two files; observed as it stands."""

    def __init__(self, folder) -> None:
        self.folder = folder
        for hour in (10, 11):
            rows = [a_record(f"{d.day} {hour}:00", f"{d.day} {hour}:00") for d in DAYS]
            land(folder, rows, mode="append")
        self.known = self.facts()

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.folder / "landing/meter"))

    def landing(self) -> Landing:
        return open_landing(None, Lake.at(str(self.folder)), a_spec())

    def facts(self) -> dict:
        return dict(self.landing().facts)

    def changes(self) -> LandingChanges:
        return self.landing().changes(KnownDays(self.known, published_ms=2**60))


@pytest.fixture
def landed(tmp_path):
    folder = tmp_path / "a lake, 100% its own"
    folder.mkdir()
    return Landed(folder)


def test_older_days_that_are_optimized_after_a_retention_delete_have_not_changed(landed):
    landed.table.delete("arrived_on = '2024-03-01'")
    landed.table.optimize.compact()
    found = landed.changes()
    assert (found.changed, found.missing) == (frozenset(), {DAYS[0]})
    assert found.rewritten == {DAYS[1], DAYS[2]}


def test_rows_that_came_in_the_place_of_as_many_others_are_a_change_of_their_day_alone(landed):
    landed.table.delete("arrived_on = '2024-03-02'")
    land(landed.folder, [a_record(f"2 {h}:30", f"2 {h}:30") for h in (10, 11)], mode="append")
    landed.table.optimize.compact()
    found = landed.changes()
    assert (found.changed, found.missing) == ({DAYS[1]}, frozenset())
    assert found.rewritten == {DAYS[0], DAYS[2]}


def test_where_the_log_does_not_tell_what_has_gone_rows_count_as_changed(landed):
    landed.table.delete("arrived_on = '2024-03-01'")
    landed.table.optimize.compact()
    # who has no partition of days, or another one, can be told of no day
    assert only_moved(landed.table, None, {DAYS[1]: 1}) == set()
    assert only_moved(landed.table, "arrived_on", {DAYS[1]: 1}) == {DAYS[1]}
    assert only_moved(landed.table, "arrived_on", {DAYS[1]: 9}) == set()  # another table
    landed.table.create_checkpoint()
    for version in range(3):
        (landed.folder / f"landing/meter/_delta_log/{version:020}.json").unlink()
    assert only_moved(landed.table, "arrived_on", {DAYS[1]: 1}) == set()
    assert only_moved(landed.table, "arrived_on", {DAYS[1]: 2}) == {DAYS[1]}


def test_rows_are_kept_as_long_as_the_log_shows_that_none_was_removed(landed):
    since = landed.table.version()
    landed.table.optimize.compact()
    land(landed.folder, [a_record("4 12:00", "4 12:00")], mode="append")
    assert keeps_rows(landed.table, since)
    assert not keeps_rows(landed.table, since + 9)  # of another table
    landed.table.delete("source = 'a' AND arrived_on = '2024-03-02'")
    assert not keeps_rows(landed.table, since)
    assert keeps_rows(landed.table, landed.table.version())
    land(landed.folder, [a_record("5 12:00", "5 12:00")], mode="append")
    last = landed.table
    (landed.folder / f"landing/meter/_delta_log/{last.version():020}.json").unlink()
    assert keeps_rows(last, last.version() - 1) is None


def test_no_commit_is_read_after_the_first_that_removed_rows(landed):
    since = landed.table.version()
    landed.table.delete("arrived_on = '2024-03-02'")
    land(landed.folder, [a_record("5 12:00", "5 12:00")], mode="append")
    table = landed.table
    log = landed.folder / f"landing/meter/_delta_log/{table.version():020}.json"
    log.write_text('{"remove": cut off')
    assert keeps_rows(table, since) is False


def _compared(
    before: DayFacts, now: DayFacts, *, by_rows: bool = False, first_id: str | None = None
) -> LandingChanges:
    known = KnownDays({DAYS[0]: before}, first_id=first_id)
    return compare(known, LandedDays({DAYS[0]: now}, by_rows=by_rows))


def test_days_have_changed_whose_rows_have_come_or_gone_and_not_those_that_moved(landed):
    since = landed.table.version()
    landed.table.optimize.compact()
    assert days_changed(landed.table, "arrived_on", since) == set()
    land(landed.folder, [a_record("2 12:00", "2 12:00")], mode="append")
    assert days_changed(landed.table, "arrived_on", since) == {DAYS[1]}
    landed.table.delete("arrived_on = '2024-03-03'")
    assert days_changed(landed.table, "arrived_on", since) == {DAYS[1], DAYS[2]}
    assert days_changed(landed.table, "arrived_on", landed.table.version()) == set()


def test_any_day_may_have_changed_once_the_log_is_cleaned_up(landed):
    since = landed.table.version()
    land(landed.folder, [a_record("2 12:00", "2 12:00")], mode="append")
    for step in (landed.folder / "landing/meter/_delta_log").glob(f"{since + 1:020}.json"):
        table = landed.table
        step.unlink()
        assert days_changed(table, "arrived_on", since) is None


def test_a_table_that_is_created_anew_is_another_table_however_alike_its_log_is(landed):
    """As many rows, files and versions as before, and a value that is another one."""
    versions = landed.table.version()
    shutil.rmtree(landed.folder / "landing/meter")
    for hour in (10, 11):
        at_hour = [f"{d.day} {hour}:00" for d in DAYS]
        land(landed.folder, [a_record(at, at, amount=1001) for at in at_hour], mode="append")
    assert landed.table.version() == versions
    found = landed.changes()
    assert found.changed == found.recreated == {*DAYS}
    assert (found.rewritten, found.missing) == (frozenset(), frozenset())


def test_of_another_table_a_file_of_the_same_name_may_be_another_one_and_rows_are_rows():
    before, now = (DayFacts(5, "part-0", 3, table_id=of) for of in ("before", "now"))
    assert _compared(before, now).recreated == {DAYS[0]}
    by_rows = _compared(before, now, by_rows=True)
    assert (by_rows.rewritten, by_rows.changed) == ({DAYS[0]}, frozenset())  # its id is kept now


def test_facts_without_an_id_are_of_the_table_that_the_ledger_names_first():
    before, now = DayFacts(5, "part-0", 3), DayFacts(5, "part-0", 3, table_id="now")
    assert _compared(before, now).changed == frozenset()
    assert _compared(before, now, first_id="now").changed == frozenset()
    assert _compared(before, now, first_id="before").recreated == {DAYS[0]}


@pytest.mark.parametrize("name", ["lake", "lake#2", "lake?x"])
def test_what_commits_say_is_known_at_any_path(tmp_path, name):
    """`DeltaTable.history` is empty below a path with a # or a ?."""
    place = str(tmp_path / name)
    for run in ("a", "b", "c"):
        commit = CommitProperties({"userMetadata": run})
        write_deltalake(place, pa.table({"v": [1]}), mode="append", commit_properties=commit)
    table = DeltaTable(place)
    assert [(at, said["userMetadata"]) for at, said in commits(table)] == [
        (2, "c"),
        (1, "b"),
        (0, "a"),
    ]
    (tmp_path / name / "_delta_log" / f"{1:020}.json").unlink()
    assert [at for at, _ in commits(table)] == [2]
