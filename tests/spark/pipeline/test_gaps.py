"""Gaps: what is listed follows from what has arrived, however runs were cut."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakes import Line, a_record, a_spec, at, instant, land

from strandline.errors import AuditFailedError, StaleStagingError
from strandline.model.intervals import TimeRange
from strandline.pipeline.manage.acknowledge import acknowledge
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.views.incomplete import incomplete_in
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

ONE = {"source__channels": ["a"], "window": {"tumbling": "1h"}}


def calendar(line: Line) -> list[tuple[Any, ...]]:
    """The slots of the calendar as they are stored; the run that listed them aside."""
    names = ("slot_start", "slot_end", "state", "gap", "slots", "fired_at", "closed_at")
    counts = ("on_time", "late_accepted", "late")
    return sorted(tuple(row[n] for n in (*names, *counts)) for row in line.rows("completeness"))


def gaps(line: Line) -> list[tuple[str, int]]:
    """The start of each row of gaps, and how many slots it stands for."""
    rows = [row for row in line.rows("completeness") if row["gap"]]
    return sorted((f"{row['slot_start']:%m-%d %H:%M}", row["slots"] or 1) for row in rows)


def test_stragglers_from_before_all_that_was_accepted_make_no_gaps(spark, tmp_path):
    hours = [f"{day} {hour:02}:00" for day in (1, 2) for hour in range(6, 20)]
    rows = [a_record(hour, hour) for hour in hours]
    old = [
        a_record(f"2 1{n}:30", "1", happened_at=at("1") - timedelta(days=1800 + n))
        for n in range(6)
    ]
    line = Line(spark, tmp_path, a_spec(**ONE))
    land(tmp_path, [*rows, *old])
    outcome = line.advance("3")
    night = [(f"03-0{day} {h:02}:00", 1) for day, h in [(1, 20), (1, 21), (1, 22), (1, 23)]]
    night += [(f"03-02 {h:02}:00", 1) for h in range(6)]
    assert gaps(line) == night
    assert outcome.gaps == len(night)
    assert len({row["slot_date"] for row in line.rows("completeness")}) == 8
    assert line.ledger[-1].first_accepted_ms == instant("1 06:00")


def test_gaps_behind_the_last_record_count_once_a_later_day_is_over_until_acknowledged(
    spark, tmp_path
):
    hours = [f"{day} {hour:02}" for day in (1, 2) for hour in range(24)]
    rows = [a_record(f"{h}:{m}", f"{h}:{m}") for h in hours for m in ("01", "31")]
    line = Line(spark, tmp_path, a_spec(**ONE, quality={"gaps": "fail"}))
    land(tmp_path, rows)
    line.advance("3")
    assert gaps(line) == []
    line.advance("4")  # the 3rd is over, but no later day
    with pytest.raises(AuditFailedError, match="expect_no_gaps: 24 gaps"):
        line.advance("5")
    assert gaps(line) == []
    acknowledge(line.spec, line.lake, ["gaps"], reason="the sensor was off")
    assert line.advance("5").gaps == 24
    assert gaps(line) == [(f"03-03 {h:02}:00", 1) for h in range(24)]


def a_hard_week(seed: int) -> list[dict[str, Any]]:
    """Records of some minutes only, stragglers into silences, and a day without any."""
    chance, rows = random.Random(seed), []
    for day in (1, 2, 5, 6):
        for _ in range(14):
            minute = chance.randrange(1440)
            happened = at(f"{day}") + timedelta(minutes=minute)
            lag = chance.choice([1, 5, 5, 60, 900, 3000])
            arrived = happened + timedelta(minutes=lag)
            if arrived < at("8"):
                row = a_record("1", "1", position=len(rows))
                day_of = {"arrived_on": arrived.date()}
                rows.append(row | {"arrived_at": arrived, "happened_at": happened} | day_of)
    early = a_record("1 20:00", "1 20:00", happened_at=at("1") - timedelta(days=40))
    return [*rows, early]


@pytest.mark.parametrize(
    ("seed", "changes"),
    [
        (2, {"window": {"tumbling": "1m"}, "watermark__bound": "2d"}),
        (4, {"window": {"session": "30m"}, "quality__slot": "5m"}),
    ],
)
def test_gaps_are_the_same_day_by_day_at_once_and_range_by_range(spark, tmp_path, seed, changes):
    rows, spec = a_hard_week(seed), a_spec(**(ONE | changes))
    at_once, daily, parts = (
        Line(spark, tmp_path / name, spec) for name in ("once", "daily", "parts")
    )
    for line in (at_once, parts):
        land(line.folder, rows)
    at_once.advance("9")
    for before, day in pairwise((1, 2, 6, 9)):  # some days are skipped
        new = [row for row in rows if before <= row["arrived_on"].day < day]
        land(daily.folder, new, mode="overwrite" if day == 2 else "append")
        daily.advance(str(day))
    assert calendar(daily) == calendar(at_once)
    assert len([row for row in calendar(at_once) if row[3]]) > 10
    if seed == 2:  # the watermark stands amid many gaps in a row: those it has closed are a row
        assert any(count > 1000 for _, count in gaps(at_once))
        states = [row[2] for row in calendar(at_once) if row[3] and (row[4] or 1) > 100]
        assert {"closed", "open"} <= {*states}
    # by hand, in whatever order: the last days first
    first = min(row["happened_at"] for row in rows) - timedelta(days=1)
    for start, end in (("2 11:30", "9"), (f"{first:%Y-%m-%d}", "2 11:30")):
        parts.backfill(start, end, as_of="9")
    assert calendar(parts) == calendar(at_once)


def test_many_gaps_in_a_row_are_a_row_for_each_state_also_where_a_range_is_closed(spark, tmp_path):
    rows = [a_record(f"{day} 06:00", f"{day} 06:00") for day in (1, 2)]
    line = Line(spark, tmp_path, a_spec(**ONE | {"window": {"tumbling": "1m"}}))
    land(tmp_path, rows)
    outcome = line.advance("3")
    assert (outcome.slots, outcome.gaps) == ({"closed": 1, "open": 1}, 1439)
    status = status_of(line.spec, line.lake)
    assert status["slots"] == {"closed": 1, "open": 1, "gap": 1439}
    assert status["totals"]["slots"] == 1441
    incomplete = incomplete_in(Shown.of(line.spec, line.lake), limit=1)
    assert (incomplete["incomplete"], incomplete["slots"]) == (1440, 1441)

    def states() -> list[tuple[str, str, int]]:
        found = [row for row in line.rows("completeness") if row["gap"]]
        return sorted(
            (f"{row['slot_start']:%d %H:%M}", row["state"], row["slots"]) for row in found
        )

    # the watermark stands at 05:30 of the second day, and closes what ended an hour before
    before = [("01 06:01", "closed", 1349), ("02 04:30", "fired", 60), ("02 05:30", "open", 30)]
    assert states() == before
    line.backfill("2 05:40", "2 05:50", as_of="3", close=True)
    closed_by_hand = "windows from 2024-03-02T05:40:00Z to 2024-03-02T05:50:00Z closed by --close"
    findings = {one["name"]: one for one in status_of(line.spec, line.lake)["findings"]}
    assert findings["closed"]["sentence"].startswith(closed_by_hand)
    closed = ("02 05:40", "closed", 10)
    assert states() == [
        *before[:2],
        ("02 05:30", "open", 10),
        closed,
        ("02 05:50", "open", 10),
    ]


def test_a_row_for_many_gaps_goes_once_its_first_slot_has_a_late_record(spark, tmp_path):
    """A clock is months ahead: what arrives then is late, from the first of the gaps on."""
    rows = [a_record("1 06:00", "1 06:00"), a_record("1 12:00", "1 12:00")]
    rows[1]["happened_at"] += timedelta(days=60)
    late = [a_record(f"2 {hour:02}:00", f"1 {hour:02}:00") for hour in (7, 8, 10)]
    line, at_once = (Line(spark, tmp_path / n, a_spec(**ONE)) for n in ("daily", "at_once"))
    land(line.folder, rows)
    line.advance("2")
    assert gaps(line)[0] == ("03-01 07:00", 1443)  # of 1,444 the watermark has closed so many
    land(line.folder, late, mode="append")
    land(at_once.folder, [*rows, *late])
    for one in (line, at_once):
        one.advance("3")
    assert calendar(line) == calendar(at_once)
    assert gaps(line)[:2] == [("03-01 09:00", 1), ("03-01 11:00", 1439)]


def test_beside_other_rules_and_with_gaps_allowed_a_row_for_many_gaps_counts_each_slot_once(
    spark, tmp_path
):
    """Records come late for slots in the row, one of which begins a range that stays."""
    rows = [a_record("1 06:00", "1 06:00"), a_record("1 12:00", "1 12:00")]
    rows[1]["happened_at"] += timedelta(days=60)
    hours = [f"{at('1 06:00') + timedelta(hours=n):%m-%d %H}" for n in range(60 * 24 + 7)]
    line = Line(spark, tmp_path, a_spec(**ONE))
    land(tmp_path, rows)
    line.advance("2")
    assert slots(line) == hours
    slow = {"allowed_lateness": "2h"}
    line.of(a_spec(**ONE | slow)).backfill("1 00:00", "1 12:00", overrides=slow, reason="slow")
    assert slots(line) == hours
    by_their_rules = line.rows("completeness")
    land(tmp_path, [a_record(f"2 {h:02}:00", f"1 {h:02}:00") for h in (7, 8, 10)], mode="append")
    line.advance("3")
    assert slots(line) == hours
    kept = {row["slot_start"]: row for row in line.rows("completeness") if row["gap"]}
    of_range = [row for row in by_their_rules if row["slot_start"] == at("1 07:00")]
    assert {row["spec_fingerprint"] for row in of_range} == {
        kept[at(f"1 {h:02}:00")]["spec_fingerprint"] for h in (9, 11)
    }
    allowed = line.of(a_spec(**ONE, quality={"gaps": "allow"}))
    land(tmp_path, [a_record("3 10:00", f"1 {h}:00") for h in (14, 15)], mode="append")
    allowed.advance("4")
    first_open = slots(line)[-2]
    assert slots(line) == [hour for hour in hours if hour <= first_open or hour == hours[-1]]
    line.advance("5")
    assert slots(line) == hours


def slots(line: Line) -> list[str]:
    """The hour of each slot of the calendar; of a row for many gaps, all of its hours."""
    return sorted(
        f"{row['slot_start'] + timedelta(hours=n):%m-%d %H}"
        for row in line.rows("completeness")
        for n in range(row["slots"] or 1)
    )


def test_gaps_of_cumulative_windows_stay_beside_a_late_record_however_runs_are_cut(spark, tmp_path):
    """All windows of a day share one start; a day of minutes has several rows for many gaps.

    One record is late among gaps that are a row each, the other amid many gaps in a row.
    """
    times = ("1 00:10", "1 12:00", "2 18:30", "2 18:37", "2 23:00", "3 05:00", "3 12:00")
    rows = [a_record(at_time, at_time) for at_time in times]
    late = [a_record("4 02:00", "2 18:33"), a_record("4 02:00", "2 20:30")]
    spec = a_spec(**ONE | {"window": {"cumulative": "1d", "step": "1m"}})
    line, at_once = (Line(spark, tmp_path / n, spec) for n in ("daily", "at_once"))
    land(line.folder, rows)
    line.advance("4")
    counts = [count for _, count in gaps(line)]
    assert counts.count(1) > 3 < max(counts)
    land(line.folder, late, mode="append")
    land(at_once.folder, [*rows, *late])
    for one in (line, at_once):
        one.advance("5")
    assert calendar(line) == calendar(at_once)
    assert gaps(line)


def test_gaps_of_very_short_slots_are_staged_few_at_a_time_and_all_counted(spark, tmp_path):
    rows = [a_record(f"1 {h}:00", f"1 {h}:00") for h in ("10", "11", "13", "18")]
    line = Line(spark, tmp_path, a_spec(**ONE | {"window": {"tumbling": "4m"}}))
    few, all_at_once = (replace(line, folder=tmp_path / name) for name in ("few", "all"))
    for one in (few, all_at_once):
        land(one.folder, rows)
    expected = all_at_once.advance("2")
    with patch("strandline.engine.calendar.gaps.AT_ONCE", 7):
        outcome = few.advance("2")
    assert calendar(few) == calendar(all_at_once)
    assert (outcome.gaps, outcome.slots) == (expected.gaps, expected.slots)
    assert expected.gaps > 100
    (note,) = (note for note in outcome.notes if note.startswith("gaps: "))
    rows_of_gaps = sum(row[3] for row in calendar(few))
    left_out = rows_of_gaps - 7 - (rows_of_gaps % 7 or 7)
    assert note.startswith(f"gaps: {left_out} of their rows")


def test_gaps_of_an_earlier_version_are_healed_where_their_range_is_rebuilt(spark, tmp_path):
    rows = [a_record(f"2 {h:02}:00", f"2 {h:02}:00") for h in range(6, 20)]
    old = a_record("2 19:30", "2 00:00", happened_at=at("1 03:10"))
    line = Line(spark, tmp_path, a_spec(**ONE))
    land(tmp_path, [*rows, old])
    line.advance("3")
    right = calendar(line)
    table = DeltaTable(str(line.root / "completeness"))
    now = table.to_pyarrow_table()
    like = now.filter(pa.compute.equal(now["slot_start"], at("1 03:00"))).to_pylist()[0]
    listed = [
        like
        | {"slot_start": at(f"1 {h:02}:00"), "slot_end": at(f"1 {h:02}:00") + timedelta(hours=1)}
        | {"gap": True, "late": 0, "channels_heard": []}
        for h in range(4, 24)
    ]
    every = pa.concat_tables([now, pa.Table.from_pylist(listed, now.schema)])
    write_deltalake(
        table.table_uri,
        every.drop_columns(["slots"]),
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["slot_date"],
    )
    assert len(line.rows("completeness")) == len(right) + 20
    line.backfill("1", "2", as_of="3")
    assert [row[:4] for row in calendar_without_slots(line)] == [(*row[:4],) for row in right]


def calendar_without_slots(line: Line) -> list[tuple[Any, ...]]:
    names = ("slot_start", "slot_end", "state", "gap")
    return sorted(tuple(row[name] for name in names) for row in line.rows("completeness"))


# -------------------------------------------------------------- gaps around the range of a run


@pytest.fixture(scope="module")
def empty_days(spark, tmp_path_factory):
    """Days 1, 2, 5 and 6 have landed, and the first one is published."""
    line = Line(spark, tmp_path_factory.mktemp("empty"), a_spec(**ONE))
    hours = [f"{day} {hour:02}:20" for day in (1, 2, 5, 6) for hour in range(24)]
    land(line.folder, [a_record(hour, hour) for hour in hours])
    line.backfill("1", "2")
    return line


def test_a_prepared_run_is_stale_once_another_has_listed_the_gaps_beside_its_range(
    empty_days, tmp_path
):
    line = empty_days.copy(tmp_path)
    prepared = line.backfill("2", "3", prepare=True).run_id
    fourth = TimeRange(instant("4"), instant("5"))
    assert line.ledger[-1].touched.overlaps(fourth)
    line.backfill("5", "6")
    assert line.ledger[-1].touched.overlaps(fourth)
    with pytest.raises(StaleStagingError, match="has published into its range"):
        publish_prepared(line.spec, line.lake, prepared, line.spark)
