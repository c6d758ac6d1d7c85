"""Which days `status` and `report` show, and that no file of another day is opened for it."""

from __future__ import annotations

import json
from datetime import date, timedelta
from unittest.mock import patch

import pyarrow as pa
import pytest
from calendars import a_slot, write_calendar
from deltalake import write_deltalake
from many_days import FIRST, SLOTS, a_lake_of, day, without_files_of_other_days
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE
from meter import a_meter

from strandline.cli.main import main
from strandline.engine.idleness.state import Channel, SourceState
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.days import Days, rows_by_day
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.rows import SCHEMA
from strandline.model.intervals import HOUR_MS, midnight_of
from strandline.pipeline.views import shown
from strandline.pipeline.views.report import report_tables, write_report
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import shown_days, totals
from strandline.pipeline.views.status import status_of
from strandline.pipeline.views.watermark import evaluated_watermark


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A lake of 400 days of which only the files of the last 90 are left.

    Of the timeline also those of the eight weeks before, by which a number of records is usual.
    """
    lake, compared = a_lake_of(400, SPEC, tmp_path_factory.mktemp("year")), day(310 - 56)
    gone = without_files_of_other_days(lake, "meter", day(310), day(399), observed=compared)
    assert gone == 4 * 310 - 56
    return lake


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A lake of 100 days."""
    return a_lake_of(100, SPEC, tmp_path_factory.mktemp("few"))


def test_the_report_opens_files_of_the_last_ninety_days_only_and_reads_a_watermark_once(
    year, tmp_path
):
    with patch.object(shown, "evaluated_watermark", wraps=evaluated_watermark) as watermark:
        written = write_report(SPEC, year, tmp_path)
    assert watermark.call_count == 1
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written["days"] == {"since": day(310).isoformat(), "until": None}
    assert f"from <b>{day(310)}</b>" in page
    assert f"In all, from {FIRST} to {day(399)}: 800 slots, 800 windows, 800 records" in page


def test_status_opens_files_of_the_last_ninety_days_only(year):
    found = status_of(SPEC, year)
    assert found["slots"] == {"closed": 90 * SLOTS - 1, "open": 1}
    assert found["records"]["on_time"] == 90 * SLOTS * 10
    assert found["quarantine"] == {"late": 90 * SLOTS}
    assert found["totals"] == {
        "first_day": FIRST.isoformat(),
        "last_day": day(399).isoformat(),
        "days": 400,
        **dict.fromkeys(("slots", "windows", "quarantine"), 800),
    }


def test_rules_of_all_days_are_told_without_opening_their_files(year):
    (rules,) = status_of(SPEC, year)["rules"]
    assert (rules["start"], rules["slots"]) == (f"{FIRST}T00:00:00Z", 800)


def test_files_of_days_that_are_shown_are_opened(year, tmp_path):
    with pytest.raises(FileNotFoundError):
        write_report(SPEC, year, tmp_path, since=day(309))


@pytest.mark.parametrize(
    ("since", "until", "first", "last"),
    [
        (None, None, 10, 99),
        (day(0), None, 0, 99),
        (day(3), day(3), 3, 3),
        (day(3), day(5), 3, 5),
        (None, day(95), 6, 95),
        (None, day(5), 0, 5),
        (day(98), date.max, 98, 99),
        (date.min, None, 0, 99),
    ],
)
def test_the_first_and_the_last_day_are_shown(few, since, until, first, last):
    store = few.pipeline("meter")
    tables = report_tables(Shown.of(SPEC, few), shown_days(SPEC, store, since, until))
    starts = tables.completeness["slot_start"].dt.date
    assert (min(starts), max(starts)) == (day(first), day(last))
    assert {*tables.quarantine["day"]} == {*starts}
    assert {*tables.channels["arrival_date"]} == {*starts}
    assert tables.lateness["records"].sum() == SLOTS * (last - first + 1)


def test_days_are_counted_back_from_slots_that_have_been_observed(tmp_path):
    wrong_clock = a_lake_of(30, SPEC, tmp_path / "a", observed=20).pipeline("meter")
    assert shown_days(SPEC, wrong_clock) == Days(day(19) - timedelta(89))
    observed_long_since = a_lake_of(3, SPEC, tmp_path / "b", observed=300).pipeline("meter")
    assert shown_days(SPEC, observed_long_since) == Days(day(2) - timedelta(89))


def test_a_first_day_near_the_beginning_of_time_is_no_error(few):
    assert shown_days(SPEC, few.pipeline("meter"), None, date(1, 1, 5)) == Days(
        date.min, date(1, 1, 5)
    )


def test_without_tables_there_is_nothing_to_count_back_from(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    assert shown_days(SPEC, store) == Days()
    assert totals(SPEC, store)["slots"] == 0


def test_days_the_wrong_way_round_are_refused(few):
    with pytest.raises(InputError, match="2013-01-05 is after --until 2013-01-04"):
        shown_days(SPEC, few.pipeline("meter"), date(2013, 1, 5), date(2013, 1, 4))


@pytest.mark.parametrize("asked", ["status", "report"])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--since", "yesterday"], "--since: 'yesterday' is not a date"),
        (["--until", "2013-02-30"], "--until: '2013-02-30' is not a date"),
        (["--since", "2013-01-05", "--until", "2013-01-04"], "is after --until 2013-01-04"),
        (["--since", "<b>"], "--since: '<b>' is not a date"),
    ],
)
def test_days_that_are_none_end_with_exit_code_2(few, tmp_path, capsys, asked, arguments, problem):
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--lake", few.root, "--pipelines", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main([asked, "meter", *arguments, *places])
    assert ended.value.code == 2
    assert problem in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("asked", [["status"], ["report", "--no-docs"]])
def test_the_command_says_which_days_it_shows_and_how_to_see_others(few, tmp_path, capsys, asked):
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")
    places = ["--lake", few.root, "--pipelines", str(tmp_path)]
    days = ["--since", "2013-01-05", "--until", "2013-01-06"]
    with pytest.raises(SystemExit):
        main([*asked, "meter", *days, *places])
    said = " ".join(capsys.readouterr().out.split())
    assert "from 2013-01-05 to 2013-01-06; --since and --until show others" in said
    assert "200 slots, 200 windows, 200 records in quarantine" in said
    with pytest.raises(SystemExit):
        main([*asked, "meter", *days, *places, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["days"] == {"since": "2013-01-05", "until": "2013-01-06"}
    assert document["totals"]["slots"] == 200


def a_day_of(store, number, channel, settled_ms):
    row = {"arrival_date": day(number), "kind": "channel", "channel": channel}
    row |= {"settled_ms": settled_ms, "timeline_fingerprint": SPEC.timeline_fingerprint}
    write_deltalake(store.uri("timeline"), pa.Table.from_pylist([row], SCHEMA), mode="append")


def test_a_channel_that_was_silent_for_long_holds_the_watermark_still(tmp_path):
    spec = a_meter({"tumbling": "12h"}, channel="source", channels=["a", "b"])
    lake = a_lake_of(100, spec, tmp_path)
    a_day_of(lake.pipeline("meter"), 0, "b", 1_357_000_000_000)
    watermark = status_of(spec, lake)["watermark"]
    assert (watermark["held_by"], watermark["since"]) == ("b", FIRST.isoformat())


def test_a_channel_whose_clock_was_once_ahead_keeps_its_watermark(tmp_path):
    lake = a_lake_of(100, SPEC, tmp_path)
    a_day_of(lake.pipeline("meter"), 0, "a", 4_102_444_800_000)
    assert status_of(SPEC, lake)["watermark"]["combined"] == "2100-01-01T00:00:00Z"


@pytest.mark.parametrize("idleness", [None, "3h"])
def test_a_rejected_night_leaves_a_watermark_by_the_clock_at_the_last_published_horizon(
    tmp_path, idleness
):
    """The state of channels that can go idle was once that of the later day."""
    lag = {"strategy": "time_lag", "lag": "2h", "emit": {"every": "1h"}, "idleness": idleness}
    spec = a_meter({"tumbling": "12h"}, lag, channel="source", channels=["a"])
    store = a_lake_of(2, spec, tmp_path).pipeline("meter")
    for number in (0, 1):
        a_day_of(store, number, "a", None)
        over_ms = midnight_of(day(number + 1))
        channel = Channel("a", watermark_ms=over_ms - 3 * HOUR_MS, last_shown_ms=over_ms - HOUR_MS)
        state = SourceState(over_ms, (channel,), combined_ms=channel.watermark_ms)
        row = {"arrival_date": day(number), "kind": "source", "source_state": state.to_json()}
        if idleness is not None:
            write_deltalake(
                store.uri("timeline"), pa.Table.from_pylist([row], SCHEMA), mode="append"
            )
    horizon_ms, start_ms = midnight_of(day(1)), midnight_of(day(0))
    step = Entry("r", 1, "published", "advance", horizon_ms=horizon_ms, clock_start_ms=start_ms)
    found = Shown(spec, store, PipelineState.of([step]), None).watermark
    assert (found.watermark_ms, found.arrived_before) == (horizon_ms - 3 * HOUR_MS, None)


def test_slots_of_a_day_with_two_rules_are_told_apart(tmp_path):
    lake = a_lake_of(4, SPEC, tmp_path)
    store = lake.pipeline("meter")
    rows = store.table("completeness").to_pyarrow_table().sort_by("slot_start").to_pylist()
    for row in rows[3:]:
        row["spec_fingerprint"] = "other"
    schema = store.table("completeness").to_pyarrow_table().schema
    write_deltalake(store.uri("completeness"), pa.Table.from_pylist(rows, schema), mode="overwrite")
    rules = status_of(SPEC, lake)["rules"]
    assert [(one["spec_fingerprint"], one["slots"]) for one in rules] == [
        (SPEC.spec_fingerprint, 3),
        ("other", 5),
    ]


def test_a_row_of_many_gaps_counts_as_many_slots_of_its_rules(tmp_path):
    lake = a_lake_of(1, SPEC, tmp_path)
    many = {"gap": True, "on_time": 0, "slots": 1_200}
    write_calendar(lake.pipeline("meter"), [a_slot(0), a_slot(1, **many)])
    found = status_of(SPEC, lake)
    assert sum(one["slots"] for one in found["rules"]) == found["totals"]["slots"] == 1_201


def test_totals_are_those_of_the_log(few):
    store = few.pipeline("meter")
    assert rows_by_day(store, "windows") == dict.fromkeys(map(day, range(100)), SLOTS)
    assert totals(SPEC, store)["days"] == 100


def test_the_reasons_of_quarantine_are_in_one_order_whatever_that_of_the_files(tmp_path):
    lake = a_lake_of(2, SPEC, tmp_path)
    store = lake.pipeline("meter")
    for reason in ("b", "c", "a"):
        row = {"quarantine_date": FIRST, "reason": reason}
        late = store.table("quarantine").to_pyarrow_table().schema
        write_deltalake(store.uri("quarantine"), pa.Table.from_pylist([row], late), mode="append")
    assert [*status_of(SPEC, lake)["quarantine"]] == ["a", "b", "c", "late"]
