"""Which findings of audits stand, by the steps of the ledger alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calendars import NEW_YEAR, a_slot, write_calendar
from calendars import SCHEMA as CALENDAR
from deltalake import write_deltalake
from lakes import a_spec

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.rows import SCHEMA
from strandline.model.intervals import DAY_MS, EVERYTHING, HOUR_MS, TimeRange, instant_of
from strandline.pipeline.manage.acknowledge import step_about
from strandline.pipeline.views.audited import findings_of_audits
from strandline.pipeline.views.audited_data import AuditedData
from strandline.pipeline.views.findings import findings_of
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.findings.check import EXPECTATIONS as KEYS
from strandline.quality.findings.check import Finding, state_line

NAMES = [f"expect_{letter}" for letter in "abcdefgh"]
EXPECTATIONS = [{"type": name} for name in NAMES]
SPEC = a_spec(quality__expectations=EXPECTATIONS)
RULES = [*NAMES, *KEYS.values(), "expect_windows_to_be_unique"]
PASSED = [{"expectation": name, "severity": "warning", "success": True} for name in RULES]


def audited(position: int, kind: str, letter: str, step: str = "published", **more) -> Entry:
    more = {"range": EVERYTHING} | more
    name = f"expect_{letter}" if len(letter) == 1 else letter
    result = {"expectation": name, "severity": "warning", "success": False, "figures": name}
    result["table"] = "windows"
    audit = [result, *(one for one in PASSED if one["expectation"] != name)]
    return Entry(f"r{position}", 1, step, kind, audit=audit, position=position, **more)


@pytest.fixture
def standing(tmp_path):
    """The names and runs of the findings that stand after some steps, the newest first."""
    store = Lake.at(str(tmp_path)).pipeline("meter")

    def found(*entries: Entry, spec=SPEC) -> list[tuple[str, str | None]]:
        findings = findings_of_audits(ReadPipeline(spec, store, PipelineState.of(entries)))
        newest_first = sorted(findings, key=lambda one: one.run_id or "", reverse=True)
        return [(one.name.removeprefix("expect_"), one.run_id) for one in newest_first]

    return found


def test_findings_are_of_the_last_scheduled_run_and_of_runs_whose_windows_none_evaluated_since(
    standing,
):
    entries = [
        audited(1, "backfill", "a"),
        audited(2, "advance", "b"),
        audited(3, "advance", "c"),
        audited(4, "backfill", "d", step="rejected"),
        audited(5, "backfill", "e"),
        Entry("r5", 1, "dropped", "backfill", position=6),
    ]
    assert standing(*entries) == [("d", "r4"), ("c", "r3")]

    def of_range(position: int, letter: str, start_ms: int, end_ms: int, step: str) -> Entry:
        return audited(position, "backfill", letter, step, range=TimeRange(start_ms, end_ms))

    parts = [
        of_range(6, "f", 0, 5, "published"),
        of_range(7, "g", 5, 9, "published"),
        of_range(8, "h", 0, 9, "prepared"),
    ]
    staged = replace(parts[2], step="audited", position=7)
    assert standing(entries[2], *parts[:2], staged, parts[2]) == standing(entries[2], *parts)
    assert standing(entries[2], *parts) == [("g", "r7"), ("f", "r6"), ("c", "r3")]
    refused = of_range(9, "a", 0, 9, "rejected")
    assert standing(*parts, refused) == [("a", "r9"), ("g", "r7"), ("f", "r6")]
    halves = [of_range(9, "a", 0, 4, "published"), of_range(9, "b", 4, 9, "published")]
    halves[1] = replace(halves[1], run_id="r99", position=10)
    assert standing(*parts, *halves) == [("b", "r99"), ("a", "r9")]
    of_all = replace(audited(7, "backfill", "f"), completes_ms=0)
    assert standing(*entries, of_all) == [("f", "r7")]


def test_windows_before_the_first_record_need_not_be_evaluated_again(standing):
    hour, day = 3_600_000, 86_400_000
    all_time = audited(1, "advance", "a", range=TimeRange(-(10**14), day))
    first = replace(all_time, first_accepted_ms=2 * hour)
    by_hand = audited(2, "backfill", "b", range=TimeRange(2 * hour, day))
    assert standing(all_time, by_hand) == [("b", "r2"), ("a", "r1")]
    assert standing(first, by_hand) == [("b", "r2")]
    growing = a_spec(window={"cumulative": "2h", "step": "1h"}, quality__expectations=EXPECTATIONS)
    assert standing(first, by_hand, spec=growing) == [("b", "r2"), ("a", "r1")]
    sooner = replace(by_hand, range=TimeRange(0, day))
    assert standing(first, sooner, spec=growing) == [("b", "r2")]
    shortest = replace(all_time, first_accepted_ms=hour)  # the end of the first of that start
    assert standing(shortest, sooner, spec=growing) == [("b", "r2")]


@pytest.mark.parametrize(("start_h", "end_h", "first_h"), [(5, 5, None), (0, 2, 5)])
def test_a_finding_of_a_run_without_a_window_stands_until_a_later_run_evaluates_its_rule(
    standing, start_h, end_h, first_h
):
    first_ms = None if first_h is None else first_h * HOUR_MS
    of_no_window = {"range": TimeRange(start_h * HOUR_MS, end_h * HOUR_MS)}
    found = audited(1, "backfill", "a", first_accepted_ms=first_ms, **of_no_window)
    assert standing(found) == [("a", "r1")]
    assert standing(found, audited(2, "backfill", "b")) == [("b", "r2")]
    again = audited(2, "backfill", "a", first_accepted_ms=first_ms, **of_no_window)
    assert standing(found, again) == [("a", "r2")]
    passed = audited(2, "backfill", "b", first_accepted_ms=first_ms, **of_no_window)
    assert standing(found, passed) == [("b", "r2")]


def test_an_earlier_runs_finding_stands_if_it_is_about_rows_and_the_file_still_has_the_rule(
    standing,
):
    def day(number: int, name: str, step: str = "published", severity: str = "warning") -> Entry:
        entry = audited(number, "advance", name, step, range=TimeRange(number, number + 1))
        failed = [one | {"severity": severity} for one in entry.audit or ()]
        return replace(entry, audit=[one | {"expectation": name} for one in failed])

    clean = replace(day(9, "expect_a"), audit=PASSED)
    assert standing(day(1, "expect_unknown")) == []
    for name in ("expect_no_silent_channel", "expect_removed_share_to_be_at_most"):
        assert standing(day(1, name), clean) == []
        assert len(standing(day(1, name))) == 1
    assert standing(day(1, "expect_a"), clean) == [("a", "r1")]
    assert standing(day(1, "expect_a", severity="info"), clean) == []
    assert standing(day(1, "expect_a", "rejected"), clean) == []
    assert standing(day(1, "expect_windows_to_be_unique"), clean) != []
    by_reason = a_spec(quality__max_malformed_share={"null_key": 0})
    malformed = replace(day(1, "expect_malformed_share_to_be_at_most"), kind="backfill")
    assert len(standing(malformed, spec=by_reason)) == 1
    off = a_spec(quality__silent_after=None, quality__expectations=EXPECTATIONS)
    assert standing(day(1, "expect_no_silent_channel"), spec=off) == []
    late = "expect_late_share_to_be_at_most"
    assert standing(day(1, late)) == standing(day(1, late), clean) == []
    limited = SPEC.model_copy(
        update={"quality": SPEC.quality.model_copy(update={"max_late_share": 0.1})}
    )
    assert standing(day(1, late), clean, spec=limited) == [("max_late_share", "r1")]


def test_a_run_that_has_not_evaluated_a_rule_takes_no_finding_of_it_back(standing):
    """The rule was switched off for a night, or the run was killed behind its audit."""

    def without(entry: Entry, name: str, **changes) -> Entry:
        audit = [one for one in PASSED if one["expectation"] != name]
        return replace(entry, audit=audit, **changes)

    silent = "expect_no_silent_channel"
    for name in (silent, "expect_a"):
        found = audited(1, "advance", name, range=TimeRange(2, 9))
        night = audited(2, "advance", "b", range=TimeRange(0, 9))
        assert len(standing(found, replace(night, audit=PASSED))) == 0
        assert len(standing(found, without(night, name))) == 1
        rejected = replace(found, step="rejected")
        assert len(standing(rejected, without(night, name))) == (name == silent)
    killed = replace(audited(2, "advance", "b", step="audited"), audit=PASSED)
    found = audited(1, "advance", silent)
    assert standing(found, killed) == [("silent_after", "r1")]
    ended = without(audited(2, "backfill", "b", closed=True, completes_ms=0), silent)
    assert standing(found, ended) == []
    off = a_spec(quality__silent_after=None)
    assert standing(replace(found, step="rejected"), spec=off) == []


def test_a_finding_of_a_run_by_hand_outlives_the_next_scheduled_run(standing):
    by_hand = audited(1, "backfill", "a", range=TimeRange(2, 3))
    night = audited(2, "advance", "b", range=TimeRange(5, 9))
    assert standing(by_hand, night) == [("b", "r2"), ("a", "r1")]
    silent = audited(1, "backfill", "expect_no_silent_channel", range=TimeRange(2, 3))
    assert standing(silent, night) == [("b", "r2")]


def test_what_runs_say_of_one_horizon_is_said_once_whatever_their_ranges(standing):
    """Two published runs of a quiet afternoon said twice which channel is silent."""
    silent = [
        audited(number, "backfill", "expect_no_silent_channel", range=TimeRange(number, number + 1))
        for number in (1, 2)
    ]
    assert standing(*silent) == [("silent_after", "r2")]
    later = [replace(silent[1], audit=[(silent[1].audit or [])[0] | {"figures": "since noon"}])]
    assert standing(silent[0], *later) == [("silent_after", "r2"), ("silent_after", "r1")]


def test_of_many_runs_the_newest_are_listed_and_the_older_ones_counted(tmp_path):
    nights = [audited(n, "advance", "a", range=TimeRange(n, n + 1)) for n in range(1, 6)]
    store = Lake.at(str(tmp_path)).pipeline("meter")
    found = findings_of_audits(ReadPipeline(SPEC, store, PipelineState.of(nights)))
    assert [one.run_id for one in found] == ["r5", "r4", "r3", "r2"]
    assert found[-1].sentence == (
        "the same rule by 2 earlier runs, of windows from 1970-01-01T00:00:00.001Z to "
        "1970-01-01T00:00:00.003Z"
    )
    one_less = findings_of_audits(ReadPipeline(SPEC, store, PipelineState.of(nights[1:])))
    assert {one.sentence for one in one_less} == {"on windows: expect_a"}
    other = [(nights[0].audit or [])[0] | {"figures": "another sentence"}]
    of_all = replace(nights[0], range=EVERYTHING, audit=other)
    unbounded = PipelineState.of([of_all, *nights[1:]])
    assert (
        "windows from the first one to "
        in findings_of_audits(ReadPipeline(SPEC, store, unbounded))[-1].sentence
    )


def test_runs_before_the_tables_were_recreated_are_forgotten(standing):
    before = audited(1, "advance", "a", range=TimeRange(0, 9))
    again = audited(2, "backfill", "b", range=TimeRange(0, 5), recreated=True)
    assert standing(before, again) == [("b", "r2")]
    assert standing(before, replace(again, recreated=False)) == [("b", "r2"), ("a", "r1")]
    assert standing(before, replace(again, step="audited")) == [("b", "r2"), ("a", "r1")]


def test_windows_that_a_later_run_has_kept_are_not_evaluated_again(standing):
    by_hand = audited(1, "backfill", "a", range=TimeRange(2, 3))
    night = audited(2, "advance", "b", range=TimeRange(0, 9))
    assert standing(by_hand, night) == [("b", "r2")]
    keeping = replace(night, kept=[(2, 3)])
    assert standing(by_hand, keeping) == [("b", "r2"), ("a", "r1")]


def test_an_acknowledged_finding_stands_no_more_until_a_later_run_has_it(standing):
    def day(number: int, letter: str) -> Entry:
        return audited(number, "advance", letter, range=TimeRange(number, number + 1))

    nights = [day(1, "a"), day(2, "b")]
    seen = Entry("k3", 1, "acknowledged", "acknowledge", position=3)
    assert standing(*nights, seen) == [("b", "r2"), ("a", "r1")]
    only_a = replace(seen, acknowledged={"expect_a": "said"})
    assert standing(*nights, only_a) == [("b", "r2")]
    both = replace(seen, acknowledged={"expect_a": "said", "expect_b": "said"})
    assert standing(*nights, both) == []
    assert standing(*nights, both, day(4, "a")) == [("a", "r4")]
    # a rejected run that is accepted after its finding was acknowledged finds nothing again
    rejected = replace(nights[1], step="rejected")
    accepted = replace(nights[1], position=4)
    assert standing(nights[0], rejected, both, accepted) == []
    assert standing(nights[0], both, accepted) == [("b", "r2")]


def test_gaps_acknowledged_while_their_run_was_rejected_do_not_come_back_once_it_is_accepted(
    standing, tmp_path
):
    spec = a_spec(quality__gaps="warn")
    year = TimeRange(instant_of(NEW_YEAR), instant_of(NEW_YEAR) + 365 * DAY_MS)
    store = Lake.at(str(tmp_path)).pipeline("meter")

    def gap(number: int, run_id: str) -> dict[str, object]:
        return a_slot(number, gap=True, on_time=0, run_id=run_id)

    rejected = audited(2, "advance", "expect_no_gaps", "rejected", range=year)
    accepted = replace(rejected, step="published", position=4)
    rows = [a_slot(0), gap(1, "r2"), gap(2, "r2"), a_slot(3)]
    staging = tmp_path / "meter" / "_staging" / "r2" / "completeness"
    staging.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, CALENDAR), staging / "part-0.parquet")
    state = PipelineState.of([rejected])
    found = findings_of_audits(ReadPipeline(spec, store, state))
    seen = step_about(found, AuditedData(spec, store, state))
    seen = replace(seen, position=3)
    write_calendar(store, rows)
    assert standing(rejected, seen, accepted, spec=spec) == []
    assert standing(rejected, accepted, spec=spec) == [("gaps", "r2")]
    later = audited(5, "advance", "expect_no_gaps", range=year)
    write_calendar(store, [a_slot(0), gap(1, "r2"), gap(2, "r2"), a_slot(3), gap(4, "r5")])
    state = PipelineState.of([rejected, seen, accepted, later])
    (another,) = findings_of_audits(ReadPipeline(spec, store, state))
    assert (another.name, another.run_id) == ("gaps", "r5")
    assert another.sentence.startswith("1 gap: 2013-01-03T00:00:00Z")


def test_of_gaps_in_a_row_only_those_count_that_nobody_has_acknowledged(tmp_path):
    """A sensor that stays off: each night its one row of gaps is longer."""
    spec = a_spec(quality__gaps="warn", window={"tumbling": "12h"})
    store = Lake.at(str(tmp_path)).pipeline("meter")
    night = audited(3, "advance", "expect_no_gaps", range=EVERYTHING)

    def row(slots: int) -> dict[str, object]:
        end = NEW_YEAR + slots * timedelta(hours=12)
        return a_slot(0, gap=True, on_time=0) | {"slots": slots, "slot_end": end}

    write_calendar(store, [row(1_500)])
    state = PipelineState.of([night])
    (finding,) = findings_of_audits(ReadPipeline(spec, store, state))
    assert finding.sentence.startswith("1,500 gaps: ")
    write_calendar(store, [row(1_400)])
    seen = replace(step_about([finding], AuditedData(spec, store, state)), position=4)
    write_calendar(store, [row(1_500)])
    later = replace(night, run_id="r5", position=5)
    (finding,) = findings_of_audits(
        ReadPipeline(spec, store, PipelineState.of([night, seen, later]))
    )
    assert finding.sentence.startswith("100 gaps, in whole or in part in: ")


def test_more_separate_gaps_than_a_step_keeps_are_not_acknowledged(tmp_path, monkeypatch):
    """One range over all of them would have acknowledged the slots between, empty or not."""
    monkeypatch.setattr("strandline.pipeline.views.audited_data._MOST_RANGES", 2)
    spec, store = a_spec(quality__gaps="warn"), Lake.at(str(tmp_path)).pipeline("meter")
    gaps = [a_slot(number, gap=True, on_time=0) for number in (1, 3, 5)]
    write_calendar(store, gaps[:2])
    data = AuditedData(spec, store, PipelineState.of([]))
    assert [one.end_ms - one.start_ms for one in data.ranges_of_gaps([])] == [DAY_MS // 2] * 2
    write_calendar(store, gaps)
    with pytest.raises(InputError, match="3 separate ranges; at most 2 can be acknowledged"):
        data.ranges_of_gaps([])


def test_a_scheduled_run_is_about_its_own_arrival_days_though_a_later_cut_off_was_published(
    tmp_path,
):
    """Seven calm days that a run by hand had published hid a malformed one."""

    def midnight(number: int) -> int:
        return instant_of(NEW_YEAR) + number * DAY_MS

    def rows(number: int, good: int, bad: int) -> list[dict[str, object]]:
        day = (NEW_YEAR + timedelta(number)).date()
        malformed = {"kind": "cell", "reason": "invalid", "records": bad}
        found = [{"kind": "day", "event_date": day, "records": good}, *([malformed] * (bad > 0))]
        return [{"arrival_date": day, **row} for row in found]

    store = Lake.at(str(tmp_path)).pipeline("meter")
    arrived = [rows(0, 100, 0), rows(1, 50, 50), *(rows(n, 1_000, 0) for n in range(2, 9))]
    timeline = pa.Table.from_pylist([row for of_day in arrived for row in of_day], SCHEMA)
    write_deltalake(store.uri("timeline"), timeline, partition_by=["arrival_date"])
    name = "expect_malformed_share_to_be_at_most"

    def night(number: int, to: int, horizon: int, rule: str) -> Entry:
        known = {"completes_ms": midnight(to), "frontier_ms": midnight(to)}
        within = TimeRange(midnight(0), midnight(to))
        return audited(number, "advance", rule, range=within, horizon_ms=midnight(horizon), **known)

    first = replace(night(1, 1, 1, name), audit=[])
    for horizon in (2, 9):
        state = PipelineState.of([first, night(2, 2, horizon, name)])
        (found,) = findings_of_audits(ReadPipeline(SPEC, store, state))
        assert found.sentence == (
            "50.0 % of rows malformed (50 of 100: invalid 50) of arrival day 2013-01-02, above 0.05"
        )
    waiting = replace(night(2, 2, 9, name), completes_ms=None)  # it has its horizon alone
    assert findings_of_audits(ReadPipeline(SPEC, store, PipelineState.of([first, waiting]))) == []


def test_failed_runs_of_all_windows_by_hand_and_by_schedule_do_not_hide_each_other(tmp_path):
    left = {"open_behind_watermark": 0, "refused": [], "upstream": None}
    store = Lake.at(str(tmp_path)).pipeline("meter")

    def found(*steps: Entry) -> list[tuple[str, str | None]]:
        numbered = [replace(step, position=number) for number, step in enumerate(steps, 1)]
        state = PipelineState.of(numbered)
        findings = findings_of(ReadPipeline(SPEC, store, state), left)
        return [(one.severity, one.run_id) for one in findings if one.name == "runs"]

    night = Entry("n", 1, "failed", "advance", message="the disk is full")
    by_hand = Entry("h", 1, "failed", "backfill", completes_ms=DAY_MS)
    both = [("critical", "n"), ("warning", "h")]
    assert found(night, by_hand) == found(by_hand, night) == both
    assert found(night, by_hand, replace(night, run_id="n2", step="published")) == []
    assert found(night, replace(by_hand, step="published")) == []
    of_a_range = replace(by_hand, step="published", completes_ms=None)
    assert found(night, of_a_range) == [("critical", "n")]


def test_an_option_refused_by_hand_and_a_failed_revert_of_a_reverted_run_leave_nothing_undone(
    tmp_path,
):
    left = {"open_behind_watermark": 0, "refused": [], "upstream": None}
    store = Lake.at(str(tmp_path)).pipeline("meter")

    def found(*steps: Entry) -> list[str | None]:
        numbered = [replace(step, position=number) for number, step in enumerate(steps, 1)]
        findings = findings_of(ReadPipeline(SPEC, store, PipelineState.of(numbered)), left)
        return [one.run_id for one in findings if one.name == "runs"]

    night = Entry("n", 1, "failed", "advance", message="meter: max_bytes: the range reads 9 bytes")
    assert found(night) == ["n"]
    assert found(replace(night, message="--max-bytes: the range reads 9 bytes")) == ["n"]
    for option in ("--max-bytes", "--recreate"):
        refused = replace(night, recreated=True, message=f"{option}: something is wrong")
        assert found(refused) == []
        assert found(replace(refused, kind="backfill", recreated=False)) == []
    missing = "--start/--end: rows of 2013-01-02 are missing"
    assert found(replace(night, kind="backfill", message=missing)) == ["n"]
    within = TimeRange(0, 2)
    run = Entry("b", 1, "published", "backfill", within)
    revert = Entry("v", 1, "publishing", "revert", within, reverts="b")
    second = replace(revert, run_id="w", step="failed", message="v has published meanwhile")
    assert found(run, second) == ["w"]
    assert found(run, revert, replace(revert, step="published"), second) == []


def test_what_a_run_found_that_was_taken_back_is_no_finding_and_what_stood_before_is_one_again(
    standing,
):
    def night(number: int, letter: str) -> Entry:
        return audited(number, "advance", letter, range=TimeRange(0, number))

    def back(number: int, of: str) -> Entry:
        within = TimeRange(0, 2)
        return Entry(f"r{number}", 1, "published", "revert", within, reverts=of, position=number)

    nights = [night(1, "a"), night(2, "b")]
    assert standing(*nights) == [("b", "r2")]
    assert standing(*nights, back(3, "r2")) == [("a", "r1")]
    assert standing(*nights, back(3, "r2"), back(4, "r1")) == []
    assert standing(*nights, back(3, "r2"), back(4, "r3")) == [("b", "r2")]


def test_status_has_the_findings_of_audits_beside_all_others(tmp_path):
    left = {"open_behind_watermark": 0, "refused": [], "upstream": None}
    store = Lake.at(str(tmp_path)).pipeline("meter")
    state = PipelineState.of([audited(1, "advance", "a")])
    found = findings_of(ReadPipeline(SPEC, store, state), left | {"refused": ["no table"]})
    assert [one.name for one in found] == ["refused", "expect_a"]


def test_a_scheduled_run_that_was_rejected_is_a_finding_also_once_its_findings_are_acknowledged(
    tmp_path,
):
    left = {"open_behind_watermark": 0, "refused": [], "upstream": None}
    store = Lake.at(str(tmp_path)).pipeline("meter")
    critical = {"expectation": "expect_a", "severity": "critical", "success": False}
    failed = [critical | {"figures": "3 rows", "table": "windows"}]
    published = replace(audited(1, "advance", "a"), audit=[], frontier_ms=2 * DAY_MS)
    rejected = replace(audited(2, "advance", "a", "rejected"), audit=failed)
    known = {"expect_a": "3 rows"}
    seen = Entry("k3", 1, "acknowledged", "acknowledge", acknowledged=known, position=3)
    accepted = replace(rejected, step="published", reason="a strike", position=4)

    def found(*steps: Entry) -> list[tuple[str, str]]:
        findings = findings_of(ReadPipeline(SPEC, store, PipelineState.of(steps)), left)
        return [(one.name, one.sentence) for one in findings]

    assert found(published, rejected) == [("expect_a", "on windows: 3 rows")]
    ((name, sentence),) = found(published, rejected, seen)
    assert name == "runs"
    assert sentence.startswith(
        "the last scheduled run was rejected, and nothing is published since 1970-01-03T00:00:00Z"
    )
    assert found(published, rejected, seen, accepted) == []
    ((_, said),) = found(published, rejected, accepted)
    assert said == "on windows: 3 rows (accepted: a strike)"


def test_the_first_line_names_an_expectation_of_the_file():
    of_file = Finding("expect_table_row_count_to_be_between", "warning", "on windows: observed 45")
    assert state_line([of_file]) == f"WARNING: {of_file.name} on windows: observed 45"
    assert (
        state_line([Finding("expect_books_to_balance", "critical", "2 off")]) == "CRITICAL: 2 off"
    )
