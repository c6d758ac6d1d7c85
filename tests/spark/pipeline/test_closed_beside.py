"""Ranges that `--close` has closed, and ranges beside them: later runs leave what there is."""

from __future__ import annotations

from typing import Any

import pytest
from joined import JOIN, SIDE
from lakes import Line, a_spec, land, of_one

from strandline.model.lateness import MAX_WATERMARK
from strandline.spec import parse_spec
from strandline.spec.process import Process

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


TOLD = "def told(key, window, records, watermark):\n    return [{'at_watermark': watermark}]\n"
CALLED: dict[str, Any] = {
    "process": Process(name="told:told", files={"told.py": TOLD}),
    "returns": {"at_watermark": "bigint"},
}
FIRED: dict[str, dict[str, Any]] = {
    "windows fire at their end": {},
    "sessions fire": {"window": {"session": "20m"}, "allowed_lateness": "0s"},
    "a channel goes idle at that instant": {
        "watermark": {
            **{"strategy": "punctuated", "marker": "true", "emit": {"every": "15m"}},
            "idleness": "15m",
        }
    },
}
"""How else they fire, the engine is asked in `test_engine_edges.py`."""


@pytest.mark.parametrize("kind", FIRED)
def test_what_an_end_of_input_has_fired_stays_in_later_runs_where(kind, spark, tmp_path):
    whole = {"window": {"tumbling": "1h"}, "firings": True, "quality__gaps": "allow"}
    line = Line(spark, tmp_path, a_spec(**whole | FIRED[kind]).model_copy(update=CALLED))
    of_a = of_one("1 09:10, 1 09:05", "1 11:20, 1 11:15", "1 11:30, 1 10:20")
    land(tmp_path, [*of_a, *of_one("1 10:11, 1 10:05", "1 11:45, 1 11:40", source="b")])
    line.backfill("1", "2", as_of="1 12:00", close=True)
    left = line.rows("firings"), line.rows("windows")
    assert MAX_WATERMARK in {row["watermark_ms"] for row in left[0]}
    later = [*of_one("2 09:10"), *of_one("2 09:11", source="b")]
    land(tmp_path, later, mode="append")
    line.advance("3")
    for before, name in zip(left, ("firings", "windows"), strict=True):
        assert [row for row in line.rows(name) if row["window_start"].day == 1] == before
