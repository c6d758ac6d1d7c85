"""The frequent values of columns among late and malformed rows. No JVM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from meter import HALF_DAYS as SPEC

from strandline.lake.store.days import Days
from strandline.lake.store.lake import Lake
from strandline.pipeline.views.values import frequent_values

COMMON = "https://example.org/a/path/that/is/longer/than/sixty/characters/"


@pytest.fixture
def values(tmp_path):
    """The counts by value of a column of late rows with some texts."""

    def of(*late: list[str | None], malformed: Sequence[str | None] = ()) -> dict:
        store = Lake.at(str(tmp_path / "lake")).pipeline("meter")
        for reason, texts in (("null_arrival", malformed), *(("late", texts) for texts in late)):
            rows = pa.table({"url": pa.array(texts, pa.string())})
            rows = rows.append_column("reason", pa.array([reason] * len(texts), pa.string()))
            days = pa.array([date(2013, 1, 1)] * len(texts), pa.date32())
            rows = rows.append_column("quarantine_date", days)
            write_deltalake(
                store.uri("quarantine"), rows, mode="append", partition_by=["quarantine_date"]
            )
        found = frequent_values(store, Days(None, None), SPEC)
        assert {*found["column"]} <= {"url"}
        of_late = found[found["group"] == "late"]
        return dict(zip(of_late["value"], of_late["records"], strict=True))

    return of


def test_a_column_with_more_distinct_values_than_are_counted_is_left_out_though_they_look_alike(
    values,
):
    assert values([f"{COMMON}{number}" for number in range(1_000)]) == {}


def test_values_that_are_equal_once_they_are_shortened_are_counted_whole(values):
    alike = [f"{COMMON}{n}" for n in range(599)]
    assert values([*alike, "other"], [f"{COMMON}x"] * 3) == {COMMON[:60]: 602, "other": 1}


def test_a_column_of_few_values_is_counted_with_its_nulls(values):
    assert values(["a", "b", None], ["a"]) == {"a": 2, "b": 1, None: 1}


def test_a_column_whose_values_are_too_many_in_all_batches_together_is_left_out(values):
    assert values([f"a{n}" for n in range(100)], [f"b{n}" for n in range(100)]) == {}


def test_of_a_column_with_many_values_the_one_that_stands_out_is_counted(values):
    each_once = [f"d{n}" for n in range(200)]
    found = values([*each_once, *["loud"] * 500])
    assert found["loud"] == 500
    assert len(found) == 201
    # whichever batch has it, and however many others there are
    found = values(*([f"b{batch} {n}" for n in range(1_000)] + ["loud"] * 900 for batch in (1, 2)))
    assert found["loud"] == 500 + 2 * 900


def test_a_column_with_one_value_among_all_rows_is_left_out(values):
    assert values(["a", "a"], malformed=["a"]) == {}
    assert values(["a"], malformed=["b"]) == {"a": 3}


def test_a_value_of_all_late_rows_is_counted_though_no_malformed_row_shares_its_value(values):
    """The other rows have too many values to be counted: the column was taken for a constant."""
    assert values(["bad"] * 100, malformed=[f"d{n}" for n in range(1_000)]) == {"bad": 100}


def test_a_column_with_few_values_among_the_late_is_counted_whole_whatever_others_have(values):
    found = values([COMMON] * 90 + ["s"] * 30, malformed=[f"d{n}" for n in range(1_000)])
    assert found == {COMMON[:60]: 90, "s": 30}


def test_a_long_value_that_is_frequent_is_counted_beside_many_others(values):
    found = values([COMMON] * 900 + [f"d{n}" for n in range(200)])
    assert (found[COMMON[:60]], len(found)) == (900, 201)
