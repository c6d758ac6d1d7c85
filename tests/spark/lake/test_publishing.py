"""What is published is there for every engine: its rows, their bounds, a change data feed."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import count

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake
from odd_paths import ALL_SIGNS
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from staged import staged
from vacuums import wait_for_the_next_millisecond

from strandline.errors import InputError
from strandline.lake.publish import apply_diff
from strandline.lake.publish.adopt import Adoption, Attempt
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.publish.staged_diff import Change, counts_of
from strandline.lake.store.commits import commits, days_changed
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import dataset_of
from strandline.lake.upkeep import upkeep
from strandline.tables import PublishedTable

pytestmark = pytest.mark.spark

TARGET = PublishedTable("windows", {}, ("day", "Name", "at"), "day", "at", has_older_slots=False)
DAYS = [date(2024, 3, 1), date(2024, 3, 2), date(2024, 3, 3), None]
AT = datetime(2024, 3, 1, 10, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("value", pa.int64()),
        ("a `b`.c, {d};=\t(e)", pa.struct([("n", pa.int64())])),
    ]
)
NAIVE = datetime(2024, 3, 5, 10, tzinfo=UTC).replace(tzinfo=None)
NUMBER = count()


@pytest.fixture
def store(tmp_path):
    return Lake.at(str(tmp_path / ALL_SIGNS)).pipeline("meter")


def attempt_of(run_id="run-1/observed"):
    return Attempt(run_id, f"{next(NUMBER):032}", 1_700_000_000_000)


def a_diff(rows):
    """Rows of (what becomes of it, day, name, at, value)."""
    columns = [*zip(*(row[:5] for row in rows), strict=True), [{"n": row[4]} for row in rows]]
    with_op = pa.schema([(OP, pa.string()), *SCHEMA])
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, with_op, strict=True)], with_op)


def publish(store, rows, attempt=None):
    changes = staged(store, a_diff(rows))
    found = Counter(row[0] for row in rows)
    counts = {op: found[op] for op in (INSERT, UPDATE, DELETE)}
    if store.table("windows") is None:
        apply_diff.create(store, TARGET, apply_diff.without_op(changes.schema))
    apply_diff.apply(store, Change(TARGET, changes, counts), attempt or attempt_of())


def held_by(store):
    rows = store.table("windows").to_pyarrow_table().to_pylist()
    found = {(row["day"], row["name"], row["at"]): row["value"] for row in rows}
    assert len(found) == len(rows)
    assert all(row["a `b`.c, {d};=\t(e)"] == {"n": row["value"]} for row in rows)
    return found


def as_by_spark(spark, store):
    frame = store.frame(spark, "windows").select("day", "name", "at", "value")
    rows = frame.toArrow().to_pylist()
    return {(row["day"], row["name"], row["at"]): row["value"] for row in rows}


@pytest.mark.story
def test_drawn_diffs_leave_what_a_dict_holds_and_twice_is_once(spark, store):
    chance = random.Random(20240301)
    identities = [(day, name, at) for day in DAYS for name in ("a", None) for at in (AT, None)]
    held, value = {}, count()
    for draw in range(3):
        diff = []
        for identity in chance.sample(identities, 8):
            op = chance.choice([UPDATE, DELETE]) if identity in held else INSERT
            diff.append((op, *identity, next(value)))
        if not draw:
            diff = [(INSERT, *row[1:]) for row in diff]
        for op, *identity, value_ in diff:
            held.pop(tuple(identity), None)
            if op != DELETE:
                held[tuple(identity)] = value_
        same_run = f"run-{draw}"
        for _ in range(2):
            publish(store, diff, attempt_of(same_run))
            assert held_by(store) == held
        assert as_by_spark(spark, store) == held


@pytest.mark.story
def test_a_merge_is_one_commit_that_names_the_run_and_leaves_other_days_alone(spark, store):
    publish(store, [(INSERT, day, "a", AT, 1) for day in DAYS])
    before = store.table("windows")
    publish(store, [(UPDATE, DAYS[0], "a", AT, 2), (DELETE, None, "a", AT, 1)])
    after = store.table("windows")
    assert after.version() == before.version() + 1
    assert next(commits(after))[1]["userMetadata"] == "run-1/observed"
    untouched = {path for path in before.file_uris() if "03-02" in path or "03-03" in path}
    assert len(untouched) == 2
    assert untouched < set(after.file_uris())
    assert held_by(store) == {(day, "a", AT): 2 if day == DAYS[0] else 1 for day in DAYS[:3]}
    # whoever reads this table as a landing table sees which days have changed
    assert days_changed(after, "day", before.version()) is None
    publish(store, [(DELETE, DAYS[1], "a", AT, 1), (INSERT, DAYS[2], "b", AT, 1)])
    assert days_changed(store.table("windows"), "day", after.version()) == {DAYS[1], DAYS[2]}


def test_all_is_replaced_in_one_commit_by_rows_with_other_columns(spark, store):
    publish(store, [(INSERT, day, "a", AT, 1) for day in DAYS])
    before = store.version("windows")
    row = {"day": date(2024, 3, 5), "a.b ;": "x", "wall": NAIVE}
    schema = pa.schema([("day", pa.date32()), ("a.b ;", pa.string()), ("wall", pa.timestamp("us"))])
    rows = staged(store, pa.Table.from_pylist([row], schema))
    for done in (1, 2):
        apply_diff.apply(store, Change(TARGET, rows, {INSERT: 1}, replaces_all=True), attempt_of())
        table = store.table("windows")
        expected = {"day": date(2024, 3, 5), "a.b ;": "x", "wall": NAIVE}
        assert table.to_pyarrow_table().to_pylist() == [expected]
        assert store.frame(spark, "windows").toArrow().to_pylist() == [expected]
        changed = [at for at, one in commits(table) if one["operation"] == "WRITE"]
        assert len([version for version in changed if version > before]) == done
        assert next(commits(table))[1]["userMetadata"] == "run-1/observed"
    assert len(held_by(store.at({"windows": before}))) == len(DAYS)


def test_upkeep_removes_what_a_dead_attempt_has_left_and_no_file_in_use(spark, store):
    publish(store, [(INSERT, day, "a", AT, 1) for day in DAYS])
    table, dead = store.table("windows"), attempt_of("dead")
    rows = a_diff([(INSERT, DAYS[0], "z", AT, 1)]).drop(OP)
    Adoption(store.uri("windows"), "day", dead).write([rows], table)
    (left,) = [one for one in store_folder(store).iterdir() if dead.token in one.name]
    unfinished = left / "_temporary/0/_temporary/attempt_1/day=2024-03-01/part-0.parquet"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_text("half a file")
    upkeep.vacuum(table, 30, ())
    assert unfinished.exists()
    upkeep.vacuum(table, 0, ())
    assert not left.exists()
    assert len(held_by(store)) == len(as_by_spark(spark, store)) == len(DAYS)
    publish(store, [(DELETE, day, "a", AT, 1) for day in DAYS])
    wait_for_the_next_millisecond()
    upkeep.vacuum(store.table("windows"), 0, ())
    assert [one.name for one in store_folder(store).iterdir()] == ["_delta_log"]


def store_folder(store):
    return store.lake.folder / "meter" / "windows"


# ------------------------------------------------------------------------------- a change data feed


def with_feed(store, rows):
    publish(store, rows)
    store.table("windows").alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    return store.version("windows") + 1


def feed_since(spark, store, version):
    options = {"readChangeFeed": "true", "startingVersion": version}
    rows = spark.read.format("delta").options(**options).load(store.uri("windows")).collect()
    by_spark = Counter((row["_change_type"], row["day"], row["name"], row["value"]) for row in rows)
    rows = pa.table(store.table("windows").load_cdf(starting_version=version)).to_pylist()
    by_delta_rs = Counter(
        (row["_change_type"], row["day"], row["name"], row["value"]) for row in rows
    )
    assert by_spark == by_delta_rs
    return by_spark


@pytest.mark.only_on_spark(reason="reads a change data feed")
def test_a_change_data_feed_holds_the_changes_and_no_other_row(spark, store):
    first = with_feed(store, [(INSERT, day, name, AT, 1) for day in DAYS for name in ("a", None)])
    diff = [
        (UPDATE, DAYS[0], "a", AT, 2),
        (DELETE, None, None, AT, 1),
        (INSERT, DAYS[1], "c", None, 3),
    ]
    publish(store, diff)
    expected = {
        ("update_preimage", DAYS[0], "a", 1): 1,
        ("update_postimage", DAYS[0], "a", 2): 1,
        ("delete", None, None, 1): 1,
        ("insert", DAYS[1], "c", 3): 1,
    }
    assert feed_since(spark, store, first) == expected
    publish(store, [(INSERT, DAYS[2], "d", AT, 4)], attempt_of("run-2"))
    expected[("insert", DAYS[2], "d", 4)] = 1
    assert feed_since(spark, store, first) == expected
    held = held_by(store)
    assert held[DAYS[0], "a", AT] == 2
    assert (None, None, AT) not in held
    assert len(held) == 2 * len(DAYS) + 1
    assert not [one for one in store_folder(store).iterdir() if one.name.startswith("changes-")]


def test_a_feed_is_not_written_by_keys_that_delta_rs_compares_in_another_way(spark, store):
    with_feed(store, [(INSERT, DAYS[0], "a", AT, 1)])
    by_nested = PublishedTable(
        "windows", {}, ("day", "a `b`.c, {d};=\t(e)"), "day", "at", has_older_slots=False
    )
    changes = staged(store, a_diff([(UPDATE, DAYS[0], "a", AT, 2)]))
    before = store.version("windows")
    with pytest.raises(InputError, match="change data feed"):
        apply_diff.apply(store, Change(by_nested, changes, counts_of(changes)), attempt_of())
    assert store.version("windows") == before


# ------------------------------------------------------------------------------ found by its bounds

WIDE = {
    "whole": pa.int64(),
    "short": pa.int16(),
    "text": pa.string(),
    "when": pa.timestamp("us", tz="UTC"),
    "wall": pa.timestamp("us"),
    "on": pa.date32(),
    "exact": pa.decimal128(9, 2),
    "long_exact": pa.decimal128(38, 3),
    "ratio": pa.float64(),
    "yes": pa.bool_(),
}


def a_value(chance, kind):
    micros = timedelta(microseconds=chance.randrange(-(10**12), 10**12))
    return chance.choice(
        {
            pa.int64(): [chance.randrange(-(2**63), 2**63), -1, 2**53 + 1],
            pa.int16(): [chance.randrange(-99, 99)],
            pa.string(): ["ä" * chance.randrange(60), "a" * 33, "\U0010ffff" * 40, "", "\x00b"],
            pa.timestamp("us", tz="UTC"): [AT + micros],
            pa.timestamp("us"): [AT.replace(tzinfo=None) + micros],
            pa.date32(): [date(2024, 3, 1) + timedelta(chance.randrange(-9999, 9999))],
            pa.decimal128(9, 2): [Decimal(chance.randrange(-(10**9) + 1, 10**9)) / 100],
            pa.decimal128(38, 3): [Decimal(chance.randrange(-(10**27), 10**27)) / 1000, Decimal(1)],
            pa.float64(): [chance.random(), float("nan"), float("inf"), -0.0, 1e300],
            pa.bool_(): [True, False],
        }[kind]
    )


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A table with a file for each of many days, and a row or two in each."""
    chance = random.Random(7)
    folder = str(tmp_path_factory.mktemp("wide") / "table")
    rows = [
        {"day": date(2024, 1, 1) + timedelta(number // 2), "number": number}
        | {name: chance.choice([None, *[a_value(chance, k)] * 5]) for name, k in WIDE.items()}
        for number in range(40)
    ]
    rows = pa.Table.from_pylist(
        rows, pa.schema([("day", pa.date32()), ("number", pa.int64()), *WIDE.items()])
    )
    write_deltalake(folder, rows.slice(0, 0), partition_by=["day"])
    table = DeltaTable(folder)
    adoption = Adoption(folder, "day", Attempt("run", "0", 0))
    written = adoption.write([rows], table)
    adoption.append(table, written, "run/wide")
    assert len(written.files) == 20
    return folder, rows


@pytest.mark.story
@pytest.mark.parametrize("name", WIDE)
def test_spark_finds_rows_by_their_values(session, wide, name):
    folder, rows = wide
    frame = session.read.format("delta").load(folder)
    kind = frame.schema[name].dataType.simpleString()
    column = F.col(name)
    some = session.createDataFrame(rows.select(["number", name]).drop_null().slice(0, 2))
    queries, expected = [], []
    for number, value, text in some.select("number", name, column.cast("string")).collect():
        literal = F.lit(value if name == "text" else text).cast(kind)
        for holds in (column == literal, column.between(literal, literal)):
            expected.append((len(queries), number))
            queries.append(frame.where(holds).select(F.lit(len(queries)).alias("query"), "number"))
    found = reduce(DataFrame.unionByName, queries).toArrow().to_pylist()
    assert set(expected) <= {(row["query"], row["number"]) for row in found}
    nulls = frame.where(column.isNull()).select("number").toArrow()["number"].to_pylist()
    assert set(nulls) == {row["number"] for row in rows.to_pylist() if row[name] is None}


@pytest.mark.parametrize("name", WIDE)
def test_rows_are_found_by_their_values_without_spark(wide, name):
    folder, rows = wide
    dataset, column = dataset_of(DeltaTable(folder)), ds.field(name)
    for number, value in zip(rows["number"], rows[name], strict=True):
        if not value.is_valid:
            conditions = [column.is_null()]
        elif value.as_py() != value.as_py():
            conditions = [column.is_nan()]
        else:
            conditions = [column == value]
            conditions += [] if name == "yes" else [column >= value, column <= value]
        for holds in conditions:
            found = dataset.to_table(columns=["number"], filter=holds)["number"].to_pylist()
            assert number.as_py() in found, (name, value)


@pytest.mark.parametrize("name", ["when", "wall", "text", "on", "whole"])
def test_the_files_that_may_hold_a_value_hold_it(wide, name):
    folder, rows = wide
    table = DeltaTable(folder)
    for number, value in zip(rows["number"].to_pylist(), rows[name].to_pylist(), strict=True):
        if value is None or value == "\x00b":
            continue
        said = value.isoformat() if hasattr(value, "isoformat") else value
        text = str(said) if name == "whole" else f"'{said}'"
        for condition in (f'"{name}" = {text}', f'"{name}" BETWEEN {text} AND {text}'):
            files = dataset_of(table, condition)
            assert number in files.to_table(columns=["number"])["number"].to_pylist(), condition
