"""Small diffs brought into a table without Spark: what goes, what comes, what is left to Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import RetryableError
from strandline.lake import small_diff
from strandline.lake.diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.rewrite import rewrite, with_changes

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("key", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("value", pa.int64()),
    ]
)
KEYS = ["day", "key", "at"]
AT = datetime(2024, 3, 1, 12, tzinfo=UTC)
FIRST, SECOND, THIRD = date(2024, 3, 1), date(2024, 3, 2), date(2024, 3, 3)

days = st.sampled_from([None, FIRST, SECOND, THIRD])
identities = st.tuples(
    days, st.sampled_from([None, "", "a", "a'`\"b"]), st.sampled_from([None, AT])
)


def a_table_of(held, schema=SCHEMA):
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in held], schema)


def a_table(folder, held, schema=SCHEMA):
    write_deltalake(folder, a_table_of(held, schema), partition_by=["day"], mode="overwrite")
    return DeltaTable(folder)


def a_diff(rows, schema=SCHEMA):
    named = [dict(zip([OP, *schema.names], row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, pa.schema([(OP, pa.string()), *schema]))


def by_key(rows):
    return {tuple(row[name] for name in KEYS): row["value"] for row in rows.to_pylist()}


def held_by(folder):
    return by_key(DeltaTable(folder).to_pyarrow_table())


@given(
    held=st.dictionaries(identities, st.integers(0, 9)),
    changed=st.dictionaries(
        identities, st.tuples(st.sampled_from([INSERT, UPDATE, DELETE]), st.integers(10, 19))
    ),
)
def test_rows_of_a_key_are_replaced_or_go_all_others_stay_and_twice_is_once(held, changed):
    rows = a_table_of([(*identity, value) for identity, value in held.items()])
    diff = a_diff([(op, *identity, value) for identity, (op, value) in changed.items()])
    expected = dict(held)
    for identity, (op, value) in changed.items():
        expected.pop(identity, None)
        if op != DELETE:
            expected[identity] = value
    for _ in range(2):
        rows = with_changes(rows, diff, KEYS)
        assert by_key(rows) == expected
        assert rows.num_rows == len(expected)


@pytest.mark.parametrize("rest", [[], [(THIRD, "a", AT, 7), (None, "a", AT, 8)]])
def test_a_diff_is_in_the_table_however_often_it_is_brought_there(tmp_path, rest):
    folder = str(tmp_path)
    a_table(folder, [(FIRST, "a", AT, 1), (FIRST, None, None, 2), (None, None, AT, 3), *rest])
    diff = a_diff(
        [
            (DELETE, FIRST, "a", AT, 1),
            (DELETE, FIRST, None, None, 2),
            (UPDATE, None, None, AT, 4),
            (INSERT, SECOND, None, AT, 5),
        ]
    )
    for _ in range(2):
        assert rewrite(DeltaTable(folder), "day", KEYS, diff, "run-1")
        rows = [(None, None, AT, 4), (SECOND, None, AT, 5), *rest]
        assert held_by(folder) == {tuple(identity): value for *identity, value in rows}


def test_all_rows_of_its_partitions_may_go(tmp_path):
    table = a_table(str(tmp_path), [(FIRST, "a", AT, 1), (None, "a", AT, 3)])
    diff = a_diff([(DELETE, FIRST, "a", AT, 1), (DELETE, None, "a", AT, 3)])
    assert rewrite(table, "day", KEYS, diff, "run-1")
    assert held_by(str(tmp_path)) == {}


def test_it_is_one_commit_that_names_the_run_and_leaves_other_partitions_alone(tmp_path):
    folder = str(tmp_path)
    table = a_table(folder, [(FIRST, "a", AT, 1), (SECOND, "a", AT, 2), (None, "a", AT, 3)])
    before = {path for path in table.file_uris() if "2024-03-02" in path}
    assert rewrite(table, "day", KEYS, a_diff([(UPDATE, FIRST, "a", AT, 5)]), "run-1")
    after = DeltaTable(folder)
    assert after.version() == 1
    assert after.history(1)[0]["userMetadata"] == "run-1"
    assert before <= set(after.file_uris())
    assert held_by(folder) == {(FIRST, "a", AT): 5, (SECOND, "a", AT): 2, (None, "a", AT): 3}


def test_columns_of_any_kind_and_name_come_through(tmp_path):
    schema = pa.schema(
        [
            *SCHEMA,
            ("a `b`.c", pa.map_(pa.string(), pa.int32())),
            ("parts", pa.list_(pa.struct([("n", pa.decimal128(9, 2))]))),
            ("raw", pa.binary()),
            ("ratio", pa.float64()),
        ]
    )
    first = (FIRST, "a", AT, 1, [("x", 1)], [{"n": Decimal("1.00")}], b"\x00\xff", 0.5)
    second = (FIRST, "b", AT, 2, [("y", 2)], [], b"", -0.0)
    table = a_table(str(tmp_path), [first, second], schema)
    changed = (UPDATE, FIRST, "a", AT, 9, [("z", 3)], None, None, 1.5)
    assert rewrite(table, "day", KEYS, a_diff([changed], schema), "run-1")
    found = DeltaTable(str(tmp_path)).to_pyarrow_table().select(schema.names).to_pylist()
    rows = sorted(tuple(row.values()) for row in found)
    assert rows == [changed[1:], second]


def test_what_the_tables_columns_are_marked_with_stays(tmp_path):
    folder, fields = str(tmp_path), [*Schema.from_arrow(SCHEMA).fields]
    fields[3] = Field("value", fields[3].type, metadata={"marked": "true"})
    DeltaTable.create(folder, Schema(fields), partition_by=["day"])
    assert rewrite(DeltaTable(folder), "day", KEYS, a_diff([(UPDATE, FIRST, "a", AT, 5)]), "run-1")
    assert DeltaTable(folder).schema().fields[3].metadata == {"marked": "true"}
    assert held_by(folder) == {(FIRST, "a", AT): 5}


@pytest.mark.parametrize(
    "reason", ["floating key", "nested key", "missing column", "large", "change feed"]
)
def test_what_it_cannot_do_as_spark_would_it_leaves_undone(tmp_path, monkeypatch, reason):
    schema, diff = SCHEMA, a_diff([(UPDATE, FIRST, "a", AT, 5)])
    keys = KEYS
    if reason == "floating key":
        schema = schema.append(pa.field("more", pa.float64()))
        diff, keys = a_diff([(UPDATE, FIRST, "a", AT, 5, -0.0)], schema), [*KEYS, "more"]
    if reason == "nested key":
        schema = schema.append(pa.field("more", pa.list_(pa.int64())))
        diff, keys = a_diff([(UPDATE, FIRST, "a", AT, 5, [1])], schema), [*KEYS, "more"]
    if reason == "missing column":
        diff = diff.drop("value")
    if reason == "large":
        monkeypatch.setattr(small_diff, "SMALL_BYTES", 1)
    row = (FIRST, "a", AT, 1, *([None] * (len(schema) - len(SCHEMA))))
    feed = {"delta.enableChangeDataFeed": "true"} if reason == "change feed" else None
    write_deltalake(tmp_path, a_table_of([row], schema), partition_by=["day"], configuration=feed)
    table = DeltaTable(tmp_path)
    assert not rewrite(table, "day", keys, diff, "run-1")
    assert DeltaTable(str(tmp_path)).version() == 0


def test_the_weight_is_that_of_the_partitions_touched_alone(tmp_path, monkeypatch):
    table = a_table(str(tmp_path), [(FIRST, "a", AT, 1), (SECOND, "a", AT, 2), (None, "a", AT, 3)])
    weights = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
    monkeypatch.setattr(small_diff, "SMALL_BYTES", 2 * max(weights))
    touching = a_diff([(UPDATE, FIRST, "a", AT, 5), (DELETE, None, "a", AT, None)])
    assert rewrite(table, "day", KEYS, touching, "run-1")
    all_of_it = a_diff([(DELETE, day, "a", AT, None) for day in (FIRST, SECOND, THIRD, None)])
    monkeypatch.setattr(small_diff, "SMALL_BYTES", max(weights))
    assert not rewrite(DeltaTable(str(tmp_path)), "day", KEYS, all_of_it, "run-2")


def test_a_table_that_somebody_has_written_since_it_was_opened_is_to_be_tried_again(tmp_path):
    folder = str(tmp_path)
    table = a_table(folder, [(FIRST, "a", AT, 1)])
    assert rewrite(DeltaTable(folder), "day", KEYS, a_diff([(UPDATE, FIRST, "a", AT, 2)]), "other")
    with pytest.raises(RetryableError, match="without the pipeline's lock"):
        rewrite(table, "day", KEYS, a_diff([(UPDATE, FIRST, "a", AT, 3)]), "run-1")
    assert held_by(folder) == {(FIRST, "a", AT): 2}
