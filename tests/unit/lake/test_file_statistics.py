"""Bounds from the footers of Parquet files: never narrower than what the files hold. No Spark."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dear import DEAR
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from hypothesis import given
from hypothesis import strategies as st

from strandline.lake.publish.file_statistics import statistics_of

US = pa.timestamp("us", tz="UTC")
VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.string(): st.text(st.sampled_from("ab\x00ä\uffff\U0010ffff"), max_size=40),
    pa.binary(): st.binary(max_size=3),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    US: st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(9, 2): st.decimals(-(10**6), 10**6, places=2),
    pa.decimal128(38, 3): st.decimals(-(10**30), 10**30, places=3),
}
NESTED = pa.struct([("in.side", pa.int64()), ("text", pa.string())])
MAP = pa.map_(pa.string(), pa.int64())
INSIDE = st.fixed_dictionaries(
    {"in.side": st.none() | VALUES[pa.int64()], "text": st.none() | VALUES[pa.string()]}
)
LISTS = st.lists(st.integers(0, 9))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few rows of columns of all types, nulls among them."""
    count = draw(st.integers(1, 5))
    columns = {
        str(kind): pa.array(draw(of(values, count)), kind) for kind, values in VALUES.items()
    }
    columns["st.ruct"] = pa.array(draw(of(INSIDE, count)), NESTED)
    columns["list"] = pa.array(draw(of(LISTS, count)), pa.list_(pa.int64()))
    columns["map"] = pa.array([[("k", 1)]] * count, MAP)
    columns["last"] = pa.array(range(count), pa.int64())
    return pa.table(columns)


@cache
def of(values: st.SearchStrategy, count: int) -> st.SearchStrategy:
    """So many values or nulls; made once, as a new strategy is validated anew."""
    return st.lists(st.none() | values, min_size=count, max_size=count)


def footer_of(rows: pa.Table, folder: str, **how: object) -> pq.FileMetaData:
    pq.write_table(rows, f"{folder}/file.parquet", **how)
    return pq.read_metadata(f"{folder}/file.parquet")


def values_in(rows: pa.Table, name: str) -> list[object]:
    column = rows["st.ruct"].combine_chunks() if name.startswith("st.ruct.") else None
    field = name.removeprefix("st.ruct.")
    values = rows[name] if column is None else column.flatten()[NESTED.get_field_index(field)]
    return [value for value in values.to_pylist() if value is not None]


@DEAR
@given(rows=tables())
def test_every_value_lies_within_the_bounds_as_a_reader_of_the_log_has_them(rows):
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, rows)
        theirs = pa.table(DeltaTable(folder).get_add_actions(flatten=True)).to_pylist()
        (file,) = theirs
        adopted = adopted_by_us(folder, file["path"])
    names = {name.split(".", 1)[1] for name in adopted if name.startswith(("min.", "max."))}
    assert {"last", "int64", "date32[day]", "st.ruct.in.side"} <= names | unknown(rows)
    for name in names:
        values = values_in(rows, name)
        for bound, holds in ((f"min.{name}", le), (f"max.{name}", ge)):
            least_or_most = adopted.get(bound)
            if least_or_most is not None:
                assert all(holds(least_or_most, value) for value in values), (bound, least_or_most)
                said = file.get(bound)  # theirs, of milliseconds alone, may be too narrow
                assert said is None or holds(least_or_most, said), (bound, least_or_most, said)
    for name, nulls in adopted.items():
        if name.startswith("null_count.") and nulls is not None:
            assert file[name] in {None, nulls}, name
    assert adopted["num_records"] == rows.num_rows


def unknown(rows: pa.Table) -> set[str]:
    """Columns without any value: they have no bounds."""
    names = ["int64", "date32[day]", "st.ruct.in.side"]
    return {name for name in names if not values_in(rows, name)}


def le(bound: object, value: object) -> bool:
    return as_spark_orders(bound) <= as_spark_orders(value)


def ge(bound: object, value: object) -> bool:
    return as_spark_orders(bound) >= as_spark_orders(value)


def as_spark_orders(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


def adopted_by_us(folder: str, path: str) -> dict[str, object]:
    """What delta-rs reads of our statistics of a file, in a table that has no other."""
    table = DeltaTable(folder)
    stats = statistics_of(pq.read_metadata(f"{folder}/{path}"))
    with tempfile.TemporaryDirectory() as other:
        ours = DeltaTable.create(other, table.schema())
        ours.create_write_transaction(
            [AddAction(path, 1, {}, 1, True, stats)], "append", table.schema()
        )
        (file,) = pa.table(DeltaTable(other).get_add_actions(flatten=True)).to_pylist()
    return file


def bounds_of(values: list[object], kind: pa.DataType, folder: object, **how: object) -> tuple:
    footer = footer_of(pa.table({"c": pa.array(values, kind)}), str(folder), **how)
    said = json.loads(statistics_of(footer))
    return said["minValues"].get("c"), said["maxValues"].get("c")


def test_they_are_those_of_all_groups_of_rows(tmp_path):
    values = [5, 1, None, None, 9, 3]
    assert bounds_of(values, pa.int64(), tmp_path, row_group_size=2) == (1, 9)


def test_the_last_instant_is_not_cut_off_below_itself(tmp_path):
    at = datetime(2024, 3, 1, 10, 0, 0, 123_456, tzinfo=UTC)
    said = ("2024-03-01T10:00:00.123Z", "2024-03-01T10:00:00.124Z")
    assert bounds_of([at], US, tmp_path) == said
    naive = at.replace(tzinfo=None)
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC).replace(tzinfo=None)
    assert bounds_of([naive, before], pa.timestamp("us"), tmp_path) == (
        "1969-12-31T23:59:59.999",
        "2024-03-01T10:00:00.124",
    )


def test_what_lies_beyond_four_digits_of_years_has_no_bound(tmp_path):
    assert bounds_of([0, 2**60], US, tmp_path) == ("1970-01-01T00:00:00.000Z", None)
    assert bounds_of([-(10**6), 0], pa.date32(), tmp_path) == (None, "1970-01-01")


def test_a_long_text_is_bounded_by_its_beginning(tmp_path):
    assert bounds_of(["a" * 33], pa.string(), tmp_path) == ("a" * 32, "a" * 32 + "\U0010ffff")
    no_greater = "a" * 32 + "\U0010ffff" * 2
    assert bounds_of([no_greater], pa.string(), tmp_path) == ("a" * 32, None)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("1.25", (1.25, 1.25)),
        ("-0.10", (-0.1, -0.1)),
        ("0.00", (0, 0)),
        ("9007199254740993.01", (9007199254740993, 9007199254740994)),
        ("-9007199254740993.01", (-9007199254740994, -9007199254740993)),
        ("1e20", (10**20, 10**20)),
        ("9" * 36 + ".99", (10**36 - 1, None)),
    ],
)
def test_a_decimal_keeps_its_digits_or_is_widened_to_a_whole_number(tmp_path, value, bound):
    assert bounds_of([Decimal(value)], pa.decimal128(38, 2), tmp_path) == bound
    if abs(Decimal(value)) < 10:
        short = bounds_of(
            [Decimal(value)], pa.decimal128(9, 2), tmp_path, store_decimal_as_integer=True
        )
        assert short == bound


def test_floats_have_none_where_a_footer_hides_what_is_no_number(tmp_path):
    assert bounds_of([1.0, 2.0], pa.float64(), tmp_path) == (None, None)


def test_truth_has_bounds(tmp_path):
    assert bounds_of([True, None], pa.bool_(), tmp_path) == (True, True)


@pytest.mark.parametrize(
    "how", [{"use_deprecated_int96_timestamps": True}, {"write_statistics": False}]
)
def test_what_a_footer_does_not_tell_is_not_said(tmp_path, how):
    values = [datetime(2024, 3, 1, tzinfo=UTC)]
    assert bounds_of(values, US, tmp_path, **how) == (None, None)
    said = statistics_of(footer_of(pa.table({"c": [date(2024, 3, 1), None]}), str(tmp_path), **how))
    assert json.loads(said)["numRecords"] == 2
    assert json.loads(said)["nullCount"] == ({} if "write_statistics" in how else {"c": 1})
