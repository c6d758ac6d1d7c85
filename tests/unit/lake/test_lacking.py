"""Which windows are from before a column came, as the log of their table tells it."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.lake.publish.adopt import Adoption, Attempt
from strandline.lake.publish.lacking import days_lacking
from strandline.lake.store.lake import Lake
from strandline.lake.upkeep.upkeep import scattered_days


@pytest.fixture
def publish(tmp_path):
    uri = str(tmp_path / "windows")

    def append(day: date, fingerprint: str, **columns: object) -> DeltaTable:
        row = {"window_date": [day], **{k: [v] for k, v in columns.items()}}
        table = pa.table({**row, "spec_fingerprint": [fingerprint]})
        write_deltalake(
            uri, table, mode="append", schema_mode="merge", partition_by=["window_date"]
        )
        return DeltaTable(uri)

    return append


def test_days_from_before_a_column_are_named_as_stretches(publish):
    for day in (1, 2, 5, 7):
        publish(date(2024, 3, day), "old", total=1)
    publish(date(2024, 3, 5), "old", total=1)
    table = publish(date(2024, 3, 6), "new", total=1, largest=7)
    assert days_lacking(table, ["total", "Largest", "gone"], "new") == {
        "Largest": [
            (date(2024, 3, 1), date(2024, 3, 6)),
            (date(2024, 3, 7), date(2024, 3, 8)),
        ]
    }


def test_a_column_that_is_null_under_todays_rules_lacks_nowhere(publish):
    publish(date(2024, 3, 1), "new", total=1, largest=1)
    table = publish(date(2024, 3, 2), "new", total=1)
    assert days_lacking(table, ["largest"], "new") == {}
    assert days_lacking(table, ["largest"], "newer") == {
        "largest": [(date(2024, 3, 2), date(2024, 3, 3))]
    }


def test_a_day_with_rows_from_before_a_column_and_after_it_in_one_file_is_named(tmp_path):
    """The windows of the day on which an aggregate came kept its nulls, and nothing said so."""
    day, uri = date(2024, 3, 3), str(tmp_path / "windows")

    def published(*rows: tuple[str, int | None]) -> DeltaTable:
        rules, values = zip(*rows, strict=True)
        largest = pa.array(values, pa.int64())
        of_day = {"window_date": [day] * len(rows), "largest": largest, "spec_fingerprint": rules}
        write_deltalake(uri, pa.table(of_day), mode="overwrite", partition_by=["window_date"])
        return DeltaTable(uri)

    on_the_day = {"largest": [(day, date(2024, 3, 4))]}
    assert days_lacking(
        published(("old", None), ("old", None), ("new", 7)), ["largest"], "new"
    ) == (on_the_day)
    has_it = published(("old", None), ("old", 7), ("new", None))  # null by the record, not the rule
    assert days_lacking(has_it, ["largest"], "new") == {}
    assert days_lacking(has_it, ["largest"], "newest") == on_the_day


def test_the_last_day_of_the_calendar_has_none_after_it(publish):
    publish(date(9999, 12, 31), "old", total=1)
    table = publish(date(2024, 3, 2), "new", total=1, largest=7)
    assert days_lacking(table, ["largest"], "new") == {"largest": [(date.max, date.max)]}


def test_without_a_table_nothing_lacks():
    assert days_lacking(None, ["total"], "new") == {}


def test_of_arrays_the_log_does_not_tell(publish):
    table = publish(date(2024, 3, 1), "old", total=1, route=[1, 2])
    assert days_lacking(table, ["total", "route"], "new") == {}


def test_a_column_of_numbers_that_a_run_has_written_lacks_nowhere(publish):
    """Numbers with fractions have no bounds in the log, and their nulls are counted there."""
    day, columns = date(2024, 3, 2), {"total": 2, "mean": 1.5, "none": None}
    table = publish(day, "old", total=1, mean=1.5, none=0.5)
    row = {"window_date": [day], **{k: [v] for k, v in columns.items()}, "spec_fingerprint": ["b"]}
    rows = pa.table(row).cast(pa.schema(table.schema().to_arrow()))
    adoption = Adoption(table.table_uri, "window_date", Attempt("r-1", "0", 0))
    adoption.swap(table, adoption.write([rows], table), [day])
    names = [*columns]
    assert days_lacking(DeltaTable(table.table_uri), names, "new") == {
        "none": [(day, date(2024, 3, 3))]
    }


@pytest.mark.parametrize(
    "has_all", [True, False], ids=["as created today", "by an earlier version"]
)
def test_of_a_wide_table_later_columns_lack_only_where_they_are_null(tmp_path, has_all):
    """By default the log of a table has statistics of 32 columns; nothing is known of others."""
    wide = {f"c{n}": pa.array([float(n)]) for n in range(40)}
    nothing = {"gone": pa.array([None], pa.float64())}
    rows = pa.table(
        {"window_date": [date(2024, 3, 1)], **wide, **nothing, "spec_fingerprint": ["old"]}
    )
    store = Lake.at(str(tmp_path)).pipeline("p")
    if has_all:
        store.create("windows", rows.schema, ["window_date"])
    for fingerprint in ("old", "older"):
        column = rows.schema.get_field_index("spec_fingerprint")
        of_rules = rows.set_column(column, "spec_fingerprint", [[fingerprint]])
        write_deltalake(store.uri("windows"), of_rules, mode="append", partition_by=["window_date"])
    table = DeltaTable(store.uri("windows"))
    found = days_lacking(table, [*wide, *nothing], "today")
    assert [*found] == (["gone"] if has_all else [])
    assert scattered_days(table, "window_date") == []
