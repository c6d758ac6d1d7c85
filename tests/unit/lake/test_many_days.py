"""Conditions of delta-rs for tens of thousands of partitions. No Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.lake.store.day_conditions import in_days
from strandline.lake.store.reads import rows_in_days
from strandline.lake.upkeep.erasure import erase

FIRST = date(1850, 1, 1)
SCATTERED = [FIRST + timedelta(number) for number in range(0, 50_000, 2)]
BETWEEN = FIRST + timedelta(25_001)


@pytest.fixture
def table(tmp_path):
    """Rows on the first and the last of the days, on a day between them, and on none."""
    rows = {
        "day": pa.array([SCATTERED[0], BETWEEN, SCATTERED[-1], None], pa.date32()),
        "id": [1, 2, 3, 4],
    }
    write_deltalake(str(tmp_path), pa.table(rows), partition_by=["day"])
    return DeltaTable(str(tmp_path))


def ids(batches):
    return sorted(number for rows in batches for number in rows["id"].to_pylist())


def test_of_tens_of_thousands_of_days_no_file_between_them_is_named(table):
    """A list of some 20,000 days ended the process; beyond 10,000 days all files were read."""
    files = table.file_uris(file_pruning_predicate=in_days("day", [*SCATTERED, None]))
    assert len(files) == 3
    assert ids(rows_in_days(table, "day", SCATTERED)) == [1, 3]


def test_the_rows_of_tens_of_thousands_of_days_are_replaced(table):
    row = pa.table({"day": pa.array([SCATTERED[-1]], pa.date32()), "id": [5]})
    write_deltalake(table, row, mode="overwrite", predicate=in_days("day", SCATTERED))
    assert ids([pa.table(table.to_pyarrow_table())]) == [2, 4, 5]


def test_single_days_are_a_list_which_costs_a_fourth_until_there_are_more_than_1000():
    """Delta-rs takes 0.1 processor seconds, and 0.6 with ranges, to merge into 5,000 of them."""
    assert "IN (" in in_days("day", SCATTERED[:1_000])
    assert "IN (" not in in_days("day", SCATTERED[:1_001])


@pytest.mark.parametrize("number", [999, 1_000, 1_001, 5_000, 25_000])
def test_a_thread_with_a_small_stack_asks_for_the_files_of_many_days(table, number):
    """Of a list of 5,000 days the process ended without a word."""
    asked = (
        "import sys, threading; from deltalake import DeltaTable; threading.stack_size(2**20); "
        "of_days = sys.stdin.read(); files = []; table = DeltaTable(sys.argv[1]); "
        "asked = lambda: files.extend(table.file_uris(file_pruning_predicate=of_days)); "
        "thread = threading.Thread(target=asked); thread.start(); thread.join(); print(len(files))"
    )
    run = subprocess.run(
        [sys.executable, "-c", asked, table.table_uri],
        input=in_days("day", [*SCATTERED[: number - 1], SCATTERED[-1], None]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout.strip()) == (0, "3"), run.stderr


@pytest.mark.parametrize("number", [3, 1_000, 1_001])
def test_days_on_their_own_name_their_files_beside_consecutive_days(table, number):
    days = [BETWEEN, BETWEEN + timedelta(1), *SCATTERED[:number], None]
    files = table.file_uris(file_pruning_predicate=in_days("day", days))
    assert len(files) == 3
    assert ids(rows_in_days(table, "day", days[:-1])) == [1, 2]


@pytest.mark.parametrize("days", [[], [None], [FIRST, None], [BETWEEN], SCATTERED[:3]])
def test_a_few_days_or_none_name_their_files_alone(table, days):
    files = table.file_uris(file_pruning_predicate=in_days("day", days))
    assert len(files) == len({SCATTERED[0], BETWEEN, SCATTERED[-1], None} & {*days})


def test_the_first_and_the_last_date_that_there_are_name_their_files(tmp_path):
    ends = [date.min, date.max]
    rows = pa.table({"day": pa.array([*ends, FIRST], pa.date32()), "id": [1, 2, 3]})
    write_deltalake(str(tmp_path), rows, partition_by=["day"])
    assert ids(rows_in_days(DeltaTable(str(tmp_path)), "day", ends)) == [1, 2]


def test_an_erasure_writes_the_files_between_its_days_no_more(table):
    before = {*table.file_uris(file_pruning_predicate=in_days("day", [BETWEEN]))}
    erase(table, "day", "id IN (1, 3)", "erase")
    assert ids([pa.table(table.to_pyarrow_table())]) == [2, 4]
    assert before < {*table.file_uris()}
