"""Which ranges stand by rules of one run alone, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from meter import HALF_DAYS, a_meter
from remembered import remembered_by
from worlds import Life

from strandline.engine.calendar.gaps import ids_outside
from strandline.engine.position.grid import Grid
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, EVERYTHING, HOUR_MS, TimeRange
from strandline.model.lateness import MIN_WATERMARK
from strandline.pipeline.notes.changed import of_rebuilt_first
from strandline.pipeline.notes.notes import of_edited_file
from strandline.pipeline.plan.kept import reached_by
from strandline.pipeline.plan.open_slots import EdgeSlots, closed_part
from strandline.pipeline.plan.plan import outside_by_other_rules
from strandline.pipeline.request.request import Request, of_overrides
from strandline.pipeline.views.findings import findings_of
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.unfinished_work import unfinished_work
from strandline.quality.report.held_back_by import HeldBack
from strandline.reference.records import Record
from strandline.spec import PipelineSpec, parse_any, parse_spec

SIX_HOURS = {"allowed_lateness": "6h"}
NO_TABLES = Lake.at("no-lake").pipeline("meter")


def days(start: int, end: int) -> TimeRange:
    return TimeRange(start * DAY_MS, end * DAY_MS)


def published(*steps: Entry) -> list[Entry]:
    """A ledger of published runs, one after the other."""
    return [
        replace(step, run_id=f"r-{number}", position=number) for number, step in enumerate(steps, 1)
    ]


def a_run(start: int, end: int, kind: str = "backfill", **more) -> Entry:
    return Entry("", 1, "published", kind, days(start, end), **more)


def test_a_range_by_other_rules_stands_until_another_run_publishes_into_it():
    entries = published(a_run(0, 9, "advance"), a_run(2, 6, overrides=SIX_HOURS))
    (one,) = PipelineState.of(entries).overridden
    assert (one.windows, one.overrides, one.run_id) == (days(2, 6), SIX_HOURS, "r-2")
    later = [a_run(0, 9, "advance"), a_run(2, 6, overrides=SIX_HOURS), a_run(3, 4)]
    ranges = [found.windows for found in PipelineState.of(published(*later)).overridden]
    assert ranges == [days(2, 3), days(4, 6)]
    assert PipelineState.of(published(*later, a_run(0, 9, "advance"))).overridden == []


def test_no_day_is_settled_before_a_frontier_that_is_1970_itself():
    state = PipelineState.of(published(a_run(-9, 0, "advance", completes_ms=0, frontier_ms=0)))
    assert state.frontier_ms == 0
    earlier = remembered_by(state, to_recompute=(date(1969, 12, 1),))
    assert earlier.settled_by(-DAY_MS) == ()
    assert earlier.settled_by(0) == earlier.to_recompute


def test_a_run_that_was_reverted_counts_nowhere():
    entries = published(a_run(2, 6, overrides=SIX_HOURS), a_run(2, 6, "revert"))
    assert PipelineState.of(entries).overridden == []


def test_what_a_scheduled_run_has_kept_stands_as_judged_by_it():
    entries = published(
        a_run(0, 8, overrides=SIX_HOURS, horizon_ms=5, landing_version=1),
        a_run(3, 20, "advance", kept=[(0, 6 * DAY_MS)], horizon_ms=9, landing_version=4),
    )
    (one,) = PipelineState.of(entries).overridden
    assert (one.windows, one.run_id) == (days(0, 6), "r-1")  # what was still open goes by the file
    assert (one.horizon_ms, one.landing_version) == (9, 4)
    before, kept = PipelineState.of(
        published(
            a_run(0, 8, overrides=SIX_HOURS, horizon_ms=5),
            a_run(9, 20, "advance", kept=[(0, 6 * DAY_MS)], horizon_ms=9),
        )
    ).overridden
    assert (before.windows, before.horizon_ms) == (days(0, 6), 9)
    assert (kept.windows, kept.horizon_ms) == (days(6, 8), 5)


def said_of(
    spec: PipelineSpec,
    rebuilt: TimeRange,
    *before: Entry,
    noted: Mapping[str, list[str]] | None = None,
    **known: Any,
) -> tuple:
    """What a scheduled run over a range, based on day 10, keeps of days 2 to 6, and its notes."""
    by_hand = a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS)
    crossings = SimpleNamespace(watermark_reached=lambda horizon_ms: MIN_WATERMARK)
    history = SimpleNamespace(spec=spec, grid=Grid.of(spec), crossings=crossings)
    *earlier, last = published(*before, by_hand)
    begun = replace(last, step="publishing", publish=ToPublish.from_json(noted or {}))
    remembered = remembered_by(PipelineState.of([*earlier, begun, last]), **known)
    reached = reached_by(rebuilt, 10 * DAY_MS, history, remembered)
    kept = [one.kept for one in reached if one.kept is not None]
    return kept, [note for one in reached for note in one.notes("meter", rebuilt)]


def test_a_scheduled_run_keeps_what_was_closed_and_names_what_it_recomputes():
    halves = EdgeSlots(5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2)
    (kept,), notes = said_of(HALF_DAYS, days(4, 20), states_in=lambda within: halves)
    assert (kept.windows, kept.since_ms) == (
        TimeRange(2 * DAY_MS, halves.first_open_ms),
        10 * DAY_MS,
    )
    stays, recomputed = notes
    assert "windows from 1970-01-03T00:00:00Z to 1970-01-06T12:00:00Z stay as run r-1" in stays
    assert "with allowed_lateness: 6h (overridden: keep)" in stays
    assert "windows from 1970-01-06T12:00:00Z to 1970-01-07T00:00:00Z were published" in recomputed
    assert "(they were still open at its data cut-off)" in recomputed
    assert "strandline backfill meter --start 1970-01-03T00:00:00Z --end 1970-01-07T" in recomputed
    assert "--allowed-lateness 6h --reason" in recomputed


@pytest.mark.parametrize("spec", [HALF_DAYS, a_meter({"session": "1h"})], ids=["grid", "sessions"])
def test_what_an_earlier_version_has_noted_as_final_is_kept_where_no_slot_shows_it(spec):
    """A last window without records, or one that ends within a day, was recomputed by the file."""
    noted = {"final_until": [str(4 * DAY_MS)]}
    whole = {"whole_within": lambda rules, final, *instants: final}
    (kept,), _ = said_of(spec, days(3, 20), noted=noted, **whole)
    assert kept.windows == days(2, 4)
    assert said_of(spec, days(3, 20), noted={"final_until": []}, **whole)[0] == []


def test_a_range_that_a_scheduled_run_does_not_reach_is_not_named():
    assert said_of(HALF_DAYS, days(6, 20)) == ([], [])


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (HALF_DAYS.model_copy(update={"overridden": "redo"}), "(overridden: redo)"),
        (
            a_meter({"session": "1h"}),
            "(their sessions were still open at its data cut-off, or extend over",
        ),
        (a_meter({"global": {}}), "(windows of all time are never final)"),
        (HALF_DAYS, "(they were still open at its data cut-off)"),
    ],
)
def test_a_range_that_is_recomputed_is_named_with_why(spec, reason):
    kept, (note,) = said_of(spec, days(4, 20))
    assert not kept
    assert "windows from 1970-01-05T00:00:00Z to 1970-01-07T00:00:00Z" in note
    assert f"this run recomputes them by the pipeline's file {reason}" in note


def test_windows_that_share_records_with_longer_open_ones_are_not_kept():
    sliding = a_meter({"sliding": "12h", "every": "6h"}, {"strategy": "ascending"})
    before = a_run(1, 2, overrides=SIX_HOURS, horizon_ms=DAY_MS)
    kept, (note,) = said_of(
        sliding, days(4, 20), before, states_in=lambda within: EdgeSlots(5 * DAY_MS)
    )
    assert not kept
    assert "(windows before them share their records and close later)" in note


def test_rules_in_place_of_the_files_are_those_of_the_run_and_what_becomes_of_them_is_no_rule():
    spec = a_meter({"tumbling": "1h"}, {"strategy": "bounded_out_of_orderness", "bound": "30m"})
    rules = spec.under({"bound": "4h", "allowed_lateness": "6h"})
    assert (rules.watermark.bound_ms, rules.allowed_lateness) == (4 * HOUR_MS, 6 * HOUR_MS)
    assert rules.spec_fingerprint != spec.spec_fingerprint
    assert HALF_DAYS.under({"bound": "4h"}) == HALF_DAYS  # its watermark has no bound
    redone = spec.model_copy(update={"overridden": "redo"})
    assert redone.spec_fingerprint == spec.spec_fingerprint
    assert redone.timeline_fingerprint == spec.timeline_fingerprint


@pytest.mark.parametrize(
    ("spec", "scheduled", "found"),
    [
        (HALF_DAYS, "leave its windows that are final as they are (overridden: keep)", ""),
        (
            HALF_DAYS.model_copy(update={"overridden": "redo"}),
            "that need its windows recompute them by the pipeline's file (overridden: redo)",
            "; a scheduled run that needs them recomputes them (overridden: redo)",
        ),
        (
            a_meter({"global": {}}),
            "that need its windows recompute them by the pipeline's file "
            "(windows of all time are never final)",
            "; a scheduled run that needs them recomputes them "
            "(windows of all time are never final)",
        ),
    ],
)
def test_the_run_itself_and_the_status_say_what_later_runs_do_with_its_windows(
    spec, scheduled, found
):
    (note,) = of_overrides(SIX_HOURS, spec)
    assert note.endswith(
        f"allowed_lateness: 6h: its observations are not kept; scheduled runs {scheduled}"
    )
    assert not list(of_overrides({}, spec))
    state = PipelineState.of(published(a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS)))
    left = {"open_behind_watermark": 0, "upstream": None, "refused": []}
    (finding,) = (
        one
        for one in findings_of(ReadPipeline(spec, NO_TABLES, state), left)
        if one.name == "overridden"
    )
    assert finding.sentence.endswith(f"by other rules (allowed_lateness: 6h){found}")
    same = a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS)
    same = replace(same, spec_fingerprint=spec.spec_fingerprint)
    (finding,) = (
        one
        for one in findings_of(
            ReadPipeline(spec, NO_TABLES, PipelineState.of(published(same))), left
        )
        if one.name == "overridden"
    )
    assert "by hand with allowed_lateness: 6h, which are the file's rules now: " in finding.sentence
    assert "other rules" not in finding.sentence


def test_what_a_run_by_hand_finds_again_is_one_finding():
    def audited(start: int, end: int, kind: str, *sentences: str) -> Entry:
        failed = {
            "expectation": "expect_windows_to_be_unique",
            "severity": "warning",
            "success": False,
        }
        return a_run(start, end, kind, audit=[failed | {"figures": said} for said in sentences])

    left = {"open_behind_watermark": 0, "upstream": None, "refused": []}
    runs = (
        audited(0, 9, "advance", "day 1 is low", "day 3 is low"),
        audited(2, 6, "backfill", "day 3 is low"),
    )

    def found(*runs: Entry) -> list[tuple[str, str]]:
        state = PipelineState.of(published(*runs))
        findings = findings_of(ReadPipeline(HALF_DAYS, NO_TABLES, state), left)
        return [(one.sentence, one.run_id) for one in findings]

    assert found(*runs) == [("day 3 is low", "r-2"), ("day 1 is low", "r-1")]
    apart = audited(0, 2, "backfill", "3 of 40 go"), audited(6, 8, "backfill", "3 of 40 go")
    assert found(*apart) == [("3 of 40 go", "r-2"), ("3 of 40 go", "r-1")]
    twice = audited(0, 2, "backfill", "could not be evaluated", "could not be evaluated")
    assert len(found(twice)) == 2


def test_windows_that_other_rules_or_a_revert_have_left_open_are_no_alarm():
    left = {"upstream": None, "refused": []}

    def found(behind: int, others: int, *runs: Entry) -> list[tuple[str, str]]:
        counts = {"open_behind_watermark": behind, "open_by_other_rules": others}
        findings = findings_of(
            ReadPipeline(HALF_DAYS, NO_TABLES, PipelineState.of(runs)), left | counts
        )
        return [(one.severity, one.sentence.split(" by ")[0]) for one in findings]

    assert found(3, 3) == [("info", "3 windows open")]
    assert found(4, 3) == [
        ("critical", "1 window open behind the watermark"),
        ("info", "3 windows open"),
    ]

    reverted = a_run(0, 9, "advance"), a_run(2, 6), a_run(2, 6, "revert")
    assert found(2, 0, *published(*reverted)) == [
        (
            "warning",
            "2 windows open behind the watermark since run r-2 was reverted: "
            "the next scheduled run builds them",
        )
    ]
    since = found(2, 0, *published(*reverted, a_run(0, 10, "advance")))
    assert since == [("critical", "2 windows open behind the watermark")]


PASSED = HeldBack(8 * DAY_MS, None, None, None)


def fingerprints(spec: PipelineSpec) -> dict[str, str]:
    return {name: getattr(spec, name) for name in ("spec_fingerprint", "timeline_fingerprint")}


def with_a_slot_left_open(lake: Path, runs: list[dict[str, str]]) -> Store:
    """The tables of a pipeline with one open slot by the rules of each run."""
    at = datetime(1970, 1, 2, tzinfo=UTC)
    a_slot = {"slot_start": at, "slot_end": at, "slot_date": at.date(), "state": "open"}
    slots = [a_slot | {"spec_fingerprint": run["spec_fingerprint"]} for run in runs]
    table = str(lake / "meter/completeness")
    write_deltalake(table, pa.Table.from_pylist(slots), partition_by=["slot_date"])
    return Lake.at(str(lake)).pipeline("meter")


def test_windows_that_another_interval_of_a_join_has_left_open_are_an_alarm(tmp_path):
    side = {"table": "t", "arrival_time": "at", "event_time": "ts", "key": ["k"]}
    side |= {"watermark": {"strategy": "ascending"}}
    content = {"pipeline": "meter", "sources": {"left": side, "right": side}}
    spec, before = (
        parse_spec(content | {"join": {"interval": ["-10m", upper]}}, origin="meter.yaml")
        for upper in ("50m", "45m")
    )
    run = fingerprints(before)
    noted = published(
        a_run(0, 9, frontier_ms=9, layout=before.layout | {"rules": before.rules}, **run)
    )
    store = with_a_slot_left_open(tmp_path, [run])
    left = unfinished_work(ReadPipeline(spec, store, PipelineState.of(noted)), PASSED)
    assert [one["edited_since"] for one in left["rules"]] == [["join"]]
    assert (left["open_behind_watermark"], left["open_by_other_rules"]) == (1, 0)


def test_windows_that_an_edit_without_another_watermark_has_left_open_are_an_alarm(tmp_path):
    def rules(**edited: Any) -> dict[str, str]:
        return fingerprints(HALF_DAYS.model_copy(update=edited))

    # a run that has noted no rules, as of an earlier version
    runs = [rules(), rules(aggregates={"most": "max(x)"}), rules(allowed_lateness=HOUR_MS)]
    assert len({run["spec_fingerprint"] for run in runs}) == 3
    store = with_a_slot_left_open(tmp_path, runs)
    state = PipelineState.of(published(*(a_run(0, 9, frontier_ms=9, **run) for run in runs)))
    left = unfinished_work(ReadPipeline(HALF_DAYS, store, state), PASSED)
    assert (left["open_behind_watermark"], left["open_by_other_rules"]) == (3, 1)
    assert {tuple(one["edited_since"] or ["?"]) for one in left["rules"]} == {("?",)}
    longer = HALF_DAYS.model_copy(update={"allowed_lateness": HOUR_MS})
    noted = [replace(run, layout={"rules": longer.rules}) for run in state.published[-1:]]
    left = unfinished_work(
        ReadPipeline(HALF_DAYS, store, PipelineState.of([*state.published, *noted])), PASSED
    )
    assert (left["open_behind_watermark"], left["open_by_other_rules"]) == (3, 0)
    assert ["allowed_lateness"] in [one["edited_since"] for one in left["rules"]]
    known = PipelineState.of(noted)
    assert [*of_edited_file(HALF_DAYS, known)] == [
        "the pipeline's rules have changed since run r-3: allowed_lateness"
    ]
    assert [*of_edited_file(longer, known), *of_edited_file(HALF_DAYS, state)] == []


def test_results_that_have_changed_below_such_a_range_are_named_with_it():
    daily = SimpleNamespace(
        pipeline="daily", why_overridden_is_redone="results can change after they have arrived"
    )
    by_hand = a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS)
    state = PipelineState.of(published(by_hand, a_run(1, 2, closed=True, horizon_ms=9 * DAY_MS)))
    first = [
        Request("backfill", days(start, start + 1), reason="results have changed")
        for start in (1, 4)
    ]
    closed, one, overridden, other = of_rebuilt_first(daily, first, ["r-3", "r-4"], state)
    assert "to 1970-01-03T00:00:00Z stay closed, since their input ended at 1970-01-10T" in closed
    assert "run r-3 has first rebuilt" in one
    assert "published by run r-1 with allowed_lateness: 6h, are recomputed by the" in overridden
    assert "(results can change after they have arrived)" in overridden
    assert "run r-4 has first rebuilt" in other


def test_kept_windows_whose_results_have_changed_are_named_with_their_own_rules():
    daily: Any = SimpleNamespace(pipeline="daily", why_overridden_is_redone=None)
    by_hand = a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS)
    state, why = PipelineState.of(published(by_hand)), "results have changed"
    own = Request("backfill", days(2, 5), reason=why, overrides=SIX_HOURS)
    by_file = Request("backfill", days(5, 6), reason=why)
    kept, first, redone, _ = of_rebuilt_first(daily, [own, by_file], [], state)
    assert kept.endswith("1970-01-03T00:00:00Z to 1970-01-06T00:00:00Z (overridden: keep)")
    assert "with allowed_lateness: 6h, are recomputed by these rules where they lie" in kept
    assert first.endswith("to 1970-01-06T00:00:00Z, as shown first")
    assert "by the pipeline's file" in redone
    assert redone.endswith("(they were still open at its data cut-off)")


def test_a_plan_that_rebuilds_all_windows_first_names_no_year_of_one():
    daily: Any = SimpleNamespace(pipeline="daily", why_overridden_is_redone=None)
    request = Request("backfill", TimeRange(EVERYTHING.start_ms, DAY_MS), reason="changed")
    (planned,) = of_rebuilt_first(daily, [request], [], PipelineState.of([]))
    assert planned.startswith("changed: a run first rebuilds all windows before 1970-01-02T")


def test_of_windows_over_results_those_are_kept_that_were_closed_in_order():
    def found(closed: int | None, opened: int | None) -> TimeRange | None:
        states = EdgeSlots(*(None if day is None else day * DAY_MS for day in (closed, opened)))
        return closed_part(days(2, 6), states, DAY_MS)

    assert found(3, 4) == found(3, None) == days(2, 4)
    assert found(5, None) == days(2, 6)
    assert found(5, 3) == days(2, 3)  # as `--close` may leave them
    assert found(5, 2) is None
    assert found(None, 2) is None


@pytest.mark.parametrize(
    ("changed", "stay"),
    [
        ({}, True),
        ({"window": {"sliding": "2d", "every": "1d"}}, True),
        ({"window": {"session": "1h"}}, False),
        ({"trigger": {"continuous": "1h", "purging": True}, "firings": True}, True),
        ({"overridden": "redo"}, False),
    ],
)
def test_windows_over_results_stay_unless_a_changed_result_can_join_sessions(changed, stay):
    content: dict[str, Any] = {
        "pipeline": "daily",
        "source": {"pipeline": "meter", "key": ["device"]},
        "window": {"tumbling": "1d"},
        "aggregates": {"hours": "count(*)"},
    }
    daily = parse_any(content | changed, origin="daily.yaml").over(HALF_DAYS)
    assert (daily.why_overridden_is_redone is None) == stay


def test_gaps_outside_a_range_stay_by_the_rules_that_they_are_published_by():
    """By the file's rules, for a run with its own; by other ones, for a run by the file's."""
    ledger = PipelineState.of(published(a_run(0, 9, "advance"), a_run(2, 6, overrides=SIX_HOURS)))
    by_hand = Request("backfill", days(2, 6), overrides=SIX_HOURS, reason="slow")
    scheduled = Request("advance", to_ms=20 * DAY_MS)
    before, behind = outside_by_other_rules(by_hand, days(2, 6), ledger)
    assert (before.end_ms, behind.start_ms) == (2 * DAY_MS, 6 * DAY_MS)
    assert outside_by_other_rules(scheduled, days(5, 9), ledger) == (days(2, 5),)
    assert outside_by_other_rules(scheduled, days(0, 9), ledger) == ()


def test_every_plan_names_the_ranges_whose_gaps_stay():
    life = Life(HALF_DAYS)
    life.land([Record(arrival_ms=8 * DAY_MS, ts_ms=8 * DAY_MS, record_id="1", channel="a")])
    life.advance(9 * DAY_MS)
    by_hand = a_run(2, 6, overrides=SIX_HOURS, horizon_ms=9 * DAY_MS, frontier_ms=9 * DAY_MS)
    life.entries.append(replace(by_hand, run_id="by-hand", position=len(life.entries) + 1))

    def staying(request: Request) -> tuple[TimeRange, ...]:
        _, _, plan = life._planned(request, life._landing_status(), life.axis, 20 * DAY_MS)
        return plan.gaps_that_stay

    assert staying(Request("backfill", days(6, 9))) == (days(2, 6),)
    assert staying(Request("advance", to_ms=20 * DAY_MS)) == (days(2, 6),)


def test_of_a_run_of_gaps_only_the_parts_that_do_not_stay_are_listed():
    gaps = range(10, 20)
    assert ids_outside(gaps, []) == [gaps]
    assert ids_outside(gaps, [range(0, 12), range(15, 17)]) == [range(12, 15), range(17, 20)]
    assert ids_outside(gaps, [range(20)]) == []
