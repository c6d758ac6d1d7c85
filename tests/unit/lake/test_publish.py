"""A diff brought into its table: in one commit, twice as once, and no other date written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, Field, Schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from staged import staged

from strandline.errors import RetryableError
from strandline.lake.publish import apply_diff, batches
from strandline.lake.publish.adopt import Adoption, Attempt
from strandline.lake.publish.arrow_diff import DELETE, INSERT, OP, UPDATE
from strandline.lake.publish.staged_diff import Change, whole_part
from strandline.lake.publish.staging import Staging
from strandline.lake.store.commits import commits
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import path_of
from strandline.lake.store.reads import started_at
from strandline.lake.upkeep import upkeep
from strandline.model.intervals import TimeRange, instant_of
from strandline.pipeline.diff.diff import outside
from strandline.pipeline.request.outcome import Outcome
from strandline.tables import COMPLETENESS, PublishedTable

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("key", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("value", pa.int64()),
    ]
)
KEYS = ("day", "key", "at")
TARGET = PublishedTable("windows", {}, KEYS, "day", "at", has_older_slots=False)
AT = datetime(2024, 3, 1, 12, tzinfo=UTC)
FIRST, SECOND, THIRD = date(2024, 3, 1), date(2024, 3, 2), date(2024, 3, 3)
NUMBER = count()

identities = st.tuples(
    st.sampled_from([None, FIRST, SECOND, THIRD]),
    st.sampled_from([None, "", "a", "a'`\"b"]),
    st.sampled_from([None, AT]),
)
contents = st.dictionaries(identities, st.integers(0, 9))
changes_of = st.dictionaries(
    identities, st.tuples(st.sampled_from([UPDATE, DELETE]), st.integers(10, 19)), min_size=1
)


@pytest.fixture
def store(tmp_path):
    return Lake.at(str(tmp_path)).pipeline("meter")


def attempt_of(run_id="run-1"):
    return Attempt(run_id, f"{next(NUMBER):032}", 1_700_000_000_000)


def publish(store, rows, schema=SCHEMA, attempt=None, target=TARGET):
    """Publish rows of (what becomes of it, day, key, at, value)."""
    named = [dict(zip([OP, *schema.names], row, strict=True)) for row in rows]
    changes = pa.Table.from_pylist(named, pa.schema([(OP, pa.string()), *schema]))
    part = staged(store, changes)
    if store.table("windows") is None:
        apply_diff.create(store, target, apply_diff.without_op(part.schema))
    found = Counter(row[0] for row in rows)
    counts = {op: found[op] for op in (INSERT, UPDATE, DELETE)}
    apply_diff.apply(store, Change(target, part, counts), attempt or attempt_of())


def held_by(store):
    rows = store.table("windows").to_pyarrow_table().to_pylist()
    found = {tuple(row[name] for name in KEYS): row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def some_days(store, *more):
    publish(store, [(INSERT, day, "a", AT, 1) for day in (FIRST, SECOND, None)] + [*more])
    return store.table("windows")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(contents, changes_of, st.sampled_from([200, 2**28]))
def test_rows_of_a_key_are_replaced_or_go_all_others_stay_and_twice_is_once(
    tmp_path_factory, held, changed, bytes_at_once
):
    store = Lake.at(str(tmp_path_factory.mktemp("lake"))).pipeline("meter")
    publish(
        store, [(INSERT, *key, value) for key, value in held.items()] or [(INSERT, *[None] * 4)]
    )
    expected = dict(held) if held else {(None, None, None): None}
    expected, diff = dict(expected), []
    for key, (op, value) in changed.items():
        if op == DELETE and key not in expected:
            continue
        diff.append((op if key in expected else INSERT, *key, value))
        expected |= {key: value}
        if op == DELETE:
            del expected[key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BYTES_AT_ONCE", bytes_at_once)
        for _ in range(2):
            publish(store, diff, attempt=attempt_of("run-2"))
            assert held_by(store) == expected


def test_it_is_one_commit_that_names_the_run_and_leaves_other_partitions_alone(store):
    before = {path for path in some_days(store).file_uris() if "2024-03-02" in path}
    publish(
        store, [(UPDATE, FIRST, "a", AT, 5), (DELETE, None, "a", AT, 1)], attempt=attempt_of("x")
    )
    after = store.table("windows")
    assert after.version() == 2
    assert next(commits(after))[1]["userMetadata"] == "x"
    assert len(before) == 1
    assert before <= set(after.file_uris())
    assert held_by(store) == {(FIRST, "a", AT): 5, (SECOND, "a", AT): 1}


def test_updated_rows_that_have_gone_since_are_brought_back(store):
    some_days(store)
    publish(store, [(DELETE, FIRST, "a", AT, 1)])  # as upkeep removes old quarantined rows
    publish(store, [(UPDATE, FIRST, "a", AT, 5), (UPDATE, SECOND, "a", AT, 6)])
    assert held_by(store) == {(FIRST, "a", AT): 5, (SECOND, "a", AT): 6, (None, "a", AT): 1}


def test_a_table_with_a_change_feed_takes_a_diff_of_tens_of_thousands_of_days(store):
    """At some 20,000 days in one condition delta-rs ended the process."""
    table = some_days(store)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    days = [FIRST - timedelta(number) for number in range(25_000)]
    gone = [(DELETE, day, "a", AT, 1) for day in days]
    publish(store, [*gone, (UPDATE, None, "a", AT, 2), (INSERT, THIRD, "a", AT, 3)])
    assert held_by(store) == {(SECOND, "a", AT): 1, (None, "a", AT): 2, (THIRD, "a", AT): 3}


def test_all_rows_of_its_partitions_may_go(store):
    some_days(store)
    publish(store, [(DELETE, day, "a", AT, 1) for day in (FIRST, SECOND, None)])
    assert held_by(store) == {}


def test_columns_of_any_kind_and_name_come_through(store):
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
    publish(store, [(INSERT, *first), (INSERT, *second)], schema)
    changed = (FIRST, "a", AT, 9, [("z", 3)], None, None, 1.5)
    publish(store, [(UPDATE, *changed)], schema)
    found = store.table("windows").to_pyarrow_table().select(schema.names).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [changed, second]


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float64())])
def test_keys_are_found_that_arrow_alone_would_not_find(store, kind):
    target = PublishedTable("windows", {}, (*KEYS, "more"), "day", "at", has_older_slots=False)
    schema = SCHEMA.append(pa.field("more", kind))
    zero, minus = (0.0, -0.0) if kind == pa.float64() else ([0.0], [-0.0])
    publish(store, [(INSERT, FIRST, "a", AT, 1, zero)], schema, target=target)
    publish(store, [(UPDATE, FIRST, "a", AT, 2, minus)], schema, target=target)
    assert held_by(store) == {(FIRST, "a", AT): 2}


def test_what_the_tables_columns_are_marked_with_stays(store):
    fields = [*Schema.from_arrow(SCHEMA).fields]
    fields[3] = Field("value", fields[3].type, metadata={"marked": "true"})
    DeltaTable.create(store.uri("windows"), Schema(fields), partition_by=["day"])
    publish(store, [(INSERT, FIRST, "a", AT, 1)])
    publish(store, [(UPDATE, FIRST, "a", AT, 5)])
    assert store.table("windows").schema().fields[3].metadata == {"marked": "true"}
    assert held_by(store) == {(FIRST, "a", AT): 5}


def test_a_column_that_a_diff_does_not_have_keeps_its_values(store):
    schema = SCHEMA.append(pa.field("later", pa.int64()))
    publish(store, [(INSERT, FIRST, key, AT, 1, 7) for key in "ab"], schema)
    publish(store, [(UPDATE, FIRST, "a", AT, 2), (INSERT, FIRST, "c", AT, 3)])
    rows = store.table("windows").to_pyarrow_table().to_pylist()
    found = {row["key"]: (row["value"], row["later"]) for row in rows}
    assert found == {"a": (2, 7), "b": (1, 7), "c": (3, None)}


@pytest.mark.parametrize("ops", [[INSERT], [INSERT, UPDATE]])
def test_staged_rows_that_are_lost_publish_nothing(store, ops):
    version = some_days(store).version()
    changes = pa.Table.from_pylist([], pa.schema([(OP, pa.string()), *SCHEMA]))
    counts = {INSERT: 0, UPDATE: 0, DELETE: 0} | dict.fromkeys(ops, 1)
    if UPDATE in ops:  # another row is deleted in place of that
        gone = [{OP: DELETE, "day": FIRST, "key": "a", "at": AT, "value": 1}]
        changes = pa.Table.from_pylist(gone, changes.schema)
    part = staged(store, changes)
    with pytest.raises(RetryableError, match="rows were written instead of"):
        apply_diff.apply(store, Change(TARGET, part, counts), attempt_of("run-2"))
    every = Change(TARGET, staged(store, changes.drop(OP)), {INSERT: 5}, replaces_all=True)
    with pytest.raises(RetryableError, match=r"\d rows were written instead of 5"):
        apply_diff.apply(store, every, attempt_of())
    assert store.version("windows") == version


def rebuilt(at: datetime, gaps_around: datetime | None = None) -> Outcome:
    """The outcome of a run over one instant, which has listed the gap at another one again."""
    one = TimeRange(instant_of(at), instant_of(at) + 1)
    around = [instant_of(gaps_around)] if gaps_around else []
    again = ds.field("gap") & started_at("slot_start", around)
    return Outcome("meter", "backfill", range=one, gaps_around=again)


@pytest.mark.parametrize("ops", [[INSERT, INSERT], [UPDATE, INSERT], [UPDATE, DELETE]])
def test_of_a_change_without_the_ranges_of_runs_only_the_other_rows_are_there_and_counted(
    store, ops
):
    times = [AT, AT + timedelta(hours=1)]
    rows = [{OP: op, "day": FIRST, "at": at} for op, at in zip(ops, times, strict=True)]
    rows = pa.Table.from_pylist(rows, pa.schema([(OP, pa.string()), *SCHEMA]))
    part = staged(store, rows.drop(OP) if ops[0] == INSERT else rows)
    change = Change(TARGET, part, dict.fromkeys((INSERT, UPDATE, DELETE), 9))
    (found,) = outside([change], [rebuilt(AT), rebuilt(AT + timedelta(milliseconds=2))])
    assert found.rows.table()["at"].to_pylist() == times[1:]
    assert found.counts == {INSERT: 0, UPDATE: 0, DELETE: 0} | {ops[1]: 1}
    assert outside([change], []) == [change]


def test_of_a_change_of_the_calendar_the_gaps_around_the_ranges_of_runs_are_left_out_too(store):
    hours = [AT + timedelta(hours=n) for n in range(4)]
    slots = zip(hours, [False, True, False, True], strict=True)
    rows = pa.Table.from_pylist([{OP: INSERT, "slot_start": at, "gap": gap} for at, gap in slots])
    change = Change(COMPLETENESS, staged(store, rows), {INSERT: 4})
    runs = [rebuilt(hours[0], gaps_around=hours[1]), rebuilt(hours[0], gaps_around=hours[2])]
    (found,) = outside([change], runs)
    assert found.rows.table()["slot_start"].to_pylist() == hours[2:]
    assert found.counts == {INSERT: 2, UPDATE: 0, DELETE: 0}


def test_a_table_that_somebody_writes_meanwhile_is_to_be_tried_again(store, monkeypatch):
    some_days(store)
    write = Adoption.write

    def write_slowly(*arguments):
        written = write(*arguments)
        DeltaTable(store.uri("windows")).delete()
        return written

    monkeypatch.setattr(Adoption, "write", write_slowly)
    with pytest.raises(RetryableError, match="without the pipeline's lock"):
        publish(store, [(UPDATE, FIRST, "a", AT, 2)])
    assert held_by(store) == {}


def test_no_two_attempts_write_into_one_folder(store):
    attempt = attempt_of("run-1")
    publish(store, [(INSERT, FIRST, "a", AT, 1)], attempt=attempt)
    again = Attempt("run-2", attempt.token, 0)
    publish(store, [(INSERT, FIRST, "b", AT, 1)], attempt=again)
    with pytest.raises(FileExistsError, match="already exists"):
        publish(store, [(UPDATE, FIRST, "b", AT, 2)], attempt=again)


def test_an_append_is_done_once_and_by_another_run_again(store):
    for run_id in ("run-1", "run-1", "run-2"):
        publish(store, [(INSERT, FIRST, run_id, AT, 1)], attempt=attempt_of(run_id))
    assert held_by(store) == {(FIRST, "run-1", AT): 1, (FIRST, "run-2", AT): 1}


# ----------------------------------------------------------- staged files that are what shall stand


def a_part(store, *files, wanted=None):
    """A part of a first run: a file of each list of (day, key, at, value)."""
    tables = [
        pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        for rows in files
    ]
    for number, rows in enumerate(tables):
        part = Staging(None, store, "run").put("windows", [rows], piece=number)
    if store.table("windows") is None:
        apply_diff.create(store, TARGET, part.schema)
    return replace(part, wanted=wanted)


def publish_whole(store, part):
    for _ in range(2):
        apply_diff.apply(store, whole_part(TARGET, part), attempt_of())


def linked(store, part):
    """Of the staged files those that are the table's, too, without a copy."""
    staged_ = {file.stat().st_ino: file.name for file in Path(part.place).glob("*.parquet")}
    there = (path_of(uri) for uri in store.table("windows").file_uris())
    return {staged_[file.stat().st_ino] for file in there if file.stat().st_ino in staged_}


def test_staged_files_of_one_date_become_the_tables_without_a_copy(store):
    both = [(FIRST, "c", AT, 3), (SECOND, "d", AT, 4)]
    files = [[(FIRST, "a", AT, 1)], [(None, "b", AT, 2)], both]
    part = a_part(store, *files)
    publish_whole(store, part)
    assert linked(store, part) == {"part-0.parquet", "part-1.parquet"}
    expected = {row[:3]: row[3] for rows in files for row in rows}
    store.drop_staging("run")
    assert held_by(store) == expected
    assert store.rows("windows") == 4
    publish(store, [(UPDATE, FIRST, "a", AT, 7), (DELETE, None, "b", AT, 2)])
    assert held_by(store) == {
        **{key: value for key, value in expected.items() if key[1] in {"c", "d"}},
        (FIRST, "a", AT): 7,
    }


def test_of_a_file_that_holds_other_rows_too_those_that_shall_stand_are_copied(store):
    files = [[(FIRST, "a", AT, 1), (FIRST, "b", AT, 2)], [(FIRST, "c", AT, 1)]]
    part = a_part(store, *files, wanted=ds.field("value") == 1)
    publish_whole(store, part)
    assert linked(store, part) == {"part-1.parquet"}
    assert held_by(store) == {(FIRST, "a", AT): 1, (FIRST, "c", AT): 1}


def test_a_file_of_other_types_than_the_tables_is_copied(store):
    schema = SCHEMA.set(3, pa.field("value", pa.int32()))
    publish(store, [(INSERT, FIRST, "a", AT, 2**40)])
    row = dict(zip(SCHEMA.names, (FIRST, "b", AT, 1), strict=True))
    part = staged(store, pa.Table.from_pylist([row], schema), "run-2", "windows")
    apply_diff.apply(store, whole_part(TARGET, part), attempt_of("run-2"))
    assert linked(store, part) == set()
    assert held_by(store) == {(FIRST, "a", AT): 2**40, (FIRST, "b", AT): 1}


def test_files_that_no_commit_has_named_are_no_rows_and_another_attempt_brings_them(
    store, monkeypatch
):
    part = a_part(store, [(FIRST, "a", AT, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(Adoption, "append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            publish_whole(store, part)
    assert held_by(store) == {}
    publish_whole(store, part)
    assert held_by(store) == {(FIRST, "a", AT): 1}
    assert len([*(store.lake.folder / "meter/windows").glob("staged-*")]) == 2
    upkeep.vacuum(store.table("windows"), 0, ())
    assert len([*(store.lake.folder / "meter/windows").glob("staged-*")]) == 1
    assert held_by(store) == {(FIRST, "a", AT): 1}


def test_where_a_file_system_knows_no_second_name_a_file_is_copied(store, monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    part = a_part(store, [(FIRST, "a", AT, 1)])
    publish_whole(store, part)
    assert linked(store, part) == set()
    assert held_by(store) == {(FIRST, "a", AT): 1}
