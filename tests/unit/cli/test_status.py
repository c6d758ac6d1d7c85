"""`strandline status`: its first line and its exit code say what is not as it must be. No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from shutil import rmtree
from socket import gethostname

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from joined import COGROUP, JOIN
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli.main import main
from strandline.errors import RetryableError
from strandline.lake.ledger.entry import Driver, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import EVERYTHING, TimeRange, instant_of
from strandline.pipeline.request.driver import INTERRUPTED
from strandline.pipeline.views.findings import start_to_come
from strandline.spec import parse_spec


@pytest.fixture
def lake(tmp_path):
    return a_lake_of(4, SPEC, tmp_path / "lake")


@pytest.fixture
def status(lake, tmp_path, capsys):
    """`strandline status …`: its exit code, and what it has printed."""
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--pipelines", str(tmp_path), "--lake", lake.root]

    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main([*places, "status", *arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out + printed.err

    return call


def note(lake, run_id, step, kind="advance", **more):
    store = lake.pipeline("meter")
    published = step == "published"
    versions = {n: v for n, v in store.versions().items() if n != "runs"} if published else None
    entry = Entry(run_id, 1, step, kind, TimeRange(0, 1), versions=versions)
    Ledger(store).append(replace(entry, **more), datetime.now(UTC))


def test_a_landing_table_that_is_gone_is_what_every_run_would_say(lake, status):
    rmtree(lake.resolve(SPEC.source.table))
    code, out = status("meter", "--deep")
    assert code == 3
    assert out.startswith("meter: CRITICAL: every run is refused: source.table: ")


def test_a_file_with_another_window_than_the_published_rows_is_what_every_run_would_say(
    lake, status, tmp_path
):
    note(lake, "scheduled", "published", layout=SPEC.layout)
    assert "every run is refused" not in status("meter")[1]
    (tmp_path / "meter.yaml").write_text(FILE.replace("12h", "6h"), encoding="utf-8")
    code, out = status("meter", "--deep")
    assert code == 3
    assert out.startswith("meter: CRITICAL: every run is refused: meter: window: ")


def test_a_landing_table_that_cannot_be_read_is_not_called_gone(lake, status):
    (log,) = sorted(Path(lake.resolve(SPEC.source.table), "_delta_log").glob("*0.json"))
    log.write_text("{broken")
    said = status("meter")[1]
    assert "every run is refused: source.table landing/meter: a table's log is damaged" in said
    assert "no Delta table" not in said


def test_a_store_that_does_not_answer_says_nothing_of_the_runs_to_come(status, monkeypatch):
    def refuses(*_, **__):
        raise RetryableError("source.table", "its store does not answer", "try again")

    monkeypatch.setattr("strandline.lake.landing.known_columns.open_table", refuses)
    assert status("meter")[1].startswith("meter: OK")


def test_tables_of_a_pipeline_that_no_file_names_any_more_are_named(status, tmp_path):
    assert "note:" not in status()[1]
    (tmp_path / "meter.yaml").write_text(FILE.replace("pipeline: meter", "pipeline: gauge"))
    code, said = status()
    assert code == 0
    assert "gauge: has no runs yet" in said
    assert f"note: the lake has tables of meter, and {tmp_path}/ no file of that name" in said
    assert [one["pipeline"] for one in json.loads(status("--json")[1])] == ["gauge"]


def test_a_broken_file_hides_no_lake_in_which_nothing_has_run(status, tmp_path):
    (tmp_path / "other.yaml").write_text("pipeline: [", encoding="utf-8")
    assert status()[0] == 0
    assert status("--lake", str(tmp_path / "empty"))[0] == 2
    (tmp_path / "meter.yaml").write_text("pipeline: [", encoding="utf-8")
    assert status()[0] == 0  # the lake has tables of meter
    assert status("--lake", str(tmp_path / "empty"))[0] == 2


def test_a_landing_table_called_runs_is_no_pipeline_without_a_file(lake, status):
    write_deltalake(str(lake.folder / "landing" / "runs"), pa.table({"a": [1]}))
    assert "note:" not in status()[1]


def test_a_first_run_that_failed_before_it_observed_anything_has_a_status(status, tmp_path):
    empty = Lake.at(str(tmp_path / "empty"))
    for step in ("started", "failed"):
        note(empty, "r-1", step, versions={}, message="no space left")
    code, said = status("meter", "--lake", empty.root)
    assert code == 0
    assert "the last run of advance failed: no space left" in said


def test_windows_of_all_time_are_closed_up_to_nothing(lake, status):
    note(lake, "r-2", "published", first_open_ms=EVERYTHING.start_ms)
    assert "closed up to     nothing yet" in status("meter")[1]


def test_days_that_a_rejected_run_has_observed_close_nothing(lake, status):
    """Nor do those of a reverted run; the watermark is of the last day that was observed."""
    midnight_ms, end_ms = (instant_of(datetime(2013, 1, day, tzinfo=UTC)) for day in (4, 5))
    note(lake, "r-2", "published", frontier_ms=midnight_ms, first_open_ms=end_ms)
    note(lake, "r-3", "rejected")
    assert "watermark        at 2013-01-04T12:00:00Z" in status("meter")[1]
    assert "closed up to     2013-01-03T12:00:00Z" in status("meter")[1]


def test_a_run_that_failed_is_the_first_line_until_one_of_its_kind_has_ended(lake, status):
    def first_line():
        return status("meter")[1].splitlines()[0]

    assert first_line() == "meter: OK"
    note(lake, "r-2", "failed", message="no space left")
    failed = "meter: CRITICAL: the last run of advance failed: no space left"
    assert first_line() == failed
    note(lake, "r-3", "published", kind="backfill")
    note(lake, "r-4", "already_processed")
    assert first_line() == failed
    note(lake, "r-5", "published")
    assert first_line() == "meter: OK"
    note(lake, "r-6", "failed", kind="backfill", message=INTERRUPTED)
    assert first_line() == "meter: WARNING: the last run of backfill was interrupted"
    note(lake, "r-6", "dropped", kind="backfill")
    assert first_line() == "meter: OK"
    note(lake, "r-7", "started", driver=Driver(gethostname(), 0, "0.1.0"))
    assert first_line() == (
        "meter: CRITICAL: the last run of advance was killed, or could not write its last step"
    )


def test_a_run_that_failed_as_another_published_the_same_request_is_no_finding(lake, status):
    """One that failed after that has work of its own: of rows that have landed since."""
    note(lake, "r-2", "published", request_fingerprint="same")
    note(lake, "r-3", "started")
    note(lake, "r-3", "failed", request_fingerprint="same", message="the disk is full")
    assert "CRITICAL: the last run of advance failed: the disk is full" in status("meter")[1]
    note(lake, "r-4", "started")
    note(lake, "r-5", "published", request_fingerprint="same")
    note(lake, "r-4", "failed", request_fingerprint="other", message="another run has published")
    assert "CRITICAL: the last run of advance failed: another" in status("meter")[1]
    note(lake, "r-4", "failed", request_fingerprint="same", message="another run has published")
    assert status("meter")[1].startswith("meter: OK")


def test_only_with_deep_the_exit_code_says_that_something_is_critical(lake, status, tmp_path):
    assert status("meter", "--deep")[0] == 0
    DeltaTable(lake.pipeline("meter").uri("quarantine")).delete("reason = 'late'")
    assert status("meter")[0] == 0
    code, said = status("meter", "--deep")
    assert (code, "unaccounted for" in said) == (3, True)
    assert status()[0] == 0
    (tmp_path / "other.yaml").write_text("pipeline: [", encoding="utf-8")
    assert status()[0] == 0
    assert status("--deep")[0] == 3
    note(lake, "r-2", "erased", kind="erase")  # what upkeep took from quarantine is not missing
    assert status("meter", "--deep")[0] == 0
    assert status("--deep")[0] == 2
    (tmp_path / "other.yaml").write_text(FILE.replace("meter", "other"), encoding="utf-8")
    assert status("--deep")[0] == 0  # it has not run yet
    (tmp_path / "twin.yaml").write_text(FILE, encoding="utf-8")
    code, said = status("--deep")
    assert (code, said.count("defined by meter.yaml and twin.yaml")) == (2, 1)
    rows = [line for line in said.splitlines()[1:] if not line.startswith(" ")]
    assert [row.split()[0] for row in rows] == ["meter", "other"]
    (tmp_path / "twin.yaml").unlink()
    log = Path(lake.pipeline("meter").uri("runs")) / "_delta_log"
    (log / f"{DeltaTable(log.parent).version():020}.json").write_text("{?", encoding="utf-8")
    code, said = status("--deep")  # a damaged pipeline hides no other one
    assert (code, "log is damaged" in said, "other: has no runs yet" in said) == (2, True, True)


def test_a_clock_that_starts_behind_all_that_is_processed_is_no_ok_and_no_watermark(lake, status):
    """48 slots were open for ever beside "OK" and a watermark that nobody had emitted."""
    assert "watermark        at " in status("meter")[1]
    horizon_ms = instant_of(datetime(2024, 3, 9, tzinfo=UTC))
    start_ms = instant_of(datetime(2025, 1, 1, tzinfo=UTC))
    note(lake, "r-2", "observed", clock_start_ms=start_ms)
    note(lake, "r-2", "published", horizon_ms=horizon_ms)
    first, *rest = status("meter")[1].splitlines()
    assert first.startswith("meter: WARNING: the job's clock starts at 2025-01-01T00:00:00Z")
    assert "watermark        none" in "\n".join(rest)
    note(lake, "r-3", "published", horizon_ms=start_ms + 1)
    assert "the job's clock" not in status("meter")[1]


@pytest.mark.parametrize(
    ("content", "emits", "waits"),
    [
        (COGROUP, ({"every": "1m"}, {"every": "5m"}), True),
        (COGROUP, ({"every": "1m"}, "per_record"), False),
        (JOIN, ({"every": "1m"}, "per_record"), True),
        (JOIN, ("per_record", "per_record"), False),
    ],
    ids=["cogroup by ticks", "cogroup by records", "join by ticks", "join by records"],
)
def test_the_watermark_of_two_sources_waits_for_the_clock_too(content, emits, waits):
    by_records = {"strategy": "bounded_out_of_orderness", "bound": "1h"}
    sources = {
        name: side | {"watermark": by_records | {"emit": emit}}
        for (name, side), emit in zip(content["sources"].items(), emits, strict=True)
    }
    spec = parse_spec(content | {"sources": sources}, origin="both.yaml")
    run = Entry("r-1", 1, "published", "advance", horizon_ms=5, clock_start_ms=9)
    assert start_to_come(spec, PipelineState.of([run])) == (9 if waits else None)


def test_a_run_by_hand_over_nothing_does_not_move_the_clocks_start_behind_all_that_is_processed():
    """Its data cut-off is the first of all instants where nothing has arrived."""
    nightly = Entry("r-1", 1, "published", "advance", horizon_ms=20, completes_ms=20)
    by_hand = Entry("r-2", 2, "published", "backfill", horizon_ms=-62_135_596_800_000)
    noted = replace(by_hand, clock_start_ms=9)
    assert start_to_come(SPEC, PipelineState.of([nightly, noted])) is None
    assert start_to_come(SPEC, PipelineState.of([noted])) == 9


def test_a_day_to_recompute_is_left_to_the_next_run_only_where_no_rows_are_missing(lake, status):
    """It said "the next scheduled run does it" beside missing rows, which no run does without."""
    note(lake, "r-2", "owed", owed=[date(2024, 3, 1)])
    assert "changed or landed late; the next scheduled run does it" in status("meter")[1]
    note(lake, "r-2", "staged", lost=[date(2024, 3, 2)])
    text = status("meter")[1]
    assert "changed or landed late; the next scheduled run that needs no missing rows does" in text


def test_nothing_is_closed_for_good_before_the_first_of_all_days_is_recomputed(lake, status):
    """No day before it has a watermark: it went by the published slots, which all may change."""
    until_ms = instant_of(datetime(2013, 1, 5, tzinfo=UTC))
    note(lake, "r-2", "published", horizon_ms=until_ms, completes_ms=until_ms)
    assert "closed up to     the last slot" in status("meter")[1]
    note(lake, "r-3", "owed", owed=[date(2013, 1, 1)])
    assert "closed up to     nothing yet" in status("meter")[1]


def test_a_slot_with_records_in_no_window_is_not_only_late(lake, status):
    """With gaps between the windows they lie in none, and no watermark has refused them."""
    counts = {"on_time": "0", "late_accepted": "0", "late": "0"}
    table = lake.pipeline("meter").table("completeness")
    table.update({**counts, "no_window": "3"}, predicate="gap = false")
    assert json.loads(status("meter", "--json")[1])["slots_only_late"] == 0
    table.update({**counts, "late": "3", "no_window": "0"}, predicate="gap = false")
    assert json.loads(status("meter", "--json")[1])["slots_only_late"] > 0


def test_edited_rules_may_be_those_of_the_pipeline_whose_results_are_read(lake, status, tmp_path):
    (tmp_path / "meter.yaml").write_text(f"{FILE}firings: true\n", encoding="utf-8")
    days = "pipeline: days\nsource: {pipeline: meter}\nwindow: {tumbling: 1d}\n"
    (tmp_path / "days.yaml").write_text(days, encoding="utf-8")
    for name, above in (("meter", ""), ("days", ", or that of meter,")):
        ledger = Ledger(lake.pipeline(name))
        run = Entry("r", 1, "published", "advance", TimeRange(0, 1), spec_fingerprint="other")
        ledger.append(run, datetime.now(UTC))
        changed = f"the pipeline file{above} has changed since the last published run"
        assert changed in status(name)[1]


def test_edited_rules_are_said_to_be_until_a_run_by_them_is_published_and_stands(lake, status):
    """A run by them that failed, was rejected or was reverted has changed no published number."""
    edited, said = {"spec_fingerprint": "other"}, "the pipeline file has changed since"
    by_file = parse_spec(yaml.safe_load(FILE), origin="meter.yaml").spec_fingerprint
    note(lake, "r-1", "published", range=TimeRange(0, 1), spec_fingerprint=by_file)
    for step in ("failed", "rejected", "prepared"):
        note(lake, f"r-{step}", step, **edited)
        assert said not in status("meter")[1]
    note(lake, "r-2", "published", range=TimeRange(0, 1), **edited)
    assert said in status("meter")[1]
    note(lake, "r-3", "published", kind="revert", range=TimeRange(0, 1), reverts="r-2")
    assert said not in status("meter")[1]


def test_a_run_over_all_windows_names_no_year_of_one(lake, status):
    note(lake, "r-2", "published", range=TimeRange(EVERYTHING.start_ms, 0), horizon_ms=0)
    text = status("meter")[1]
    assert "windows from the first one to 1970-01-01T00:00:00Z" in text
    assert "0001-01-01" not in text
