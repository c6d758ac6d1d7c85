"""A range beside one that `--close` has closed: a run by hand over it leaves what there is."""

from __future__ import annotations

import pytest
from joined import JOIN, SIDE
from lakes import Line, a_spec, land, of_one

from strandline.spec import parse_spec

pytestmark = pytest.mark.spark

SESSIONS = a_spec(
    source__channels=["a"],
    window={"session": "1h"},
    watermark__bound="5h",
    quality__gaps="allow",
)


def assert_unchanged(line: Line, start: str, end: str, as_of: str) -> None:
    again = line.backfill(start, end, as_of=as_of, allow_removals=True)
    assert not again.changed, again.diff


def test_a_session_after_it_does_not_begin_with_a_record_that_is_late_for_what_is_closed(
    spark, tmp_path
):
    line = Line(spark, tmp_path, SESSIONS)
    land(tmp_path, of_one("1 06:00", "1 20:00"))
    line.advance("2")
    line.backfill("1", "2", as_of="2", close=True)
    late, on_time = "2 00:10, 1 23:45", "2 00:20, 2 00:15"
    land(tmp_path, of_one(late, on_time, "2 04:00", "2 20:00"), mode="append")
    line.advance("3")
    assert [row["happened_at"].hour for row in line.rows("quarantine")] == [23]
    assert any(row["window_start"].minute == 15 for row in line.rows("windows"))
    assert_unchanged(line, "2", "3", "3")


def test_a_session_before_it_does_not_take_a_record_that_is_late_for_what_is_closed(
    spark, tmp_path
):
    line = Line(spark, tmp_path, SESSIONS)
    land(tmp_path, of_one("1 12:00", "2 00:10, 1 23:50", "2 00:30"))
    line.advance("3")
    line.backfill("2", "3", as_of="2 01:00", close=True)
    land(tmp_path, of_one("2 01:30, 2 00:20", "2 12:00"), mode="append")
    line.advance("3")
    assert_unchanged(line, "1", "2", "3")


def test_a_pair_after_it_has_no_record_that_is_late_for_what_is_closed(spark, tmp_path):
    join = {"interval": ["-5m", "2h"]}
    sides = {
        name: SIDE | {"channels": ["a"], "table": f"landing/{name}"} | {"watermark": of_side}
        for name in ("left", "right")
        for of_side in [JOIN["sources"][name]["watermark"] | {"idleness": None, "bound": "3h"}]
    }
    for side in sides.values():
        side["watermark"].pop("idleness")
    line = Line(spark, tmp_path, parse_spec(JOIN | {"join": join, "sources": sides}, origin="x"))
    first = of_one("1 06:00", "1 20:00")
    for name in sides:
        land(tmp_path, first, table=f"landing/{name}")
    line.advance("2")
    line.backfill("1", "2", as_of="2", close=True)
    late, of_right = of_one("2 00:05, 1 23:50"), of_one("2 00:15, 2 00:10")
    rest = of_one("2 20:00")
    land(tmp_path, [*late, *rest], table="landing/left", mode="append")
    land(tmp_path, [*of_right, *rest], table="landing/right", mode="append")
    line.advance("3")
    pairs = line.rows("pairs")
    assert_unchanged(line, "2", "3", "3")
    assert line.rows("pairs") == pairs
