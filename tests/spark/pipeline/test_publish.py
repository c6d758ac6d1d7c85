"""Write, audit, publish: nothing half-written, nothing twice, nothing that fails its audit."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from types import SimpleNamespace
from unittest.mock import patch

import pyarrow as pa
import pytest
from killed import Killed
from lakes import SCHEMA, Line, a_record, a_spec, a_week, at, books_alone, instant, land, ms
from pyspark.errors import PySparkException
from replayed import assert_told_by_replay

from strandline.errors import AuditFailedError, InputError, RetryableError, StrandlineError
from strandline.lake.publish import apply_diff
from strandline.model.books import Book
from strandline.model.lateness import MAX_WATERMARK
from strandline.pipeline.request.outcome import Outcome
from strandline.quality.audit.result import Audit, AuditResult

pytestmark = pytest.mark.spark

ROWS = a_week(days=3)
SPEC = a_spec()


@pytest.fixture(scope="module")
def until3(spark, tmp_path_factory):
    """Three days have landed, two are published; copy it to change it."""
    line = Line(spark, tmp_path_factory.mktemp("until3"), SPEC, audited=True)
    land(line.folder, ROWS)
    line.advance("3")
    return line


# ------------------------------------------------------------------------------------- the tables


def test_all_tables_exist_after_the_first_run_and_delta_rs_reads_them(spark, until3):
    partitions = {
        "timeline": ["arrival_date"],
        "windows": ["window_date"],
        "firings": ["window_date"],
        "quarantine": ["quarantine_date"],
        "completeness": ["slot_date"],
        "runs": [],
    }
    for name, columns in partitions.items():
        table = until3.table(name)
        assert table.metadata().partition_columns == columns
        protocol = table.protocol()
        assert "deletionVectors" not in (protocol.reader_features or [])
        assert "columnMapping" not in (protocol.reader_features or [])
        assert protocol.min_reader_version == 1
        rows = spark.read.format("delta").load(str(until3.root / name)).count()
        assert rows == table.to_pyarrow_table().num_rows
        assert (rows == 0) == (name == "firings")
    assert not (until3.root / "_staging").exists() or not list((until3.root / "_staging").iterdir())


def test_the_columns_are_those_of_the_design(until3):
    own = {"run_id": "string", "spec_fingerprint": "string"}
    count = "long"
    windows = {
        "window_date": "date",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "device": "string",
        "total": count,
        "mean": "double",
        "records": count,
        "late_accepted": count,
        "firings": count,
        "state": "string",
        "fired_at": "timestamp",
        "closed_at": "timestamp",
    }
    quarantine = {
        **dict.fromkeys(("arrived_at", "happened_at", "slot_start"), "timestamp"),
        **dict.fromkeys(("source", "device", "record_id", "reason"), "string"),
        **dict.fromkeys(("amount", "position", "watermark_ms", "late_by_ms"), count),
        "missed_windows": count,
        "arrived_on": "date",
        "quarantine_date": "date",
    }
    completeness = {
        "slot_date": "date",
        **dict.fromkeys(("slot_start", "slot_end", "fired_at", "closed_at"), "timestamp"),
        "state": "string",
        "gap": "boolean",
        **dict.fromkeys(("on_time", "late_accepted", "late", "no_window"), count),
        "missed_pairs": count,
        "slots": count,
        "channels_heard": "string[]",
    }
    expected = {"windows": windows, "quarantine": quarantine, "completeness": completeness}
    for name, columns in expected.items():
        found = {}
        for field in until3.table(name).schema().fields:
            element = getattr(field.type, "element_type", None)
            found[field.name] = f"{element.type}[]" if element else field.type.type
        assert found == columns | own, name


def test_a_commit_names_its_run(until3):
    run_ids = {entry.run_id for entry in until3.ledger}
    for name in ("windows", "completeness", "quarantine"):
        last = until3.table(name).history(1)[0]
        assert last["userMetadata"].split("/")[0] in run_ids
        assert {row["run_id"] for row in until3.rows(name, run_id=True)} == run_ids
    (published,) = [entry for entry in until3.ledger if entry.step == "published"]
    assert published.versions.items() >= until3.versions().items()


@pytest.mark.story
def test_source_columns_of_any_kind_are_kept_and_renamed_where_they_collide(spark, tmp_path):
    extra = pa.schema(
        [
            *SCHEMA,
            ("reason", pa.string()),
            ("source_reason", pa.int32()),
            ("Run_Id", pa.string()),
            ("tags", pa.map_(pa.string(), pa.int32())),
            ("parts", pa.list_(pa.struct([("n", pa.decimal128(9, 2))]))),
            ("raw", pa.binary()),
            ("wall", pa.timestamp("us")),
            ("ratio", pa.float64()),
        ]
    )
    more = {
        "reason": "theirs",
        "source_reason": 7,
        "Run_Id": "r",
        "tags": [("x", 1)],
        "parts": [{"n": 1}],
        "raw": b"\x00\xff",
        "wall": datetime(2024, 3, 1),  # noqa: DTZ001
        "ratio": float("nan"),
    }
    rows = [
        a_record("1 10:00", "1 09:00", **more),
        a_record("1 16:00", "1 15:00", **more),
        a_record("1 17:00", "1 08:00", **more),
        a_record("1 17:00", "1 08:00", **more),
        a_record("1 18:00", "1 18:00", **more) | {"happened_at": None},
    ]
    spec = a_spec(source__channels=["a"])
    line = Line(spark, tmp_path, spec)
    land(tmp_path, pa.Table.from_pylist(rows, extra))
    line.backfill("1", "2")
    found = line.rows("quarantine")
    assert Counter(row["reason"] for row in found) == {"late": 2, "null_event_time": 1}
    assert len({row["record_id"] for row in found}) == 3
    for row in found:
        assert (row["source_source_reason"], row["source_reason"]) == ("theirs", 7)
        assert (row["source_Run_Id"], row["raw"]) == ("r", b"\x00\xff")
        assert (row["tags"], str(row["parts"][0]["n"])) == ([("x", 1)], "1.00")
    before = line.versions()
    assert not line.backfill("1", "2").changed
    assert line.versions() == before


# --------------------------------------------------------------------------------------- dry runs


def test_a_dry_run_writes_nothing_and_previews_what_the_run_then_does(until3, tmp_path):
    line = Line(until3.spark, tmp_path, SPEC)
    land(tmp_path, ROWS)
    before = line.files()
    preview = line.advance("3", dry_run=True)
    assert line.files() == before
    assert preview.status == "previewed"
    assert preview.changed
    (done,) = [entry for entry in until3.ledger if entry.step == "published"]
    assert preview.diff == done.diff
    assert preview.books == done.books


# -------------------------------------------------------------------------------------- malformed


def test_a_malformed_row_is_quarantined_once_whichever_horizon_first_knew_it(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(source__channels=["a"]))
    bad = {"happened_at": None}
    rows = [
        a_record("1 09:00", "1 09:00"),
        a_record("1 10:00", "1 10:00") | bad,
        a_record("1 10:00", "1 10:00") | bad,
        a_record("1 15:00", "1 15:00") | bad,
        a_record("1 11:00", "1 11:00") | {"arrived_at": None},
        a_record("1 12:00", "1 12:00") | {"arrived_on": None},
        a_record("2 12:00", "2 12:00") | bad,
    ]
    land(tmp_path, rows)

    def reasons():
        return Counter(
            (str(row["quarantine_date"]), row["reason"]) for row in line.rows("quarantine")
        )

    def by_noon(first_day: int, second_day: int = 0):
        days = {"2024-03-01": first_day, "2024-03-02": second_day}
        null = {(day, "null_event_time"): count for day, count in days.items() if count}
        known = {("2024-03-01", "null_arrival"): 1, ("None", "arrival_outside_partition"): 1}
        return null | known

    first = line.backfill("1", "3", as_of="1 12:30")
    assert_audited_by_books(first)
    assert reasons() == by_noon(2)
    assert line.table("timeline").to_pyarrow_table().num_rows == 0
    more = line.backfill("1", "3", as_of="1 20:00")
    assert reasons() == by_noon(3)
    again = line.advance("2")
    assert reasons() == by_noon(3)
    last = line.backfill("1", "3")
    assert reasons() == by_noon(3, 1)
    # the row without a day is read by each run, and counts as malformed there
    assert all("arrival_outside_partition" in run.malformed for run in (first, more, again, last))
    gained = [sum(run.quarantined.values()) for run in (first, more, again, last)]
    assert gained == [4, 1, 0, 1]
    for entry in line.ledger:
        for book in entry.books or []:
            assert book.balanced, book


# ------------------------------------------------------------------------------------------ audit


def test_a_failed_audit_publishes_nothing_but_malformed_rows_and_the_next_run_heals(
    until3, tmp_path
):
    line = until3.copy(tmp_path)
    too_strict = a_spec(
        quality={
            "gaps": "fail",
            "expectations": [
                {
                    "type": "expect_column_values_to_be_between",
                    "column": "total",
                    "min_value": 10_000,
                }
            ],
        }
    )
    before, late = line.versions(), [r for r in line.rows("quarantine") if r["slot_start"]]
    with pytest.raises(AuditFailedError) as caught:
        line.of(too_strict).advance("4")
    assert caught.value.exit_code == 3
    for failed in ("expect_no_gaps", "expect_column_values_to_be_between"):
        assert failed in str(caught.value)
    after = line.versions()
    assert {name for name in after if after[name] != before[name]} == {"timeline", "quarantine"}
    rows = line.rows("quarantine")
    assert [row for row in rows if row["slot_start"]] == late
    assert Counter(row["quarantine_date"].day for row in rows if not row["slot_start"]) == {
        1: 5,
        2: 5,
        3: 5,
    }
    rejected = line.ledger[-1]
    assert (rejected.step, rejected.frontier_ms) == ("rejected", None)
    assert rejected.message in str(caught.value)
    assert (line.root / "_staging" / rejected.run_id).is_dir()

    healed = line.advance("4")
    assert healed.frontier_ms == instant("4")
    assert healed.violations is None  # under a watermark that assumes no order
    assert_told_by_replay(line, ROWS, "4")


def test_an_engine_that_dies_in_the_audit_fails_the_run_and_rejects_nothing(spark, tmp_path):
    """Great Expectations said of each expectation that it was not met, so nobody tried again."""
    land(tmp_path, a_week(days=2))
    line = Line(spark, tmp_path, a_spec())

    def dies(*_, **__) -> Audit:
        range_of_spark.start()
        unmet = "could not be evaluated: the connection is refused"
        return Audit((AuditResult("expect_more", "windows", "critical", False, unmet),))

    gone = PySparkException("the engine is gone")
    range_of_spark = patch.object(type(spark), "range", side_effect=gone)
    with patch("lakes.books_alone", dies), pytest.raises(StrandlineError) as failed:
        line.advance("3")
    range_of_spark.stop()
    assert not isinstance(failed.value, AuditFailedError)
    assert line.ledger[-1].step == "failed"
    assert line.advance("3").status == "published"


def test_more_late_records_than_the_spec_allows_are_said_with_their_share(until3, spark, tmp_path):
    land(tmp_path, ROWS)
    line = Line(spark, tmp_path, a_spec(quality={"max_late_share": 0.001}))
    with pytest.raises(AuditFailedError, match=r"expect_late_share_to_be_at_most: late share") as e:
        line.advance("3")
    assert "expect_no_gaps" not in str(e.value), "a warning is no reason to publish nothing"
    assert line.rows("windows") == line.rows("completeness") == line.rows("firings") == []
    late = [row for row in until3.rows("quarantine") if row["reason"] == "late"]
    assert late
    assert f"({len(late)} of" in str(e.value)


def test_a_run_has_the_whole_audit_where_its_test_asks(until3, closed):
    """What `Line` does, so that no test takes the short one for the other.

    Where the pipeline asks for more, its findings fail runs: `test_gaps.py`.
    """
    for line in (until3, closed):
        (published,) = [entry for entry in line.ledger if entry.step == "published"]
        assert len({one["expectation"] for one in published.audit}) >= 7


def assert_audited_by_books(outcome: Outcome) -> None:
    """A run whose test does not ask for the whole audit, nor its pipeline."""
    asked = {(one["expectation"], one["success"]) for one in outcome.audit}
    own = ("expect_books_to_balance", "expect_tables_to_share_no_record")
    assert asked == {(name, True) for name in own}


def test_a_run_that_is_judged_by_its_books_alone_is_rejected_where_one_is_off():
    off = Book("range", 3, {"accepted": 2, "late": 0})
    assert books_alone(SPEC, SimpleNamespace(books=[off])).blocked


# ---------------------------------------------------------------------------------- killed, raced


def test_a_publish_that_died_is_finished_by_the_next_run_and_nothing_is_twice(
    spark, tmp_path, monkeypatch
):
    line = Line(spark, tmp_path, SPEC)
    land(tmp_path, ROWS)
    real = apply_diff.apply

    def dying(table: str, *, committed: bool):
        def publish(store, change, *more):
            if change.target.name == table and committed:
                real(store, change, *more)
            if change.target.name == table:
                raise Killed
            real(store, change, *more)

        return publish

    # of the first publish, which appends, the calendar was the last to be committed
    monkeypatch.setattr(apply_diff, "apply", dying("completeness", committed=True))
    with pytest.raises(Killed):
        line.advance("3")
    assert line.ledger[-1].step == "publishing"
    assert line.rows("windows") == []

    # the next run finishes it, and dies itself in its merges, before the windows
    dies = dying("windows", committed=False)
    first = line.ledger[-1].run_id

    def publish(store, change, attempt):
        (real if attempt.run_id == first else dies)(store, change, attempt)

    monkeypatch.setattr(apply_diff, "apply", publish)
    with pytest.raises(Killed):
        line.advance("4")
    assert [entry.run_id for entry in line.ledger if entry.step == "published"] == [first]
    monkeypatch.undo()

    outcome = line.advance("4")
    assert not outcome.changed
    assert_told_by_replay(line, ROWS, "4")
    steps = [entry.step for entry in line.ledger]
    assert Counter(steps)["published"] == 3
    assert line.ledger[-1].frontier_ms == instant("4")
    ids = [(row["record_id"], row["slot_start"]) for row in line.rows("quarantine")]
    assert len(ids) == len(set(ids))


def test_a_run_whose_range_somebody_else_has_published_into_is_to_be_tried_again(until3, tmp_path):
    """Before it rebuilds; after that, see `test_days_owed.py` and `test_prepared.py`."""
    line = until3.copy(tmp_path)
    from strandline.model.intervals import TimeRange
    from strandline.pipeline.request.request import Request

    def meanwhile(step: str) -> None:
        if step == "rebuild":
            line.advance("4")

    request = Request("backfill", TimeRange(instant("2"), instant("3")), as_of_ms=instant("3"))
    with pytest.raises(RetryableError, match="has published into its range") as caught:
        line.run(request, meanwhile)
    assert caught.value.exit_code == 4
    assert line.ledger[-1].step == "failed"
    assert_told_by_replay(line, ROWS, "4")


# ------------------------------------------------------------------------------------------ close

CLOSING = [
    a_record("1 10:10", "1 10:00"),
    a_record("1 10:20", "1 10:05"),
    a_record("2 10:10", "2 10:00", device="d2"),
]
LATER = [
    a_record("3 09:00", "1 10:01", amount=5),
    a_record("3 09:10", "2 10:12", amount=6),
    a_record("3 10:10", "3 10:00", amount=7),
    a_record("4 09:00", "1 10:02", amount=8),
]


@pytest.fixture(scope="module")
def closed(spark, tmp_path_factory):
    """Two days, the input of which has been said to have ended."""
    spec = a_spec(source__channels=["a"])
    line = Line(spark, tmp_path_factory.mktemp("closed"), spec, audited=True)
    land(line.folder, CLOSING)
    line.backfill("1", "3", close=True)
    return line


def test_closing_fires_and_closes_what_the_watermark_had_not_reached(closed):
    horizon_ms = instant("2 10:10") + 201
    rows = {row["device"]: row for row in closed.rows("windows")}
    assert {row["state"] for row in rows.values()} == {"closed"}
    assert ms(rows["d1"]["fired_at"]) == ms(rows["d1"]["closed_at"]) == instant("2 10:10") + 200
    assert ms(rows["d2"]["fired_at"]) == ms(rows["d2"]["closed_at"]) == horizon_ms - 1
    slots = [row for row in closed.rows("completeness") if not row["gap"]]
    assert [row["state"] for row in slots] == ["closed", "closed"]
    assert closed.ledger[-1].horizon_ms == horizon_ms


def test_a_rerun_at_that_horizon_keeps_it_closed_and_another_is_refused(closed, tmp_path):
    line = closed.copy(tmp_path)
    before = line.versions()
    assert not line.backfill("1", "4").changed  # a larger range: only its closed part is
    assert line.versions() == before
    for request in ({"as_of": "2 12:00"}, {"as_of": "2 12:00", "close": True}):
        with pytest.raises(InputError, match="--reopen"):
            line.backfill("2", "3", **request)
    reopened = line.backfill("2", "3", reopen=True)
    assert reopened.diff["windows"] == {"insert": 0, "update": 0, "delete": 1}
    assert [row["device"] for row in line.rows("windows")] == ["d1"]
    assert not line.backfill("1", "3").changed  # and stays reopened


def test_a_scheduled_run_leaves_closed_windows_and_what_comes_later_is_late(closed, tmp_path):
    line = closed.copy(tmp_path)
    land(tmp_path, LATER, mode="append")
    outcome = line.advance("4")
    assert any("--close" in note for note in outcome.notes)
    line.advance("5")  # by now the watermark has passed them too
    windows = [row for row in line.rows("windows") if row["window_start"] < at("3")]
    assert windows == closed.rows("windows")
    late = {row["amount"]: row for row in line.rows("quarantine")}
    assert set(late) == {5, 6, 8}
    assert {row["watermark_ms"] for row in late.values()} == {MAX_WATERMARK}
    assert {row["reason"] for row in late.values()} == {"late"}
    were = {row["slot_start"]: row for row in closed.rows("completeness") if not row["gap"]}
    slots = {row["slot_start"]: row for row in line.rows("completeness") if row["late"]}
    assert slots.keys() == were.keys()
    for start, slot in slots.items():
        for name in ("state", "fired_at", "closed_at", "on_time"):
            assert slot[name] == were[start][name]
    assert sum(slot["late"] for slot in slots.values()) == 3
    preview = line.backfill("1", "3", reopen=True, dry_run=True)
    assert preview.diff["windows"] == {"insert": 1, "update": 1, "delete": 0}
    assert preview.diff["quarantine"] == {"insert": 0, "update": 2, "delete": 1}
