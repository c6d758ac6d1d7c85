"""The record-by-record reference tells every transcript as it was worked out by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from strandline.conformance.compare import compare
from strandline.conformance.reference_runner import answer_by_reference
from strandline.errors import InputError
from transcripts import Transcript, read_transcript, read_transcripts

TRANSCRIPTS = read_transcripts()

STORY: dict[str, Any] = {
    "title": "one",
    "rule": "LT1, EventTimeTrigger",
    "window": {"tumbling": "10ms"},
    "watermark": {"strategy": "ascending", "emit": {"every": "100ms"}, "idleness": "50ms"},
    "story": [
        {"id": 1, "at": 10, "ts": 5},
        {"tick": 100},
        {"watermark": 4},
        {"id": 2, "at": 110, "ts": 12},
        {"tick": 200},
        {"watermark": 11},
        {"fires": {"window": [0, 10], "holds": [1]}},
        {"id": 3, "at": 210, "ts": 6},
        "late",
        {"tick": 500},
        "idle",
    ],
    "open": [{"window": [10, 20], "holds": [2]}],
}

THEN: dict[str, Any] = STORY | {
    "then": {"window": {"tumbling": "20ms"}},
    "then_open": [{"window": [0, 20], "of": [1]}],
}


def disagreements(transcript: Transcript) -> list[str]:
    answer = answer_by_reference(transcript.scenario)
    return [str(d) for d in compare(transcript.title, transcript.expected, answer)]


def told_otherwise(place: int, *lines: Any) -> dict[str, Any]:
    """The story with other lines in place of one."""
    content = copy.deepcopy(STORY)
    content["story"][place : place + 1] = lines
    return content


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda t: t.title)
def test_the_reference_tells_the_story_as_it_stands(transcript):
    assert disagreements(transcript) == []


def test_every_transcript_has_a_title_of_its_own_that_is_a_sentence():
    titles = [transcript.title for transcript in TRANSCRIPTS]
    assert len(set(titles)) == len(titles)
    assert all(title[0].isupper() and title.endswith(".") for title in titles)


# ------------------------------------------------------------------------------------- the reader


@pytest.mark.parametrize("content", [STORY, THEN])
def test_a_story_that_is_told_rightly_agrees(content):
    assert disagreements(read_transcript(content)) == []


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (told_otherwise(2), "watermarks"),
        (told_otherwise(5, {"watermark": 10}), "watermarks"),
        (told_otherwise(4, {"tick": 205}), "watermarks"),
        (told_otherwise(6), "firings"),
        (told_otherwise(6, {"fires": {"window": [0, 10], "holds": [2]}}), "firings"),
        (told_otherwise(6, {"fires": {"window": [0, 11], "holds": [1]}}), "firings"),
        (told_otherwise(8), "late"),
        (told_otherwise(8, "no_window"), "no_window"),
        (told_otherwise(10), "valve_status"),
        (told_otherwise(9, {"tick": 400}), "valve_status"),
        (told_otherwise(10, "idle", "end", {"watermark": "max"}), "firings"),
        (STORY | {"open": []}, "open_at_end"),
        (STORY | {"open": [{"window": [10, 20], "holds": [2], "fired": True}]}, "open_at_end"),
        (THEN | {"then_open": []}, "then.open_at_end"),
        (THEN | {"then": {"window": {"tumbling": "10ms"}}}, "then.firings"),
        (THEN | {"then": {"window": {"tumbling": "20ms"}, "key": "all"}}, "then.open_at_end"),
    ],
)
def test_a_story_that_is_told_wrongly_is_found_out(content, found):
    assert any(f"one: {found}[" in line for line in disagreements(read_transcript(content)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (told_otherwise(0), "record 2 is out of order"),
        (told_otherwise(0, {"watermark": 3}), "nothing has caused"),
        (told_otherwise(0, {"id": 1, "at": 10, "ts": 5, "color": 7}), r"\['color'\]"),
        (told_otherwise(3, {"id": 7, "at": 110, "ts": 12}), "record 7 is out of order"),
        (told_otherwise(3, {"id": 2, "at": 99, "ts": 12}), "99 comes after 100"),
        (told_otherwise(6, {"fires": {"window": [0, 10], "holds": [3]}}), r"no record \[3\]"),
        (told_otherwise(6, "late"), "late is no line of a story here"),
        (told_otherwise(6, "wonders"), "wonders is no line of a story here"),
        (told_otherwise(6, "end"), "comes after the end"),
        (STORY | {"parallelism": 2}, r"\['parallelism'\]"),
        (STORY | {"trigger": "count"}, r"trigger"),
        (STORY | {"window": {"tumbling": "0ms"}}, r"window\.tumbling"),
        (THEN | {"then_open": [{"window": [0, 20], "of": [2]}]}, r"no result \[2\] so far"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(content, problem):
    with pytest.raises(InputError, match=problem):
        read_transcript(content)


def test_an_instant_may_be_a_time_of_day():
    content = copy.deepcopy(STORY)
    content["story"] = [{"id": 1, "at": "0:00:01.5", "ts": "9:02"}]
    content["open"] = []
    (record,) = read_transcript(content).scenario.records
    assert (record.arrival_ms, record.ts_ms) == (1_500, 32_520_000)
