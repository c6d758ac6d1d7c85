"""The narrow rows of the timeline are those of its files, whichever were kept from earlier runs."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cells import cell_of_day, observed
from hypothesis import given
from hypothesis import strategies as st
from lakes import a_spec

from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.lake.timeline import narrow, rows
from strandline.lake.timeline.commit import DaysToWrite, commit_days
from strandline.lake.timeline.rows import TimelineTable
from strandline.model.facts import DayFacts

FIRST = date(2024, 3, 1)
SPEC = a_spec()


def write(store: Store, numbers: list[int], *, rows_of_day: int = 2) -> None:
    days = [FIRST + timedelta(days=number) for number in sorted(numbers)]
    cells = observed(*(cell_of_day(day, "a", rows_of_day) for day in days))
    facts = {day: DayFacts(rows_of_day, f"files of {day}", 1) for day in days}
    commit_days(store, DaysToWrite(SPEC, {}, cells, [], days, facts), replace=False)


def whole(store: Store) -> pa.Table:
    """The narrow rows, read from all files."""
    opened = TimelineTable.open(store)
    return in_order(TimelineTable(opened.dataset, opened.version).narrow)


def in_order(read: pa.Table) -> pa.Table:
    return read.sort_by([(name, "ascending") for name in read.column_names])


def kept_in(store: Store) -> Path:
    return Path(store.root, "_timeline", "narrow.parquet")


@pytest.fixture
def store(tmp_path) -> Store:
    return Lake.at(str(tmp_path)).pipeline("meter")


@given(
    writes=st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), st.integers(1, 3)
        ),
        min_size=1,
        max_size=4,
    ),
    most=st.integers(0, 4),
)
def test_after_whatever_is_written_the_kept_rows_and_the_newest_version_are_the_tables(
    tmp_path_factory, writes, most
):
    store = Lake.at(str(tmp_path_factory.mktemp("lake"))).pipeline("meter")
    opened = TimelineTable.open(store)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "MOST_NOT_KEPT", most)
        for numbers, rows_of_day in writes:
            opened = opened.newest(store)
            assert in_order(opened.narrow) == whole(store)
            write(store, numbers, rows_of_day=rows_of_day)
            opened.keep_narrow(store, len(numbers))
            assert in_order(TimelineTable.open(store).narrow) == whole(store)
    assert in_order(opened.newest(store).narrow) == whole(store)


def test_rows_are_kept_once_many_files_would_be_read_one_by_one(store):
    write(store, [*range(narrow.MOST_NOT_KEPT)])
    TimelineTable.open(store).keep_narrow(store, 0)
    assert not kept_in(store).exists()
    opened = TimelineTable.open(store)
    write(store, [narrow.MOST_NOT_KEPT])
    opened.keep_narrow(store, 1)
    assert kept_in(store).exists()


def test_kept_files_are_not_read_again(store, monkeypatch):
    write(store, [0, 1, 2])
    monkeypatch.setattr(rows, "MOST_NOT_KEPT", 2)
    TimelineTable.open(store).keep_narrow(store, 0)
    expected = whole(store)
    for file in Path(store.uri("timeline")).glob("*/*.parquet"):
        file.unlink()
    assert in_order(TimelineTable.open(store).narrow) == expected


def test_some_days_are_the_rows_of_these_days_alone(store, monkeypatch):
    monkeypatch.setattr(rows, "MOST_NOT_KEPT", 0)
    write(store, [0, 1, 2])
    TimelineTable.open(store).keep_narrow(store, 0)
    write(store, [3])
    some = ds.field("arrival_date") >= pa.scalar(FIRST + timedelta(days=2), pa.date32())
    read = in_order(TimelineTable.open(store, some).narrow)
    assert read == whole(store).filter(some)
    assert set(read["arrival_date"].to_pylist()) == {FIRST + timedelta(days=n) for n in (2, 3)}


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b"PAR1 no more"),
        lambda file: file.write_bytes(file.read_bytes()[:-20]),
        lambda file: file.write_bytes(b""),
        lambda file: pq.write_table(pq.read_table(file).drop_columns(["channel"]), file),
        lambda file: pq.write_table(pq.read_table(file).replace_schema_metadata({}), file),
        lambda file: (file.unlink(), file.mkdir()),
    ],
    ids=["missing", "garbage", "cut off", "empty", "of another version", "without files", "folder"],
)
def test_kept_rows_that_cannot_be_read_are_read_from_the_table(store, monkeypatch, damage):
    monkeypatch.setattr(rows, "MOST_NOT_KEPT", 0)
    write(store, [0, 1, 2])
    TimelineTable.open(store).keep_narrow(store, 0)
    assert len(pq.read_table(kept_in(store)))
    damage(kept_in(store))
    assert in_order(TimelineTable.open(store).narrow) == whole(store)


def test_the_rows_of_a_timeline_that_was_removed_are_not_those_of_the_one_created_after(
    store, monkeypatch, tmp_path
):
    monkeypatch.setattr(rows, "MOST_NOT_KEPT", 0)
    write(store, [0, 1])
    opened = TimelineTable.open(store)
    opened.keep_narrow(store, 0)
    before = whole(store)
    Path(store.uri("timeline")).rename(tmp_path / "removed")
    write(store, [0, 1], rows_of_day=3)
    assert in_order(TimelineTable.open(store).narrow) == whole(store) != before
