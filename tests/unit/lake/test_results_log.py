"""As of when the results of another pipeline are known, by its ledger."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from lakes import a_record, a_spec, at, instant, land

from strandline.cli.words import unfinished
from strandline.errors import RetryableError, StaleStagingError
from strandline.lake.landing.changed_results import dates_to_use_again, ranges_changed
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.landing.results_log import ResultsLog, known_over
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange
from strandline.pipeline.publish.publish_prepared import require_publishable
from strandline.pipeline.views.status import status_of
from strandline.spec import PipelineSpec, parse_any
from strandline.spec.chained import ResultsSpec


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def ran(start: int, end: int, horizon: int, kind: str = "backfill") -> Entry:
    """A run over all records whose windows start on some days."""
    within, horizon_ms = days(start, end), horizon * DAY_MS
    completes_ms = None if kind == "revert" else horizon_ms
    return Entry(
        "r-1", 1, "published", kind, within, horizon_ms=horizon_ms, completes_ms=completes_ms
    )


def of_a_part(start: int, end: int, horizon: int) -> Entry:
    """A run with records whose windows start on other days."""
    return replace(ran(start, end, horizon), completes_ms=None)


def numbered(entries: Iterable[Entry]) -> list[Entry]:
    return [replace(entry, position=number) for number, entry in enumerate(entries)]


def known(*entries: Entry) -> float | None:
    """The day as of which results of the days 1 to 5 are known."""
    known_ms = known_over(PipelineState.of(numbered(entries)), days(1, 5))
    return None if known_ms is None else known_ms / DAY_MS


def test_the_newest_run_over_all_of_them_tells_it():
    assert known() is None
    assert known(ran(1, 3, 9), ran(3, 5, 9)) is None  # nobody has run over all
    assert known(ran(0, 9, 7), ran(1, 5, 8)) == 8
    assert known(ran(0, 9, 8), ran(1, 5, 7)) == 7  # as of an earlier horizon again


def test_a_run_since_that_knows_less_of_a_part_does_as_well():
    assert known(ran(0, 9, 8), of_a_part(3, 4, 9)) == 8
    assert known(ran(0, 9, 8), of_a_part(3, 4, 6)) == 6
    assert known(ran(0, 9, 8), of_a_part(6, 9, 6)) == 8  # not of these results


def test_a_run_that_leaves_windows_out_tells_nothing_of_results_that_there_are_by_chance():
    """Of the others some may have fired before its horizon."""
    assert known(of_a_part(0, 9, 8)) is None
    assert known(ran(0, 9, 7), of_a_part(0, 9, 8)) == 7
    assert known(ran(0, 9, 8), of_a_part(0, 9, 7)) == 7


def test_a_run_that_was_taken_back_counts_for_nothing():
    assert known(ran(0, 9, 7), ran(0, 9, 8), ran(0, 9, 7, "revert")) == 7
    assert known(ran(0, 9, 8), ran(0, 9, 8, "revert")) is None
    assert known(ran(0, 9, 7), ran(3, 4, 6), ran(3, 4, 7, "revert")) == 7


def test_a_revert_takes_back_the_last_run_over_just_its_range():
    runs = [ran(0, 9, 7), ran(3, 4, 8), ran(0, 9, 8), ran(0, 9, 7, "revert"), ran(3, 4, 8)]
    runs += [ran(3, 4, 7, "revert"), ran(5, 6, 9, "revert")]
    assert pairs_of(runs) == [(2, 3), (4, 5)]


def test_a_revert_that_is_taken_back_leaves_what_it_had_taken_back():
    runs = [ran(0, 9, 7), ran(0, 9, 8), ran(0, 9, 7, "revert"), ran(0, 9, 8, "revert")]
    assert pairs_of(runs[:3]) == [(1, 2)]
    assert pairs_of(runs) == [(2, 3)]
    assert pairs_of([*runs, ran(0, 9, 7, "revert")]) == [(1, 2), (3, 4)]
    assert known(*runs) == 8


def pairs_of(runs: list[Entry]) -> list[tuple[int, int]]:
    pairs = PipelineState.of(numbered(runs)).taken_back
    return [(pair.run.position, pair.by.position) for pair in pairs]


# ------------------------------------------------------------------- three pipelines in a line

HOURS = a_spec(firings=True)
OVER = {"window": {"tumbling": "1d"}, "aggregates": {"n": "count(*)"}, "firings": True}


def over(name: str, upstream: PipelineSpec) -> ResultsSpec:
    """A pipeline over the results of another one."""
    source = {"pipeline": upstream.pipeline, "key": ["device"]}
    content = {"pipeline": name, "source": source, **OVER}
    return parse_any(content, origin=f"{name}.yaml").over(upstream)


def publish(
    lake: Lake,
    spec: PipelineSpec,
    day: int,
    landing_version: int | None = None,
    *,
    window_date: int | None = None,
    **more: object,
) -> None:
    """A run up to a day, with one more firing, by default of a window of that day."""
    store = lake.pipeline(spec.pipeline)
    rows = pa.table({"window_date": [at(f"{window_date or day}").date()], "device": ["d1"]})
    for name in ("firings", "windows"):
        write_deltalake(store.uri(name), rows, mode="append", partition_by=["window_date"])
    step = Entry(
        f"r-{day}",
        1,
        "published",
        "advance",
        frontier_ms=instant(f"{day}"),
        landing_version=landing_version,
        versions=store.versions(),
        spec_fingerprint=spec.spec_fingerprint,
        completes_ms=instant(f"{day}"),
    )
    Ledger(store).append(replace(step, **more), datetime.now(UTC))


def test_of_three_in_a_line_the_last_reads_the_first_as_it_was_for_the_second(tmp_path):
    lake = Lake.at(str(tmp_path))
    days = over("days", HOURS)
    weeks = over("weeks", days)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 2, 0)
    publish(lake, days, 2, ResultsLog.published(lake, days).version)
    land(tmp_path, [a_record("2 10:00", "2 09:00")], mode="append")
    publish(lake, HOURS, 3, 1)

    landing = open_landing(None, lake, weeks)
    assert landing.version == 0
    assert (landing.upstream.version, landing.upstream.upstream.version) == (0, 0)
    assert landing.upstream.log.known_until_ms == instant("2")
    publish(lake, days, 3, ResultsLog.published(lake, days).version)
    landing = open_landing(None, lake, weeks)
    assert (landing.upstream.version, landing.upstream.upstream.version) == (1, 1)
    assert ResultsLog.published(lake, days).readable_at(7) is None


@pytest.mark.parametrize("gone", ["firings", "windows"])
def test_results_whose_files_have_been_removed_are_read_as_they_are_now(tmp_path, gone):
    lake = Lake.at(str(tmp_path))
    days = over("days", HOURS)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 2, 0)
    publish(lake, days, 2, ResultsLog.published(lake, days).version)
    table = lake.pipeline("meter").table(gone)
    files = table.file_uris()
    table.delete()
    for file in files:  # a vacuum leaves what went in its own millisecond
        Path(file).unlink()
    publish(lake, HOURS, 3, 0)
    landing = open_landing(None, lake, over("weeks", days))
    assert landing.upstream.version == ResultsLog.published(lake, days).version > 0


def test_what_had_landed_for_a_run_that_was_taken_back_is_not_what_results_are_of(tmp_path):
    lake = Lake.at(str(tmp_path))
    for day in (1, 2, 3):
        land(tmp_path, [a_record(f"{day} 10:00", f"{day} 09:00")], mode="append")
    publish(lake, HOURS, 2, 0)
    publish(lake, HOURS, 3, 1)
    results = ResultsLog.published(lake, over("days", HOURS))
    newest = LandingLog.of(lake, HOURS)
    assert results.source_log(newest).version == 1
    published = [replace(e, range=days(0, 9)) for e in results.state.steps]
    back = replace(published[-1], kind="revert", position=9)
    # one that was prepared on the second, and published after the night of the third
    approved = replace(published[0], kind="backfill", completes_ms=None, position=9)
    later = replace(results, state=PipelineState.of([*published, approved]))
    assert later.source_log(newest).version == 1
    taken_back = PipelineState.of([*published, back])
    assert replace(results, state=taken_back).source_log(newest).version == 0


def test_upkeep_makes_no_other_input_and_a_publication_does(tmp_path):
    """A prepared run over results was said to be out of date after `strandline maintain`."""
    lake = Lake.at(str(tmp_path))
    spec = over("days", HOURS)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 2, 0)
    before = ResultsLog.published(lake, spec).input_id
    store = lake.pipeline("meter")
    store.table("windows").optimize.compact()
    step = Entry("r-0", 1, "maintained", "maintain", versions=store.versions())
    Ledger(store).append(step, datetime.now(UTC))
    results = ResultsLog.published(lake, spec)
    assert (results.tables.step.step, results.input_id) == ("maintained", before)
    publish(lake, HOURS, 3, 0)
    assert ResultsLog.published(lake, spec).input_id != before


def test_rules_of_one_run_alone_are_no_edit_of_the_other_pipelines_file(tmp_path):
    """Its results are read on; they were refused until it had run by its file again."""
    lake = Lake.at(str(tmp_path))
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 2, 0)
    wider = a_spec(firings=True, allowed_lateness="2h")
    asked = {"kind": "backfill", "completes_ms": None}
    publish(lake, wider, 3, 0, overrides={"allowed_lateness": "2h"}, **asked)
    assert ResultsLog.published(lake, over("days", HOURS)).state.published[-1].overrides
    publish(lake, wider, 3, 0, **asked)
    with pytest.raises(RetryableError, match="has not run yet by the present rules of its file"):
        ResultsLog.published(lake, over("days", HOURS))


@pytest.fixture
def approval(tmp_path):
    """Whether a run over the results of 2 March may be published; why not, as text."""
    lake = Lake.at(str(tmp_path))
    spec = over("days", HOURS)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 3, 0, window_date=2)
    log, store = ResultsLog.published(lake, spec), lake.pipeline("days")
    (tmp_path / "days/_staging/r-1").mkdir(parents=True)
    (tmp_path / "days/_staging/r-1/part-0.parquet").touch()
    prepared = Entry(
        "r-1",
        1,
        "prepared",
        "backfill",
        TimeRange(instant("2"), instant("3")),
        horizon_ms=instant("3"),
        spec_fingerprint=spec.spec_fingerprint,
        timeline_fingerprint=spec.timeline_fingerprint,
        landing_version=log.version,
        landing_id=log.table_id,
        publish=ToPublish(parts=("windows", "firings"), input_id=log.input_id),
    )

    def asked() -> str:
        state = PipelineState.of([prepared])
        try:
            require_publishable(spec, store, state, "r-1", None, ResultsLog.published(lake, spec))
        except StaleStagingError as error:
            return error.problem
        return "valid"

    assert asked() == "valid"
    return lake, asked


def test_nights_of_the_other_pipeline_leave_an_approval_over_its_results_valid(approval):
    """Each made it stale, though it could change nothing of what had been approved."""
    lake, asked = approval
    publish(lake, HOURS, 4, 0, window_date=3)
    publish(lake, HOURS, 5, 0)
    assert asked() == "valid"
    publish(lake, HOURS, 6, 0, window_date=2)  # a late firing
    assert "the results of meter have changed in its windows since" in asked()


@pytest.mark.parametrize(
    "more",
    [
        {"settled": [at("2").date()]},
        {"kind": "revert"},
        {"kind": "backfill", "completes_ms": None},
        {"overrides": {"allowed_lateness": "3h"}},
        {"accepted_loss": "nobody needs them"},
        {"completes_ms": instant("3"), "frontier_ms": instant("3")},
    ],
)
def test_a_publication_that_may_have_moved_the_watermark_makes_an_approval_stale(approval, more):
    lake, asked = approval
    publish(lake, HOURS, 4, 0, **more)
    assert "were published again since, maybe with another watermark" in asked()


def test_results_that_are_published_anew_are_another_table(tmp_path):
    """The other pipeline's folder is removed, and as many versions are published again."""
    lake = Lake.at(str(tmp_path))
    spec = over("days", HOURS)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    publish(lake, HOURS, 2, 0)
    before = ResultsLog.published(lake, spec)
    shutil.rmtree(tmp_path / "meter")
    publish(lake, HOURS, 2, 0)
    now = ResultsLog.published(lake, spec)
    assert (now.version, now.is_another(before.table_id)) == (before.version, True)
    assert not now.is_another(None)  # of an old ledger
    assert not now.same_rows_since(before.version, before.table_id, days_by=None, last_day=None)

    done = Entry("r-1", 1, "published", "advance", days(0, 9), landing_version=now.version)
    done = replace(done, completes_ms=9 * DAY_MS, landing_id=now.table_id)
    assert ranges_changed(now, spec, PipelineState.of([done])) == []
    of_before = replace(done, landing_id=before.table_id)
    assert ranges_changed(now, spec, PipelineState.of([of_before])) == [
        TimeRange(EVERYTHING.start_ms, 9 * DAY_MS)
    ]


# ------------------------------------------- used results that have changed, as status says of them


@pytest.fixture
def line(tmp_path):
    """Two days of results, which a pipeline has used; and what its status says of them."""
    lake = Lake.at(str(tmp_path))
    spec = over("days", HOURS)
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    for day in (2, 3):
        publish(lake, HOURS, day, 0, window_date=day - 1)
    use(lake, spec)

    def said(of: ResultsSpec = spec) -> list[str]:
        found = status_of(of, lake)
        changed = [one for one in found["findings"] if one["name"] == "results_changed"]
        sentences = [one["sentence"] for one in changed]
        assert len(sentences) == bool(found["upstream"]["changed"])
        assert all(one in found["state"] for one in sentences)
        return list(found["upstream"]["changed"])

    return lake, spec, said


def use(lake: Lake, spec: ResultsSpec, kind: str = "advance", **more: object) -> None:
    """A run over all results up to the third, of which the windows of the first two are closed."""
    log, store = ResultsLog.published(lake, spec), lake.pipeline(spec.pipeline)
    third = instant("3")
    run = Entry(
        f"d-{log.version}",
        1,
        "published",
        kind,
        TimeRange(instant("1"), third),
        horizon_ms=third,
        frontier_ms=third,
        completes_ms=third,
        first_open_ms=third,
        landing_version=log.version,
        landing_id=log.table_id,
        spec_fingerprint=spec.spec_fingerprint,
    )
    Ledger(store).append(replace(run, **more), datetime.now(UTC))


@pytest.mark.parametrize("more", [{"kind": "backfill", "completes_ms": None}, {"kind": "revert"}])
def test_status_says_that_used_results_have_changed_until_the_next_run_has_used_them(line, more):
    """It was OK after a run by hand, or a revert, of the pipeline whose results are read."""
    lake, spec, said = line
    assert said() == []
    publish(lake, HOURS, 3, 0, window_date=1, **more)
    assert said() == ["2024-03-01"]
    found = status_of(spec, lake)
    assert found["state"] == (
        "WARNING: results of meter of 2024-03-01 have changed since they were used: the next "
        "scheduled run rebuilds the windows made of them"
    )
    does_it = "changed since they were used; the next scheduled run does it"
    assert [*unfinished(found)] == [("to recompute", f"results of meter of 2024-03-01: {does_it}")]
    use(lake, spec)
    assert said() == []


def test_scheduled_runs_that_go_on_leave_used_results_as_they_are(line):
    """Each night adds results of a date that has some, and fires others again."""
    lake, _, said = line
    publish(lake, HOURS, 4, 0, window_date=2)
    assert said() == []
    publish(lake, HOURS, 5, 0, window_date=2, settled=[at("2").date()])
    assert said() == ["2024-03-02"]


def test_dates_that_a_night_went_on_with_do_not_count_beside_a_date_changed_by_hand(line):
    lake, _, said = line
    publish(lake, HOURS, 4, 0, window_date=2)
    publish(lake, HOURS, 4, 0, window_date=1, kind="backfill", completes_ms=None)
    publish(lake, HOURS, 5, 0, window_date=2)
    assert said() == ["2024-03-01"]


def test_each_step_of_the_other_ledger_is_folded_once_however_many_runs_have_gone_on(
    line, monkeypatch
):
    lake, spec, _ = line
    for day in range(4, 12):
        publish(lake, HOURS, day, 0)
    log, folded = ResultsLog.published(lake, spec), []
    after = PipelineState.after

    def counted(state: PipelineState, steps: Iterable[Entry]) -> PipelineState:
        more = [*steps]
        folded.extend(more)
        return after(state, more)

    monkeypatch.setattr(PipelineState, "after", counted)
    assert log.changed_otherwise_since(-1) == {at("1").date()}
    assert len(folded) <= 2 * len(log.state.steps)


def test_results_of_windows_that_are_still_open_are_no_work_left_over(line):
    lake, _, said = line
    publish(lake, HOURS, 3, 0, window_date=3, kind="backfill", completes_ms=None)
    assert said() == []


def test_a_rebuild_by_hand_of_the_windows_over_changed_results_leaves_nothing_to_rebuild(line):
    lake, spec, said = line
    publish(lake, HOURS, 3, 0, window_date=1, kind="backfill", completes_ms=None)
    use(lake, spec, "backfill", completes_ms=None)
    assert said() == []


def test_a_range_by_other_rules_has_its_own_used_results(line):
    lake, spec, said = line
    by_other_rules = {"overrides": {"allowed_lateness": "9h"}, "completes_ms": None}
    publish(lake, HOURS, 3, 0, window_date=1, kind="backfill", completes_ms=None)
    use(lake, spec, "backfill", **by_other_rules)
    assert said() == []
    publish(lake, HOURS, 3, 0, window_date=1, kind="backfill", completes_ms=None)
    assert said() == ["2024-03-01"]


def test_where_each_change_may_reach_others_the_dates_before_the_first_open_window_count(line):
    lake, _, _ = line
    content = {"pipeline": "visits", **OVER, "window": {"session": "2h"}}
    content["source"] = {"pipeline": "meter", "key": ["device"]}
    sessions = parse_any(content, origin="visits.yaml").over(HOURS)
    use(lake, sessions)
    publish(lake, HOURS, 3, 0, window_date=2, kind="backfill", completes_ms=None)
    log, state = ResultsLog.published(lake, sessions), Ledger(lake.pipeline("visits")).state()
    assert dates_to_use_again(log, sessions, state) == [at("2").date()]


def test_results_that_are_published_in_another_table_have_all_changed(line, tmp_path):
    lake, _, said = line
    shutil.rmtree(tmp_path / "meter")
    for day in (2, 3):
        publish(lake, HOURS, day, 0, window_date=day - 1)
    assert said() == ["2024-03-01", "2024-03-02"]
