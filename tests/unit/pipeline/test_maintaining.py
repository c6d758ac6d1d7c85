"""`maintain`: files and leftovers stay few, and nobody misses what has gone. No JVM."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from shutil import copytree
from threading import Thread
from time import sleep

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from killed import Killed
from many_days import a_lake_of, day
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli.main import main
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.read import published_tables
from strandline.lake.store.store import PUBLISHED
from strandline.lake.upkeep import leftovers, upkeep
from strandline.lake.upkeep.leftovers import spent_steps
from strandline.model.intervals import TimeRange
from strandline.pipeline.manage.maintain import _keep_small, _opened, maintain, upkeep_of
from strandline.pipeline.manage.retention import Retention
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.request.answered import _are_as_published
from strandline.pipeline.request.driver import state_of
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.status import status_of

TODAY = Retention(keep_days=0, staging_days=7, report_days=90, ledger_days=400)
TABLES = ("windows", "quarantine", "completeness")


@pytest.fixture
def lake(tmp_path):
    """Four days, each of which two runs have published; the second one into files of its own."""
    lake = a_lake_of(4, SPEC, tmp_path / "lake")
    note(lake, "r-2", "published")
    for name in TABLES:
        again(lake, name)
    note(lake, "r-3", "published")
    return lake


def note(lake, run_id, step, **more):
    store = lake.pipeline("meter")
    versions = {name: v for name, v in store.versions().items() if name != "runs"}
    said = {"versions": versions, "range": TimeRange(0, 1), **more}
    return Ledger(store).append(Entry(run_id, 1, step, "advance", **said), datetime.now(UTC))


def again(lake, name):
    """Rows that come beside those of each day."""
    rows = DeltaTable(lake.pipeline("meter").uri(name)).to_pyarrow_table()
    write_deltalake(lake.pipeline("meter").uri(name), rows, mode="append")


def rows(lake):
    tables = published_tables(lake, "meter")
    return {n: sorted(map(str, tables.dataset(n).to_table().to_pylist())) for n in TABLES}


def files(lake):
    return {p: p.stat().st_size for p in lake.folder.rglob("*") if p.is_file()}


def aged(path, days):
    then = (datetime.now(UTC) - timedelta(days)).timestamp()
    os.utime(path, (then, then))


def a_file(path, days=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    aged(path, days)
    aged(path.parent, days)
    return path


def test_the_steps_are_the_tables_that_the_pipeline_has(lake):
    """`pairs` was shown of pipelines that join nothing."""
    steps: list[str] = []
    maintain(SPEC, lake, TODAY, progress=steps.append)
    of_lake = ["timeline", "windows", "quarantine", "completeness", "staging, reports, ledger"]
    assert steps == of_lake


def test_what_there_is_to_do_is_shown_and_nothing_is_written(lake):
    before = files(lake)
    found = upkeep_of(SPEC, lake, TODAY)
    assert {n: t["days"] for n, t in found["tables"].items() if t["days"]} == dict.fromkeys(
        TABLES, 4
    )
    assert found["tables"]["windows"]["in_use"]["files"] == 8
    assert files(lake) == before


def test_a_days_files_become_one_and_readers_go_on(lake):
    before, shown = rows(lake), status_of(SPEC, lake)
    done = maintain(SPEC, lake, Retention())
    assert {done["tables"][name]["in_use"]["files"] for name in TABLES} == {4}
    assert rows(lake) == before
    step = Ledger(lake.pipeline("meter")).state().whole[-1]
    assert (step.step, step.run_id) == ("maintained", "maintain-4")
    published = {name: status_of(SPEC, lake)["versions"][name] for name in TABLES}
    assert published == {name: step.versions[name] for name in TABLES}
    now = status_of(SPEC, lake)
    assert {**now, "versions": None} == {**shown, "versions": None}
    assert _are_as_published(lake.pipeline("meter"), Ledger(lake.pipeline("meter")).state())


def test_a_table_that_somebody_wrote_since_is_not_passed_over(lake):
    again(lake, "windows")
    maintain(SPEC, lake, TODAY)
    step = Ledger(lake.pipeline("meter")).state().whole[-1]
    assert step.step == "maintained"
    assert step.versions["windows"] == 1
    assert not _are_as_published(lake.pipeline("meter"), Ledger(lake.pipeline("meter")).state())
    assert published_tables(lake, "meter").dataset("windows").count_rows() == 16


def test_doing_it_twice_is_doing_it_once(lake):
    maintain(SPEC, lake, TODAY)
    maintain(SPEC, lake, TODAY)
    before = lake.pipeline("meter").versions()
    maintain(SPEC, lake, TODAY)
    assert lake.pipeline("meter").versions() == before


def test_versions_that_somebody_may_ask_for_stay_and_others_go(lake):
    before = rows(lake)
    maintain(SPEC, lake, TODAY)
    assert rows(lake) == before
    assert published_tables(lake, "meter", run="r-3").dataset("windows").to_table().num_rows == 16
    again(lake, "windows")
    note(lake, "r-4", "published")
    maintain(SPEC, lake, TODAY)
    with pytest.raises(InputError, match="is not there any more"):
        list(published_tables(lake, "meter", run="r-3").batches("windows"))
    maintain(SPEC, lake, Retention())
    assert published_tables(lake, "meter", run="r-4").dataset("windows").to_table().num_rows == 32


def test_what_old_versions_need_stays_for_as_long_as_is_asked(lake):
    maintain(SPEC, lake, Retention(keep_days=30))
    for run, count_then in (("r-2", 8), ("r-3", 16)):
        tables = published_tables(lake, "meter", run=run)
        assert tables.dataset("windows").to_table().num_rows == count_then


def test_files_of_a_writer_that_died_go_once_they_are_old(lake):
    orphans = [
        lake.folder / "meter" / "windows" / f"window_date={day(0)}" / f"part-{days}.parquet"
        for days in (40, 1)
    ]
    for orphan, days in zip(orphans, (40, 1), strict=True):
        orphan.write_bytes(b"half a file")
        aged(orphan, days)
    maintain(SPEC, lake, Retention(keep_days=30))
    assert [orphan.exists() for orphan in orphans] == [False, True]


def test_a_day_that_was_published_under_two_rules_stays_in_its_files(lake):
    table = lake.pipeline("meter").table("completeness")
    other = table.to_pyarrow_table().slice(0, 1).to_pylist()[0] | {"spec_fingerprint": "other"}
    row = pa.Table.from_pylist([other], pa.schema(table.schema().to_arrow()))
    write_deltalake(table, row, mode="append")
    days = [day(n) for n in range(4) if day(n) != other["slot_date"]]
    assert upkeep.scattered_days(table, "slot_date") == days


def test_nothing_is_touched_while_a_publish_is_unfinished(lake):
    note(lake, "r-4", "publishing")
    again(lake, "windows")
    store = lake.pipeline("meter")
    before = {name: store.version(name) for name in PUBLISHED}
    done = maintain(SPEC, lake, TODAY)
    assert {name: store.version(name) for name in PUBLISHED} == before
    assert "run r-4 has begun to publish" in done["notice"]
    assert Ledger(store).state().unfinished.run_id == "r-4"


@pytest.mark.parametrize("moment", [0, 1, 2, 3, 5, 8, 13, 16, 17, 18, 19])
def test_whoever_dies_on_the_way_is_helped_by_doing_it_again(lake, monkeypatch, moment):
    before, calls = rows(lake), count()

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
        for place, name in ((upkeep, "compact"), (upkeep, "vacuum"), (Ledger, "append")):
            dies.setattr(place, name, dying(getattr(place, name)))
        with pytest.raises(Killed):
            maintain(SPEC, lake, TODAY)
    assert rows(lake) == before
    done = maintain(SPEC, lake, TODAY)
    assert rows(lake) == before
    assert {done["tables"][name]["in_use"]["files"] for name in TABLES} == {4}


def test_staging_goes_unless_it_is_young_or_a_publish_needs_it(lake):
    root = lake.folder / "meter" / "_staging"
    for run, days in (("r-dead", 9), ("r-young", 2), ("r-4", 9), ("r-heard", 9)):
        a_file(root / run / "windows" / "part-0.parquet", days)
        aged(root / run, days)
    note(lake, "r-heard", "rejected")
    note(lake, "r-4", "publishing")
    ages = [{"written_at": datetime.now(UTC) - timedelta(9)}, {}]
    steps = Ledger(lake.pipeline("meter")).entries()
    state = PipelineState.of(replace(step, **ages[step.run_id == "r-heard"]) for step in steps)
    week = datetime.now(UTC) - timedelta(7)
    dead = leftovers.dead_staging(lake.pipeline("meter"), state, week)
    assert dead == {"runs": ["r-dead"], "files": 1, "bytes": 2}
    maintain(SPEC, lake, TODAY)
    assert {path.name for path in root.iterdir()} == {"r-young", "r-4", "r-heard"}


def test_a_prepared_run_whose_staging_goes_is_dropped(lake):
    store = lake.pipeline("meter")
    staged = a_file(lake.folder / "meter" / "_staging" / "r-old" / "windows" / "part-0", 9)
    aged(staged.parents[1], 9)
    note(lake, "r-old", "prepared")
    maintain(SPEC, lake, replace(TODAY, staging_days=0), datetime.now(UTC) + timedelta(1))
    steps = Ledger(store).state().runs["r-old"]
    assert (state_of(steps), staged.exists()) == ("dropped", False)
    assert steps[-1].message == "maintain removed its staging after 0 days"
    with pytest.raises(InputError, match="dropped"):
        publish_prepared(SPEC, lake, "r-old", None)


def test_what_somebody_publishes_meanwhile_stays(lake):
    """An old prepared run: whoever publishes it has the lock, and has not said so yet."""
    store = lake.pipeline("meter")
    staged = a_file(lake.folder / "meter" / "_staging" / "r-old" / "windows" / "part-0", 9)
    aged(staged.parents[1], 9)
    publishes = ExitStack()

    def publish():
        sleep(0.5)
        note(lake, "r-old", "publishing")
        publishes.close()

    publisher = Thread(target=publish)

    def begins(step):
        if step.startswith("staging"):
            publishes.enter_context(store.lock())
            publisher.start()

    done = maintain(SPEC, lake, TODAY, progress=begins)
    publisher.join()
    assert staged.exists()
    assert "r-old" in done["notice"]


def test_results_of_old_audits_go_and_the_report_stays(lake):
    root = lake.folder / "meter" / "_reports"
    old = a_file(root / "gx" / "validations" / "windows" / "r-1" / "2023" / "windows.json", 91)
    young = a_file(root / "gx" / "validations" / "windows" / "r-2" / "2024" / "windows.json", 80)
    page = a_file(root / "report.html", 91)
    assert upkeep_of(SPEC, lake, TODAY)["reports"] == {"files": 1, "bytes": 2}
    maintain(SPEC, lake, TODAY)
    assert (old.exists(), young.exists(), page.exists()) == (False, True, True)
    assert not old.parents[1].exists()


def a_ledger(*steps):
    """Steps a day apart, by run, step and what else they say."""
    begin = datetime(2023, 1, 1, tzinfo=UTC)
    return [
        Entry(run, 1, step, "advance", **more, position=n, written_at=begin + timedelta(n))
        for n, (run, step, more) in enumerate(steps, 1)
    ]


def test_steps_of_runs_that_ended_long_ago_go_and_what_they_tell_stays():
    days = [day(0), day(1)]
    entries = a_ledger(
        ("r-1", "started", {}),
        ("r-1", "observed", {"clock_start_ms": 5}),
        ("r-1", "owed", {"owed": days}),
        ("r-1", "publishing", {"versions": {}}),
        ("r-1", "published", {"frontier_ms": 7, "versions": {}, "base": 3, "settled": days[:1]}),
        ("r-2", "started", {}),
        ("r-2", "rejected", {"lost": days}),
        ("r-3", "repeated", {}),
        ("r-4", "started", {}),
        ("r-5", "publishing", {"versions": {}}),
        ("r-5", "published", {"frontier_ms": 8, "versions": {}}),
        ("r-6", "publishing", {"versions": {}}),
        ("r-6", "dropped", {}),
        ("r-7", "publishing", {"versions": {}}),
        ("r-7", "published", {"frontier_ms": 9, "versions": {}}),
        ("r-8", "publishing", {"versions": {}}),
    )
    spent = spent_steps(PipelineState.of(entries), datetime(2024, 1, 1, tzinfo=UTC))
    assert spent == [8, 10, 12]  # of runs that have written something the last step stays
    left = [entry for entry in entries if entry.position not in spent]
    before, after = PipelineState.of(entries), PipelineState.of(left)
    facts = ("days_to_recompute", "frontier_ms", "clock_start_ms", "versions", "unfinished")
    for fact in facts:
        assert getattr(after, fact) == getattr(before, fact), fact
    assert spent_steps(before, datetime(2023, 1, 1, tzinfo=UTC)) == []


def test_the_ledger_forgets_what_is_spent_and_counts_on(lake, tmp_path):
    ledger = Ledger(lake.pipeline("meter"))
    ledger.append(Entry("r-9", 1, "repeated", "advance"), datetime(2020, 1, 2, tzinfo=UTC))
    note(lake, "r-10", "published")
    assert upkeep_of(SPEC, lake, TODAY)["ledger"] == 1
    maintain(SPEC, lake, Retention())
    left = [entry.run_id for entry in ledger.entries()]
    assert left == ["r-1", "r-2", "r-3", "r-10", *["maintain-6"] * len(TABLES)]
    assert note(lake, "r-11", "published") == 9
    assert write_report(SPEC, lake, tmp_path)["totals"]["slots"] == 16


def quarantined(lake, *days):
    """Rows that arrived so many days ago."""
    now = datetime.now(UTC)
    arrived = [now - timedelta(days_ago) for days_ago in days]
    late = {"reason": ["late"] * len(days), "quarantine_date": [day(0)] * len(days)}
    found = pa.table(late | {"arrived_at": pa.array(arrived, pa.timestamp("us", "UTC"))})
    write_deltalake(
        lake.pipeline("meter").uri("quarantine"), found, mode="append", schema_mode="merge"
    )


def test_quarantined_rows_of_old_arrival_days_go_whatever_their_slot(lake, tmp_path):
    quarantined(lake, 100, 51, 49, 1)
    kept = SPEC.model_copy(update={"quarantine_days": 50})
    assert upkeep_of(kept, lake, TODAY)["quarantine"] == 2
    maintain(kept, lake, TODAY)
    table = lake.pipeline("meter").table("quarantine").to_pyarrow_table()
    assert table["arrived_at"].null_count == 16
    assert table.num_rows == 18
    assert upkeep_of(kept, lake, TODAY)["quarantine"] == 0
    assert write_report(kept, lake, tmp_path)["totals"]["quarantine"] == 18
    maintain(SPEC, lake, TODAY)
    assert lake.pipeline("meter").rows("quarantine") == 18


def test_the_ledger_says_whether_upkeep_has_removed_rows_of_quarantine(lake):
    quarantined(lake, 100, 51, 49)
    note(lake, "r-4", "published")
    kept, ledger = SPEC.model_copy(update={"quarantine_days": 50}), Ledger(lake.pipeline("meter"))

    def diffs(spec) -> list[object]:
        known = len(ledger.entries())
        maintain(spec, lake, TODAY)
        return [step.diff for step in ledger.entries()[known:] if step.kind == "maintain"]

    without = diffs(SPEC)
    assert without and not any(without)
    again(lake, "windows")
    note(lake, "r-5", "published")
    removed = {"quarantine": {"insert": 0, "update": 0, "delete": 2}}
    assert [diff for diff in diffs(kept) if diff] == [removed]
    again(lake, "windows")
    note(lake, "r-6", "published")
    after = diffs(kept)
    assert after and not any(after)
    assert ledger.state().may_lack_quarantine(None)


def test_rows_removed_from_a_table_that_a_run_wrote_since_are_in_the_ledger_beside_its_versions(
    lake,
):
    """A rejected run had observed malformed rows; what upkeep removed was then called missing."""
    quarantined(lake, 100, 51, 49)
    ledger = Ledger(lake.pipeline("meter"))
    before = ledger.state().versions
    maintain(SPEC.model_copy(update={"quarantine_days": 50}), lake, TODAY)
    removed = {"quarantine": {"insert": 0, "update": 0, "delete": 2}}
    (step,) = [step for step in ledger.entries() if step.diff]
    assert (step.diff, step.versions["quarantine"]) == (removed, before["quarantine"])
    assert lake.pipeline("meter").version("quarantine") > before["quarantine"]
    assert rows(lake)


def test_rows_that_upkeep_removes_are_in_the_ledger_also_if_it_is_killed_right_after(
    lake, monkeypatch
):
    quarantined(lake, 100, 51, 49)

    def dies(*_):
        raise Killed

    kept = SPEC.model_copy(update={"quarantine_days": 50})
    with monkeypatch.context() as dying:
        dying.setattr(upkeep, "compact", dies)
        for name in TABLES:
            with suppress(Killed):
                _keep_small(_opened(kept, lake, TODAY, None), name, "maintain-4")
    assert upkeep_of(kept, lake, TODAY)["quarantine"] == 0
    maintain(kept, lake, TODAY)
    removed = {"quarantine": {"insert": 0, "update": 0, "delete": 2}}
    steps = Ledger(lake.pipeline("meter")).entries()
    assert [step.diff for step in steps if step.diff] == [removed]


def test_a_file_that_somebody_left_beside_the_stagings_hinders_nothing(lake):
    a_file(lake.folder / "meter" / "_staging" / ".DS_Store", 9)
    assert upkeep_of(SPEC, lake, TODAY)["staging"]["runs"] == []
    maintain(SPEC, lake, TODAY)


def test_the_ledger_keeps_that_upkeep_has_removed_rows():
    removed = {"quarantine": {"insert": 0, "update": 0, "delete": 2}}
    then = datetime(2020, 1, 1, tzinfo=UTC)
    upkeep_steps = [
        Entry(f"m-{n}", 1, "maintained", "maintain", diff=diff, position=n, written_at=then)
        for n, diff in enumerate([removed, removed, None, None], 1)
    ]
    state = PipelineState.of(upkeep_steps)
    spent = spent_steps(state, datetime.now(UTC))
    assert spent == [1, 3]  # the last step with a diff stays, and the last of all
    kept = PipelineState.of(step for step in upkeep_steps if step.position not in spent)
    assert kept.may_lack_quarantine(None)


def test_the_ledger_keeps_up_to_when_the_windows_of_a_range_by_other_rules_are_final():
    within = TimeRange(0, 9)
    noted = ToPublish(watermark_ms=7)
    steps = a_ledger(
        ("r-1", "publishing", {"versions": {}, "range": within, "publish": noted}),
        ("r-1", "published", {"versions": {}, "range": within, "overrides": {"max_ahead": "1h"}}),
        ("r-2", "publishing", {"versions": {}}),
        ("r-2", "published", {"versions": {}}),
        ("r-3", "published", {"versions": {}}),
    )
    before = PipelineState.of(steps)
    spent = spent_steps(before, datetime(2024, 1, 1, tzinfo=UTC))
    assert spent == [3]
    after = PipelineState.of(step for step in steps if step.position not in spent)
    assert after.overridden == before.overridden
    assert before.overridden[0].watermark_ms == 7


def test_the_ledger_keeps_it_of_a_range_that_a_later_run_has_recomputed_as_a_revert_gives_it_back():
    within = TimeRange(0, 9)
    noted = ToPublish(watermark_ms=7)
    steps = a_ledger(
        ("r-1", "started", {}),
        ("r-1", "publishing", {"versions": {}, "range": within, "publish": noted}),
        ("r-1", "published", {"versions": {}, "range": within, "overrides": {"max_ahead": "1h"}}),
        ("r-2", "publishing", {"versions": {}, "publish": ToPublish()}),
        ("r-2", "published", {"versions": {}, "range": within}),
        ("r-3", "published", {"versions": {}}),
    )
    spent = spent_steps(PipelineState.of(steps), datetime(2024, 1, 1, tzinfo=UTC))
    assert spent == [1]
    left = PipelineState.of(step for step in steps if step.position not in spent)
    assert not left.overridden
    revert = Entry("r-4", 1, "published", "revert", range=within, reverts="r-2", position=7)
    (given_back,) = left.after([revert]).overridden
    assert given_back.watermark_ms == 7


def test_quarantine_days_without_a_column_that_tells_the_day_are_refused(lake):
    kept = SPEC.model_copy(update={"quarantine_days": 50})
    with pytest.raises(InputError, match="quarantine_days: no column of the quarantine has"):
        upkeep_of(kept, lake, TODAY)


@pytest.fixture
def command(lake, tmp_path, capsys):
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["--pipelines", str(tmp_path), "--lake", lake.root, "maintain", *arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, " ".join(printed.err.split())

    return call


def test_the_command_shows_what_it_will_do_and_measures_it(command):
    code, out, err = command("meter")
    assert code == 0
    assert "meter: windows: compact the files of 4 days" in err
    assert "stored after" in out
    assert json.loads(command("meter", "--json")[1])["after"]["windows"]["in_use"]["files"] == 4


def test_of_all_pipelines_a_broken_one_hinders_no_other(command, tmp_path):
    (tmp_path / "broken.yaml").write_text("pipeline: broken", encoding="utf-8")
    (tmp_path / "new.yaml").write_text(FILE.replace("pipeline: meter", "pipeline: new"), "utf-8")
    code, out, err = command("--all", "--json")
    assert code == 2
    broken, maintained = json.loads(out)
    assert (broken["pipeline"], broken["exit_code"]) == ("broken", 2)
    assert (maintained["pipeline"], "error" in maintained) == ("meter", False)
    assert "broken.yaml" in err


def test_of_all_pipelines_one_with_a_damaged_table_hinders_no_other_and_is_named(
    command, lake, tmp_path
):
    (tmp_path / "early.yaml").write_text(
        FILE.replace("pipeline: meter", "pipeline: early"), "utf-8"
    )
    copytree(lake.folder / "meter", lake.folder / "early")
    first = lake.folder / "early/completeness/_delta_log/00000000000000000001.json"
    first.write_text("{bad")
    code, out, err = command("--all", "--json")
    damaged, maintained = json.loads(out)
    assert (code, damaged["exit_code"], damaged["error"]["place"]) == (2, 2, "early")
    assert maintained["pipeline"] == "meter"
    assert "error early: a table's log is damaged" in err
    assert "error strandline maintain early: a table" in command("early")[2]
    assert "meter: maintained" in command("--all")[1]


def test_where_no_pipeline_has_run_it_says_so(command, tmp_path):
    (tmp_path / "meter.yaml").write_text(FILE.replace("pipeline: meter", "pipeline: new"), "utf-8")
    for more in ((), ("--dry-run",)):
        code, out, _ = command("--all", *more)
        assert (code, out) == (0, "nothing to maintain: no pipeline has run in this lake\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give PIPELINE, or --all"),
        (("meter", "--all"), "give PIPELINE, or --all"),
        (("nope",), "nope"),
    ],
)
def test_what_cannot_be_maintained_is_refused(command, arguments, told):
    code, _, err = command(*arguments)
    assert code == 2
    assert told in err
