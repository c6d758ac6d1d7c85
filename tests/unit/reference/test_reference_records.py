"""The order in which records are processed, and who takes part from when on."""

from __future__ import annotations

from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st
from strategies import streams

from strandline.reference.channels import newcomers
from strandline.reference.records import Record, instants


def order(*records: Record, sequenced: bool) -> list[list[str]]:
    return [[r.record_id for r in group] for group in instants(records, sequenced=sequenced)]


def test_without_a_sequence_an_arrival_is_one_instant_in_ascending_event_time():
    records = [
        Record(5, 30, "late arrival"),
        Record(1, 20, "b", sequence=1),
        Record(1, 10, "c", sequence=2),
        Record(1, 10, "a", sequence=3),
    ]
    assert order(*records, sequenced=False) == [["a", "c", "b"], ["late arrival"]]


def test_with_a_sequence_it_orders_the_arrival_and_equal_ones_are_one_instant():
    records = [
        Record(1, 10, "third", sequence=7),
        Record(1, 30, "second", sequence=3),
        Record(1, 20, "first", sequence=3),
        Record(1, 99, "without", sequence=None),
    ]
    assert order(*records, sequenced=True) == [["without"], ["first", "second"], ["third"]]


@DEAR
@given(streams(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_file_does_not_matter(stream, random, sequenced):
    shuffled = list(stream.records)
    random.shuffle(shuffled)
    assert order(*shuffled, sequenced=sequenced) == order(*stream.records, sequenced=sequenced)


def test_newcomers_come_by_first_record_and_then_by_name():
    instant = [
        Record(0, 5, "1", channel="c"),
        Record(0, 7, "2", channel="b"),
        Record(0, 7, "3", channel="a"),
        Record(0, 9, "4", channel="known"),
    ]
    assert newcomers(instant, ["known"]) == ["c", "a", "b"]
