"""The example of positions in docs/code-map.md: the reference and the axis give its table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lakes import a_spec, at, instant, ms

from strandline.engine.position.axis import Axis
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.watermarks import Candidate
from strandline.reference.records import Record
from strandline.reference.replay import replay

DOCUMENT = Path(__file__).parents[3] / "docs" / "code-map.md"
SPEC = a_spec(
    source__channels=["a", "b"],
    source__key=...,
    watermark={
        "strategy": "bounded_out_of_orderness",
        "bound": "10m",
        "emit": {"every": "1m"},
    },
    window={"tumbling": "1h"},
    allowed_lateness="0s",
)


def in_ms(time: str) -> int:
    """The milliseconds of a time of the example's day; `none` is no watermark yet."""
    return MIN_WATERMARK if time == "none" else ms(at(f"1 {time}"))


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """The cells of the table, without its head."""
    section = DOCUMENT.read_text("utf-8").split("## Positions, by an example")[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_record_offers_what_it_says_and_is_seen_from_the_next_tick_on(rows):
    axis, offered = Axis.of(SPEC, instant("1")), Candidate(10 * 60_000 + 1)
    for arrival, _, event, offer, seen_from, *_ in rows:
        assert offered.of(in_ms(event)) == in_ms(offer)
        assert axis.all_seen_from(np.array([in_ms(arrival)])).tolist() == [in_ms(seen_from)]


def test_the_watermark_at_an_arrival_is_the_smallest_of_the_channels_offers_seen_by_then(rows):
    for arrival, *_, combined, _ in rows:
        seen = [
            max(
                (in_ms(row[3]) for row in rows if row[1] == channel and in_ms(row[4]) <= at_ms),
                default=MIN_WATERMARK,
            )
            for channel in "ab"
            for at_ms in [in_ms(arrival)]
        ]
        assert min(seen) == in_ms(combined), arrival


def test_the_reference_finds_the_sixth_record_late_and_no_other_one(rows):
    records = [
        Record(in_ms(arrival), in_ms(event), str(number), channel, ())
        for number, (arrival, channel, event, *_) in enumerate(rows)
    ]
    answer = replay(SPEC, records, start_ms=instant("1"), horizon_ms=instant("2"))
    assert [one.record.record_id for one in answer.late] == ["5"]
    assert [row[-1] for row in rows] == ["on time"] * 5 + ["late"]
