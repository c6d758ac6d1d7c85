"""A load that a loader has landed twice is seen in the landing table's log, without its rows."""

from __future__ import annotations

from datetime import date

import pytest
from deltalake import DeltaTable
from joined import JOIN
from lakes import a_record, a_spec, land

from strandline.lake.landing.log import LandingLog
from strandline.lake.store.lake import Lake
from strandline.pipeline.notes.changed import _without_repeated_rows, of_repeated_loads
from strandline.spec import parse_spec

SPEC = a_spec()
FIRST, SECOND = [date(2024, 3, day) for day in (1, 2)]
LOAD = [a_record(f"1 {hour}:10", f"1 {hour}:00", position=hour) for hour in range(10, 14)]


@pytest.fixture
def notes(tmp_path):
    """The notes about some days of a landing table with some loads, one a commit."""

    def notes(*loads, spec=SPEC, days=(FIRST, SECOND), delete=None) -> list[str]:
        for load in loads:
            land(tmp_path, load, mode="append")
        if delete is not None:
            DeltaTable(str(tmp_path / "landing/meter")).delete(delete)
        log = LandingLog.of(Lake.at(str(tmp_path)), spec)
        return [*of_repeated_loads(spec, log, {*days})]

    return notes


def test_a_day_that_was_landed_twice_is_named_with_its_rows_and_the_ways_out(notes):
    other = [a_record(f"2 {hour}:10", f"2 {hour}:00", position=hour) for hour in (10, 11)]
    assert notes(LOAD, other, LOAD) == [
        "4 rows of 2024-03-01 in files of landing/meter that have the size, the number of rows and "
        "the column statistics of another file of the day: if a load was repeated, its records "
        "count twice. Compare them, and if their rows are the same, remove one of both, and let "
        "the next run count what is left (strandline advance meter --to INSTANT --accept-loss "
        "REASON), or name what identifies a record in source.deduplicate"
    ]


def test_two_sources_which_cannot_be_deduplicated_are_not_offered_it():
    assert "source.deduplicate" in _without_repeated_rows(SPEC)
    of_two = _without_repeated_rows(parse_spec(JOIN, origin="near.yaml"))
    assert of_two.endswith("advance near --to INSTANT --accept-loss REASON)")
    assert "deduplicate" not in of_two


def test_other_rows_other_days_and_single_rows_are_no_repeated_load(notes):
    another = [*LOAD[:-1], a_record("1 13:10", "1 13:00", position=99)]
    assert notes(LOAD, another, LOAD[:1], LOAD[:1]) == []
    assert notes(LOAD, days=[SECOND]) == []


def test_files_of_one_arrival_time_are_not_taken_for_each_other(notes):
    """Of a batch with one arrival, 200,000 rows of other data were said to be repeated."""
    middles = ("01:20", "01:30", "01:40")
    batch = [
        [a_record("1 10:00", f"1 {time}") for time in ("01:00", middle, "01:50")]
        for middle in middles
    ]
    assert notes(*batch) == []


def test_the_event_time_stands_for_an_arrival_time_without_statistics(notes):
    of_text = a_spec(
        source__arrival_time="to_timestamp(arrived_at)", source__event_time="Happened_At"
    )
    assert len(notes(LOAD, LOAD, spec=of_text)) == 1
    without = a_spec(source__arrival_time="timestamp(a)", source__event_time="timestamp(h)")
    assert notes(spec=without) == []


def test_a_repeated_load_is_none_where_duplicates_are_malformed_or_rows_were_removed(notes):
    only_one = a_spec(source__deduplicate={"columns": ["position"], "within": "1d of arrival"})
    assert notes(LOAD, LOAD, spec=only_one) == []
    assert notes(LOAD, delete="position = 10") == []
