"""`erase`: a person's rows leave all that holds single records, and old versions too. No JVM."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from itertools import count
from threading import Timer

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from joined import JOIN
from killed import Killed
from many_days import a_lake_of, day
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli import show
from strandline.cli.main import main
from strandline.errors import InputError, NoRunsError, RetryableError
from strandline.lake.ledger.entry import Driver, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.read import published_tables
from strandline.lake.store.lake import Lake
from strandline.lake.upkeep import leftovers, upkeep
from strandline.model.intervals import TimeRange
from strandline.pipeline.manage import erase as erasing
from strandline.pipeline.manage.erase import erase, erasure_of
from strandline.pipeline.publish.abandon import cancel_run
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.status import status_of
from strandline.spec import parse_spec

ZOE = "person = 'zoe77'"


@pytest.fixture
def lake(tmp_path):
    """Quarantined rows and firings of two persons, a staging and a report."""
    lake = a_lake_of(2, SPEC, tmp_path / "lake")
    store = lake.pipeline("meter")
    for name, partition in (("quarantine", "quarantine_date"), ("firings", "window_date")):
        for number in range(2):
            rows = pa.table({"person": ["zoe77", "bob"], partition: [day(number)] * 2})
            write_deltalake(
                store.uri(name), rows, mode="append", schema_mode="merge", partition_by=[partition]
            )
    for file in ("_staging/r-2/windows/part-0.parquet", "_reports/gx/validations/w.json"):
        path = lake.folder / "meter" / file
        path.parent.mkdir(parents=True)
        path.write_text("zoe77", encoding="utf-8")
    (lake.folder / "meter" / "_reports" / "report.html").write_text("zoe77", encoding="utf-8")
    note(lake, "r-2", "published")
    return lake


def note(lake, run_id, step, **more):
    store = lake.pipeline("meter")
    said = {"versions": store.versions(), "range": TimeRange(0, 1), **more}
    return Ledger(store).append(Entry(run_id, 1, step, "advance", **said), datetime.now(UTC))


def persons(lake, name):
    rows = DeltaTable(lake.pipeline("meter").uri(name)).to_pyarrow_table()
    return sorted(filter(None, rows["person"].to_pylist()))


def stored(lake, word):
    """The files below the pipeline's folder that hold a word; logs tell the bounds of files."""
    found = []
    for path in (lake.folder / "meter").rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts and word in path.read_bytes():
            found.append(path)
    return found


def files(lake):
    found = [path for path in lake.folder.rglob("*") if path.is_file()]
    return {path: path.stat().st_size for path in found if "_lock" not in path.name}


def test_a_prepared_run_is_dropped_since_its_staging_may_hold_the_rows(lake):
    note(lake, "r-3", "prepared")
    erase(SPEC, lake, ZOE, reason="asked for")
    steps = Ledger(lake.pipeline("meter")).state().runs["r-3"]
    assert (steps[-1].step, steps[-1].message) == ("dropped", "erase removed its staging")


def test_what_would_go_is_counted_and_nothing_is_written(lake):
    before = files(lake)
    found = erasure_of(SPEC, lake, ZOE)
    assert found["rows"] == {"quarantine": 2, "firings": 2}
    assert (found["staging"], found["reports"]) == (["r-2"], 2)
    assert files(lake) == before


def test_a_lake_that_has_nothing_of_the_pipeline_is_named(tmp_path):
    nothing = Lake.at(str(tmp_path / "other"))
    with pytest.raises(NoRunsError, match=r"no runs yet in the lake .*/other") as refused:
        erasure_of(SPEC, nothing, ZOE)
    assert "--lake" in str(refused.value)


def test_a_persons_rows_leave_everything_and_old_versions_too(lake):
    assert stored(lake, b"zoe77")
    erase(SPEC, lake, ZOE, reason="asked for", requested_by="desk")
    assert persons(lake, "quarantine") == persons(lake, "firings") == ["bob", "bob"]
    assert stored(lake, b"zoe77") == []
    assert lake.pipeline("meter").rows("quarantine") == 4 + 2
    assert lake.pipeline("meter").rows("windows") == 4
    tables = published_tables(lake, "meter")
    assert sum(batch.num_rows for batch in tables.batches("quarantine")) == 6
    with pytest.raises(InputError, match="is not there any more"):
        list(published_tables(lake, "meter", run="r-2").batches("quarantine"))


def test_the_report_is_made_of_what_is_left(lake, tmp_path):
    erase(SPEC, lake, ZOE, reason="asked for")
    assert write_report(SPEC, lake, tmp_path)["totals"]["quarantine"] == 6


def test_status_says_how_many_late_rows_have_been_erased(lake, capsys):
    before = status_of(SPEC, lake)
    assert (before["records"]["late"], before["quarantine"]["late"]) == (4, 4)
    assert before["quarantine_removed"] == 0
    erase(SPEC, lake, "late_by_ms = 90000", reason="asked for")
    found = status_of(SPEC, lake)
    assert (found["records"]["late"], found["quarantine"].get("late", 0)) == (4, 0)
    assert found["quarantine_removed"] == 4
    show.status(found)
    shown = " ".join(capsys.readouterr().out.split())
    assert "4 late or no_window rows removed by an erasure or quarantine_days" in shown


def test_the_ledger_keeps_counts_and_why_and_no_value(lake):
    erase(SPEC, lake, ZOE, reason="asked for", requested_by="desk")
    erased = [e for e in Ledger(lake.pipeline("meter")).entries() if e.kind == "erase"]
    assert [entry.step for entry in erased] == ["erasing", "erased"]
    for entry in erased:
        assert entry.diff["quarantine"] == {"insert": 0, "update": 0, "delete": 2}
        assert (entry.reason, entry.requested_by) == ("asked for", "desk")
        assert entry.message.startswith("condition sha256:")
        assert "zoe77" not in str(entry)


def test_erasing_twice_is_erasing_once(lake):
    erase(SPEC, lake, ZOE, reason="asked for")
    versions = {n: lake.pipeline("meter").version(n) for n in ("quarantine", "firings")}
    erase(SPEC, lake, ZOE, reason="asked for")
    assert {n: lake.pipeline("meter").version(n) for n in versions} == versions


def is_erased(lake):
    return any(step.step == "erased" for step in Ledger(lake.pipeline("meter")).entries())


def has_not_ended(lake):
    """Whether status says that an erasure has not ended."""
    found = status_of(SPEC, lake)["findings"]
    return any("the erasure has not ended" in finding["sentence"] for finding in found)


@pytest.mark.parametrize("moment", range(0, 14, 2))
def test_an_erasure_that_is_killed_is_ended_by_typing_it_again(lake, monkeypatch, moment):
    calls = count()

    def dying(real):
        def call(*arguments):
            if next(calls) == moment:
                raise Killed
            done = real(*arguments)
            if next(calls) == moment:
                raise Killed
            return done

        return call

    with monkeypatch.context() as dies:
        for place, name in (
            (erasing, "erase_rows"),
            (leftovers, "drop_whatever_is_left"),
            (upkeep, "vacuum"),
            (Ledger, "append"),
        ):
            dies.setattr(place, name, dying(getattr(place, name)))
        with pytest.raises(Killed):
            erase(SPEC, lake, ZOE, reason="asked for")
    tables = published_tables(lake, "meter")
    assert sum(batch.num_rows for batch in tables.batches("quarantine")) in {6, 8}
    has_begun = any(step.step == "erasing" for step in Ledger(lake.pipeline("meter")).entries())
    assert has_not_ended(lake) == (has_begun and not is_erased(lake))
    erase(SPEC, lake, ZOE, reason="asked for")
    assert stored(lake, b"zoe77") == []
    assert persons(lake, "quarantine") == ["bob", "bob"]
    assert not has_not_ended(lake)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "no condition on a row"),
        ("'zoe77'", "no condition on a row"),
        ("person = 'zoe77'; drop table x", "it is not a single, complete condition"),
        ("person = 'zoe77' -- bob", "a comment"),
        ("person = 'zoe77') OR (1 = 1", "it is not a single, complete condition"),
        ("person = 'zoe77' OR 1 = (SELECT 1)", "has no place in it"),
        ("person = 'zoe77", "it is not a single, complete condition"),
        ("person", "no condition on a row of this table"),
        ("count(*) > 1", "has no place in it"),
        ("row_number() OVER () = 1", "has no place in it"),
        ("unnest(make_array(true, false))", "has no place in it"),
        ("nobody = 'zoe77'", "No field named nobody"),
        ("person = 'zoe77' bob", "it is not a single, complete condition"),
        (
            "person = E'\\'' OR person IN (SELECT person FROM rows) --'",
            "not a single, complete condition",
        ),
        ("CAST(person AS INT) = 1", "TRY_CAST gives null where CAST fails"),
    ],
)
def test_what_is_no_condition_on_a_row_is_refused_and_nothing_is_written(lake, expression, told):
    before = files(lake)
    for call in (
        lambda: erasure_of(SPEC, lake, expression),
        lambda: erase(SPEC, lake, expression, reason="asked for"),
    ):
        with pytest.raises(InputError, match=told):
            call()
    assert files(lake) == before


@pytest.mark.parametrize("name", ["it''s; --", "a(b", "SELECT"])
def test_a_text_may_hold_anything(lake, name):
    assert erasure_of(SPEC, lake, f"person = '{name}'")["rows"] == {"quarantine": 0, "firings": 0}


@pytest.fixture
def pairs(tmp_path):
    """A lake of a join, where two persons meet each other and themselves; one side has more."""
    lake, spec = Lake.at(str(tmp_path / "pairs")), parse_spec(JOIN, origin="near.yaml")
    store = lake.pipeline("near")
    late = {"person": ["zoe77"], "vip": [True], "device": ["zoe77"], "of_late_rows": ["x"]}
    left, right = ["zoe77", "zoe77", "bob", "bob"], ["zoe77", "bob", "zoe77", "bob"]
    rows = {"left_person": left, "right_person": right, "right_vip": [None, True, False, True]}
    for name, held, partition in (
        ("quarantine", late, "quarantine_date"),
        ("pairs", {"device": left} | rows, "pair_date"),
    ):
        table = pa.table(held | {partition: [day(0)] * len(held["device"])})
        write_deltalake(store.uri(name), table, partition_by=[partition])
    step = Entry("r-1", 1, "published", "advance", versions=store.versions())
    Ledger(store).append(step, datetime.now(UTC))
    return lake, spec


@pytest.mark.parametrize(
    ("expression", "stay"),
    [
        (ZOE, [("bob", "bob")]),
        (f"{ZOE} AND NOT vip", [("zoe77", "zoe77"), ("zoe77", "bob"), ("bob", "bob")]),
        ("device = 'bob'", [("zoe77", "zoe77"), ("zoe77", "bob")]),
    ],
    ids=["either side", "columns of one side", "the key of both"],
)
def test_a_pair_goes_with_either_of_its_records(pairs, expression, stay):
    lake, spec = pairs
    assert erasure_of(spec, lake, expression)["rows"]["pairs"] == 4 - len(stay)
    erase(spec, lake, expression, reason="asked for")
    kept = DeltaTable(lake.pipeline("near").uri("pairs")).to_pyarrow_table()
    persons = (kept[f"{side}_person"].to_pylist() for side in ("left", "right"))
    assert [*zip(*persons, strict=True)] == stay
    assert kept.column_names == ["device", "left_person", "right_person", "right_vip", "pair_date"]


def test_pairs_without_the_column_stay(pairs):
    lake, spec = pairs
    rows = erasure_of(spec, lake, "of_late_rows = 'x'")["rows"]
    assert rows == {"quarantine": 1, "pairs": None}


def test_firings_without_the_column_stay(lake):
    found = erase(SPEC, lake, "person = 'zoe77' AND reason IS NULL", reason="asked for")
    assert found["rows"] == {"quarantine": 2, "firings": None}
    assert persons(lake, "firings") == ["bob", "bob", "zoe77", "zoe77"]


def test_an_unfinished_publish_and_a_run_in_progress_are_waited_for(lake):
    me = Driver(socket.gethostname(), os.getpid(), "0.1.0")
    note(lake, "r-3", "started", driver=me)

    with pytest.raises(RetryableError, match="run r-3: is in progress"):
        erase(SPEC, lake, ZOE, reason="asked for", wait_s=0)
    note(lake, "r-3", "publishing")
    with pytest.raises(InputError, match="run r-3: has begun to publish"):
        erase(SPEC, lake, ZOE, reason="asked for")
    assert persons(lake, "quarantine") == ["bob", "bob", "zoe77", "zoe77"]


def test_a_run_whose_last_step_only_a_later_version_knows_is_named_without_a_host(lake):
    note(lake, "r-3", "verified", driver=Driver(socket.gethostname(), 2**30, "0.9.0"))
    told = r"run r-3 \(its last step, verified, is of a later version\): is in progress"
    with pytest.raises(RetryableError, match=rf"{told}.*whether r-3 has ended cannot be seen"):
        erase(SPEC, lake, ZOE, reason="asked for", wait_s=0)
    assert cancel_run(SPEC, lake, "r-3", reason="it has ended")["host"] is None


def test_a_run_whose_end_nobody_here_sees_is_named_with_the_way_out(lake):
    """On another host it may still hold the rows; whoever knows that it is over cancels it."""
    note(lake, "r-3", "started", driver=Driver("elsewhere", 1, "0.1.0"))
    note(lake, "r-4", "observed", driver=Driver("elsewhere", 2, "0.1.0"))
    told = r"runs r-3 on elsewhere, r-4 on elsewhere: are in progress.*whether r-3, r-4 has ended"
    with pytest.raises(RetryableError, match=rf"{told}.*runs cancel meter RUN") as caught:
        erase(SPEC, lake, ZOE, reason="asked for", wait_s=0)
    assert caught.value.exit_code == 4
    assert persons(lake, "quarantine") == ["bob", "bob", "zoe77", "zoe77"]
    for run_id in ("r-3", "r-4"):
        cancel_run(SPEC, lake, run_id, reason="that host is gone")
    erase(SPEC, lake, ZOE, reason="asked for", wait_s=0)
    assert persons(lake, "quarantine") == ["bob", "bob"]


def test_a_run_that_ends_soon_is_waited_for(lake):
    note(lake, "r-3", "started", driver=Driver("elsewhere", 1, "0.1.0"))
    ends = Timer(0.3, note, [lake, "r-3", "failed"])
    ends.start()
    erase(SPEC, lake, ZOE, reason="asked for", wait_s=30)
    ends.join()
    steps = [entry.step for entry in Ledger(lake.pipeline("meter")).entries()]
    assert steps[steps.index("started") :][:3] == ["started", "failed", "erasing"]


def test_a_run_that_has_read_the_rows_before_is_stale(lake):
    run = Entry("r-3", 1, "staged", "backfill", TimeRange(5, 6), base=2)
    assert Ledger(lake.pipeline("meter")).state().published_since(run) == []
    erase(SPEC, lake, ZOE, reason="asked for")
    since = Ledger(lake.pipeline("meter")).state().published_since(run)
    assert {entry.step for entry in since} == {"erased"}


def test_the_command_counts_first_and_says_what_stays(lake, tmp_path, capsys):
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--pipelines", str(tmp_path), "--lake", lake.root]

    def call(*arguments, where=ZOE):
        with pytest.raises(SystemExit) as ended:
            main([*places, "erase", "meter", "--where", where, *arguments])
        return ended.value.code or 0, capsys.readouterr().out

    code, out = call("--reason", "asked for", "--dry-run")
    assert code == 0
    assert "quarantine: 2 rows" in out
    assert "windows, completeness and the timeline are aggregates, and stay" in out
    assert "the landing table is not touched" in out
    assert "over the same landing table" not in out
    others = {"twin": FILE, "elsewhere": FILE.replace("landing/meter", "landing/other")}
    others["nowhere"] = FILE.replace("landing/meter", "landing/a^b")  # delta-rs opens no such table
    for name, file in others.items():
        text = file.replace("pipeline: meter", f"pipeline: {name}")
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("pipeline: broken", encoding="utf-8")
    out = call("--reason", "asked for", "--dry-run")[1]
    assert "note: pipelines over the same landing table: twin; erase the rows there, too" in out
    assert "note: mistakes in the file of broken, nowhere: it may read from the same" in out
    assert call("--reason", " ")[0] == 2
    nobody = call("--reason", "x", where="person = 'nobody'")[1]
    says = "erased, with all old versions; no row of the newest version meets the condition"
    assert says in nobody
    assert json.loads(call("--reason", "asked for", "--json")[1])["rows"]["quarantine"] == 2
    assert persons(lake, "quarantine") == ["bob", "bob"]


def test_pairs_go_by_a_column_that_quarantine_does_not_have_yet(pairs):
    lake, spec = pairs
    store = lake.pipeline("near")
    late = pa.table({"device": ["d1"], "quarantine_date": [day(0)]})
    write_deltalake(
        store.uri("quarantine"),
        late,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["quarantine_date"],
    )
    assert erasure_of(spec, lake, ZOE)["rows"] == {"quarantine": None, "pairs": 3}
    erase(spec, lake, ZOE, reason="asked for")
    kept = DeltaTable(store.uri("pairs")).to_pyarrow_table()
    assert kept["left_person"].to_pylist() == ["bob"]
    with pytest.raises(InputError, match="No field named nobody"):
        erase(spec, lake, "nobody = 'zoe77'", reason="asked for")


def test_a_condition_is_about_a_value_whichever_column_holds_it(lake):
    """A landing column that became another type has a second column in quarantine."""
    table = DeltaTable(lake.pipeline("meter").uri("quarantine"))
    without = erasure_of(SPEC, lake, "person IS NULL")["rows"]["quarantine"]
    second = Field("person__long", "long", metadata={"strandline.second_of": "person"})
    table.alter.add_columns([second])
    rows = pa.table({"person__long": pa.array([77, 5]), "quarantine_date": [day(0)] * 2})
    write_deltalake(table, rows, mode="append", schema_mode="merge")
    assert erasure_of(SPEC, lake, "person IS NULL")["rows"]["quarantine"] == without
    assert erasure_of(SPEC, lake, "person = '77' OR person = 'zoe77'")["rows"]["quarantine"] == 3
    erase(SPEC, lake, "person in ('77', 'zoe77')", reason="asked for")
    remaining = DeltaTable(lake.pipeline("meter").uri("quarantine")).to_pyarrow_table()
    values = {(row["person"], row["person__long"]) for row in remaining.to_pylist()}
    assert values == {(None, None), (None, 5), ("bob", None)}
