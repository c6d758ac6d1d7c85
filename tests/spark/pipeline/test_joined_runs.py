"""Two landing tables joined run after run, as the reference and as Flink tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from joined import COGROUP, JOIN, PAIRED, Join
from lakes import SCHEMA, a_record, land
from landed_goldens import goldens, landed, published, told
from replayed import assert_books_balance

from strandline.errors import AuditFailedError
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.store.second_columns import second_columns
from strandline.pipeline.manage.erase import erase
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.spec import parse_any, parse_spec
from strandline.spec.join import SIDES
from strandline.spec.process import Process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def assert_told(join: Join, horizon: str) -> None:
    found = join.found()
    for name, rows in join.told(horizon).items():
        assert found[name] == rows, (horizon, name)
    assert_books_balance(join.line)


def assert_windows_told(join: Join, horizon: str) -> None:
    found = join.found_of_windows()
    for name, rows in join.told_of_windows(horizon).items():
        assert found[name] == rows, (horizon, name)


@pytest.mark.story
def test_pairs_come_day_by_day_as_the_reference_tells_them_whatever_lands_when(spark, tmp_path):
    join = Join(spark, tmp_path)
    join.line.advance("3")
    assert_told(join, "3")
    behind = [a_record("2 12:01", "2 12:00", position=1000 + n) for n in range(3)]
    join.sides["right"] += behind
    land(tmp_path, behind, table="landing/right", mode="append")
    outcome = join.line.advance("5")
    assert_told(join, "5")
    assert {book.name for book in outcome.books} >= {"range, left", "older slots, right"}
    found = join.found()
    assert len(found["pairs"]) > 100
    assert {row[0] for row in found["quarantine"] if row[2] == "late"} == {"left", "right"}


FUNCTION = """
def sides(key, window, records, watermark):
    came = list(zip(records["arrived_at"].to_pylist(), records["input"].to_pylist()))
    assert came == sorted(came), "not in order of arrival"
    return [{"came_from": [side for _, side in came]}]
"""
CALLED = COGROUP | {"process": "both:sides", "returns": {"came_from": "array<string>"}}


@pytest.mark.story
def test_windows_over_both_come_day_by_day_as_the_reference_tells_them(spark, tmp_path):
    join = Join(spark, tmp_path, CALLED)
    process = Process(name="both:sides", files={"both.py": FUNCTION})
    join.line = join.line.of(join.line.spec.model_copy(update={"process": process}))
    for day in ("3", "5"):
        join.line.advance(day)
    assert_windows_told(join, "5")
    assert_books_balance(join.line)
    assert {row["input"] for row in join.line.rows("quarantine")} == {"left", "right"}
    handed_over = [(row["came_from"], row["ours"], row["theirs"]) for row in fired(join)]
    assert all(len(came) == ours + theirs for came, ours, theirs in handed_over)
    assert all(came.count("left") == ours for came, ours, _ in handed_over)
    assert any(ours and theirs for _, ours, theirs in handed_over)


def fired(join: Join) -> list[dict[str, Any]]:
    """The published windows that have fired."""
    return [row for row in join.line.rows("windows") if row["state"] != "open"]


def test_source_columns_of_pairs_are_kept_whatever_becomes_of_their_type(spark, tmp_path):
    rows = [a_record("1 12:01", "1 12:00"), a_record("1 13:01", "1 10:00")]
    join = Join(spark, tmp_path, sides={"left": rows, "right": rows})
    join.line.advance("2")
    assert [(r["left_amount"], r["right_amount"]) for r in join.line.rows("pairs")] == [(1, 1)]

    def retype(side: str) -> None:
        landed = pa.Table.from_pylist(rows, SCHEMA)
        place = landed.schema.get_field_index("amount")
        landed = landed.set_column(place, "amount", pa.array([2.5] * len(rows)))
        write_deltalake(
            str(tmp_path / "landing" / side),
            landed,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=["arrived_on"],
        )

    # the staging is read back from its files, which have no marks of second columns
    retype("right")
    shown = join.line.backfill("1", "2", as_of="2", prepare=True)
    publish_prepared(join.line.spec, join.line.lake, shown.run_id, spark)
    late = {r["input"]: (r["amount"], r["amount__double"]) for r in join.line.rows("quarantine")}
    assert late == {"left": (1, None), "right": (None, 2.5)}
    assert second_columns(join.line.table("quarantine")) == {"amount": ["amount__double"]}
    retype("left")
    outcome = join.line.advance("3")
    assert [note.partition(":")[0] for note in outcome.notes if "in the landing" in note] == [
        *("quarantine", "pairs", "pairs")
    ]
    (pair,) = join.line.rows("pairs")
    assert (pair["left_amount"], pair["left_amount__double"]) == (None, 2.5)
    assert (pair["right_amount"], pair["right_amount__double"]) == (None, 2.5)
    late = [(row["amount"], row["amount__double"]) for row in join.line.rows("quarantine")]
    assert late == [(None, 2.5), (None, 2.5)]
    erase(join.line.spec, join.line.lake, "amount = 2.5", reason="asked to")
    assert join.line.rows("quarantine") == []


def test_a_column_that_one_table_of_two_retypes_is_kept_in_the_type_of_each(spark, tmp_path):
    def bad(side: int) -> dict[str, Any]:
        return a_record("1 12:30", "1 12:30", happened_at=None, amount=side)

    times = [("1 12:01", "1 12:00"), ("1 13:01", "1 10:00"), ("1 15:31", "1 15:30")]
    rows = [a_record(*one) for one in times]
    sides = {"left": [*rows, bad(1)], "right": [*rows, bad(2)]}
    join = Join(spark, tmp_path, PAIRED, sides=sides)
    join.line.advance("2")
    ids = {row["record_id"] for row in join.line.rows("quarantine") if row["input"] == "left"}
    right = pa.Table.from_pylist(sides["right"], SCHEMA)
    place = right.schema.get_field_index("amount")
    doubles = pa.array([row["amount"] + 0.5 for row in sides["right"]])
    write_deltalake(
        str(tmp_path / "landing/right"),
        right.set_column(place, "amount", doubles),
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["arrived_on"],
    )
    outcome = join.line.advance("3")
    (note,) = (note for note in outcome.notes if "in the right landing table" in note)
    assert note == (
        "quarantine: amount is double in the right landing table, and bigint in the left one: rows "
        "of the right one have it in amount__double, those of the left one in amount"
    )
    found = join.line.rows("quarantine")
    held = sorted((r["input"], r["reason"], r["amount"], r["amount__double"]) for r in found)
    assert held == [
        *(("left", "late", 1, None), ("left", "null_event_time", 1, None)),
        *(("right", "late", None, 1.5), ("right", "null_event_time", None, 2.5)),
    ]
    # rows of the table that has not changed are the rows that they were
    assert ids == {row["record_id"] for row in found if row["input"] == "left"}
    pairs = join.line.rows("pairs")
    assert {(pair["left_amount"], pair["right_amount__double"]) for pair in pairs} == {(1, 1.5)}


def test_pairs_of_records_that_nothing_tells_apart_each_have_a_number(spark, tmp_path):
    left = [a_record("1 12:01", "1 12:00") for _ in range(2)]
    right = [a_record("1 12:01", "1 12:00", position=p) for p in (1, 1, 2, 2, 2)]
    join = Join(spark, tmp_path, sides={"left": left, "right": right})
    join.line.advance("2")
    pairs = join.line.rows("pairs")
    numbers = {p: sorted(r["pair"] for r in pairs if r["right_position"] == p) for p in (1, 2)}
    assert numbers == {1: [1, 2, 3, 4], 2: [1, 2, 3, 4, 5, 6]}
    # landed again with another value all records are other ones, and no pair is missing
    again = [{**row, "amount": 5} for row in left]
    land(tmp_path, again, table="landing/left")
    outcome = join.line.advance("2")
    assert outcome.diff["pairs"] == {"insert": 10, "update": 0, "delete": 10}
    assert {row["left_amount"] for row in join.line.rows("pairs")} == {5}
    # one that lands no more takes its pairs along: that is asked
    land(tmp_path, again[:1], table="landing/left")
    with pytest.raises(AuditFailedError, match="removed"):
        join.line.advance("2", accept_loss="one is enough")


def test_pairs_of_records_of_one_id_have_numbers_of_their_own_whatever_their_times(spark, tmp_path):
    left = [a_record("1 12:30", f"1 12:0{n}", position=7, amount=n) for n in range(3)]
    content = JOIN | {
        "sources": JOIN["sources"] | {"left": JOIN["sources"]["left"] | {"id": ["position"]}}
    }
    right = [a_record("1 12:31", "1 12:15")]
    join = Join(spark, tmp_path, content, sides={"left": left, "right": right})
    join.line.advance("2")
    pairs = join.line.rows("pairs")
    assert sorted((row["left_amount"], row["pair"]) for row in pairs) == [(0, 1), (1, 2), (2, 3)]


def test_in_windows_over_both_columns_of_a_side_identify_its_records(spark, tmp_path):
    left = [a_record("1 12:30", f"1 12:0{n}", position=7, amount=n) for n in range(3)]
    left.append(a_record("4 12:30", "1 12:20", position=7, amount=3))
    right = [a_record("1 12:31", "1 12:15", position=7), a_record("4 12:00", "4 11:59")]
    identified = PAIRED["sources"]["left"] | {"id": ["position"]}
    content = PAIRED | {"sources": PAIRED["sources"] | {"left": identified}}
    join = Join(spark, tmp_path, content, sides={"left": left, "right": right})
    join.line.advance("5")
    pairs = join.line.rows("pairs")
    assert sorted((row["left_amount"], row["pair"]) for row in pairs) == [(0, 1), (1, 2), (2, 3)]
    (of_left,) = {row["left_record_id"] for row in pairs}
    assert of_left not in {row["right_record_id"] for row in pairs}
    before = join.line.rows("quarantine")
    assert [row["amount"] for row in before] == [3]
    # what does not identify it may be written anew: the record stays the same
    left[-1]["amount"] = 30
    land(tmp_path, left, table="landing/left", mode="overwrite")
    join.line.advance("5")
    (after,) = join.line.rows("quarantine")
    assert (after["amount"], after["record_id"]) == (30, before[0]["record_id"])


OVERLAPPING = PAIRED | {
    "window": {"sliding": "2h", "every": "1h"},
    "allowed_lateness": "0m",
}


def test_windows_of_a_join_come_day_by_day_once_and_older_slots_count_records(spark, tmp_path):
    join = Join(spark, tmp_path, OVERLAPPING)
    for day in ("3", "5"):
        join.line.advance(day)
    windows = join.line.rows("windows")
    named = [(row["window_start"], row["device"]) for row in windows]
    assert len(set(named)) == len(named)
    assert all(row["records"] == row["ours"] * row["theirs"] > 0 for row in windows)
    assert_books_balance(join.line)
    assert_windows_told(join, "5")


SESSIONS = PAIRED | {"window": {"session": "40m"}, "firings": True}


def test_sessions_of_a_join_name_only_firings_that_told_of_pairs(spark, tmp_path):
    join = Join(spark, tmp_path, SESSIONS)
    join.line.advance("5")
    assert_windows_told(join, "5")
    firings = join.line.rows("firings")
    edges = ("device", "window_start", "window_end", "firing")
    published = {tuple(row[name] for name in edges) for row in firings}
    named = {
        (row["device"], *(earlier[name] for name in edges[1:]))
        for row in firings
        for earlier in row["supersedes_windows"] or ()
    }
    assert named
    assert named < published


def test_pairs_go_as_a_window_join_becomes_a_cogroup_and_come_back_with_a_revert(spark, tmp_path):
    rows = [a_record("1 12:01", "1 12:00"), a_record("1 20:00", "1 20:00")]
    join = Join(spark, tmp_path, PAIRED, dict.fromkeys(SIDES, rows))
    join.line.advance("2")
    (pair,) = join.line.rows("pairs")
    cogroup = parse_spec(COGROUP | {"pipeline": "paired"}, origin="near.yaml")
    outcome = join.line.of(cogroup).backfill("1", "2")
    assert outcome.diff["pairs"] == {"insert": 0, "update": 0, "delete": 1}
    assert any("keeps no pairs now" in note for note in outcome.notes)
    assert join.line.rows("pairs") == []
    line = join.line.of(cogroup)
    revert_run(cogroup, line.lake, outcome.run_id, spark, reason="it was a window join")
    assert join.line.rows("pairs") == [pair]


def test_a_pipeline_that_gets_a_second_source_goes_on_and_can_be_built_anew(spark, tmp_path):
    join = Join(spark, tmp_path, COGROUP)
    one = {name: said for name, said in COGROUP.items() if name not in {"sources", "join"}}
    left = COGROUP["sources"]["left"]
    source = {name: said for name, said in left.items() if name != "watermark"}
    alone = {"source": source, "watermark": left["watermark"], "aggregates": {"n": "count(*)"}}
    join.line.of(parse_spec(one | alone, origin="both.yaml")).advance("3")
    assert join.line.rows("quarantine")
    assert join.line.advance("3").status == "published"  # as an edit of its rules
    asked = {"recreate": True, "reason": "two sources"}
    join.line.advance("3", **asked)
    assert_windows_told(join, "3")


BY_ORDER = OVERLAPPING | {"trigger": {"count": 3}, "firings": True}


OVER_BOTH = {
    "pipeline": "over",
    "source": {"pipeline": "paired", "key": ["device"]},
    "window": {"tumbling": "1d"},
    "allowed_lateness": "0s",
    "aggregates": {"n": "count(*)"},
}


def test_windows_of_a_join_that_count_to_their_firings_tell_of_pairs(spark, tmp_path):
    join = Join(spark, tmp_path, BY_ORDER)
    join.line.advance("3")
    firings = join.line.rows("firings")
    assert firings
    assert all(row["records"] == row["ours"] * row["theirs"] > 0 for row in firings)
    assert len(join.line.rows("windows")) == len(
        {(row["window_start"], row["device"]) for row in firings}
    )
    # what reads these results reads both landing tables as they were when these were published
    behind = [a_record("3 12:01", "3 12:00", position=5000)]
    for name in SIDES:
        land(tmp_path, behind, table=f"landing/{name}", mode="append")
    over = parse_any(OVER_BOTH, origin="over.yaml").over(join.line.spec)
    upstream = open_landing(spark, join.line.lake, over).upstream
    published = [e.landing_version for e in join.line.ledger if e.step == "published"]
    assert upstream.version == published[-1]
    assert upstream.left.frame.count() == len(join.sides["left"])


# both fall idle; one side is a source of splits; a late record fires all pairs again
CHOSEN = {
    "interval": "seed_joins_009_both_idle_flush_the_maximum",
    "cogroup": "pub_joins_018_cogroup_sliding",
    "window": "seed_joins_011_window_lateness_refires_all_pairs",
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_a_golden_landed_as_two_tables_is_published_as_flink_told_it(
    spark, tmp_path: Path, kind: str
):
    case = goldens(kind)[CHOSEN[kind]]
    line, outcome = landed(spark, tmp_path, case["scenario"])
    assert published(line) == told(case["expected"])
    assert outcome.status == "published"
    assert_books_balance(line)
