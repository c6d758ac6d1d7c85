"""A diff of few rows without Spark; `tests/spark/lake/test_diff.py` holds it to Spark's own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from strandline.lake import small_diff as small
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.small_diff import published_rows, small_diff, staged_rows

SCHEMA = pa.schema(
    [("key", pa.string()), ("more", pa.int64()), ("value", pa.int64()), ("run_id", pa.string())]
)
KEYS = ["key", "more"]
identities = st.tuples(st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0, 1]))
contents = st.dictionaries(identities, st.sampled_from([None, 1, 2]))


def a_table(content, run_id="run-1", schema=SCHEMA):
    rows = [(*identity, value, run_id) for identity, value in content.items()]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema)


@given(contents, contents)
def test_what_differs_by_key_is_told_once_and_who_wrote_a_row_is_no_difference(staged, published):
    changes = small_diff(a_table(staged, "run-2"), a_table(published), KEYS)
    expected = {(key, INSERT, "run-2") for key in staged.keys() - published.keys()}
    expected |= {(key, DELETE, "run-1") for key in published.keys() - staged.keys()}
    both = staged.keys() & published.keys()
    expected |= {(key, UPDATE, "run-2") for key in both if staged[key] != published[key]}
    found = [((row["key"], row["more"]), row[OP], row["run_id"]) for row in changes.to_pylist()]
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"key": ["a"], "more": [1], "value": [1]}),
        pa.table({"key": ["a"], "more": [1], "value": [1], "RUN_ID": ["r"]}),
        a_table({("a", 1): 1}, schema=SCHEMA.set(2, pa.field("value", pa.int32()))),
        pa.concat_tables([a_table({("a", 1): 1}), a_table({("a", 1): 2})]),
    ],
    ids=["a column less", "a name in other case", "a narrower type", "a key twice"],
)
def test_whatever_is_not_plainly_the_same_columns_and_single_keys_is_left_to_spark(other):
    usual = a_table({("b", 0): 1})
    assert small_diff(other, usual, KEYS) is None
    assert small_diff(usual, other, KEYS) is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.float64()), [1.0]),
        (pa.struct([("a", pa.list_(pa.float32()))]), {"a": [1.0]}),
        (pa.map_(pa.string(), pa.int32()), [("x", 1)]),
    ],
)
def test_nested_numbers_and_maps_are_left_to_spark_and_no_nested_key_is_compared(kind, value):
    rows = pa.table({"key": ["a"], "value": pa.array([value], kind)})
    assert small_diff(rows, rows, ["key"]) is None
    nested = pa.table({"key": pa.array([["a"]]), "value": [1]})
    assert small_diff(nested, nested, ["key"]) is None


def test_of_a_table_only_the_files_count_that_may_hold_what_is_asked_for(tmp_path, monkeypatch):
    folder = str(tmp_path)
    rows = pa.table({"day": [1, 1, 2], "at": [1, 2, 3]})
    write_deltalake(folder, rows, partition_by=["day"])
    table = DeltaTable(folder)
    weights = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
    monkeypatch.setattr(small, "SMALL_BYTES", max(weights))
    assert published_rows(table, ds.field("at") > 2)["at"].to_pylist() == [3]
    assert published_rows(table, ds.field("at") > 1) is None
    assert published_rows(table, ds.field("at") > 3).num_rows == 0


def test_a_staged_part_is_small_by_its_files_and_one_on_an_object_store_is_not(
    tmp_path, monkeypatch
):
    folder = tmp_path / "a part"
    folder.mkdir()
    assert staged_rows(str(folder)) is None
    for number in range(2):
        pq.write_table(pa.table({"key": [number]}), folder / f"part-{number}.parquet")
    for uri in (str(folder), folder.as_uri()):
        assert staged_rows(uri)["key"].to_pylist() == [0, 1]
    assert staged_rows("s3://bucket/part") is None
    monkeypatch.setattr(small, "SMALL_BYTES", 100)
    assert staged_rows(str(folder)) is None
