"""What holds for every stream: the books, time's direction, and section 2 of the algorithm."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dear import DEAR
from hypothesis import assume, given
from hypothesis import strategies as st
from spec_strategies import any_windows
from strategies import Stream, any_streams, streams

from strandline.model.lateness import MAX_WATERMARK, cleanup_time
from strandline.model.watermarks import Ticks
from strandline.reference.answer import Origin, Outcome, Replay, Timing
from strandline.reference.records import Record
from strandline.spec.window import Session, Tumbling

Position = tuple[int, int, int, int]
"""(ms, tick 0 or record 1 or end 2, sequence, channel's number): algorithm.md, section 0."""
NEVER = (2**70, 0, 0, 0)


def told_of(firing) -> tuple:
    return (
        firing.key,
        firing.window,
        firing.timing,
        firing.watermark_ms,
        firing.origin,
        frozenset(record.record_id for record in firing.members),
    )


def outcome(told: Replay) -> tuple:
    """All of an answer; the firings of one moment in no order among equal ends."""
    return (
        told.watermarks,
        sorted(map(told_of, told.firings), key=repr),
        told.late,
        told.open_at_end,
        told.outcomes,
    )


@DEAR
@given(any_streams())
def test_every_known_record_has_one_fate_and_is_where_that_fate_says(stream):
    told = stream.replay()
    known = {r.record_id for r in stream.records if r.arrival_ms < stream.horizon_ms}
    assert told.outcomes.keys() == known
    late = {refused.record.record_id for refused in told.late}
    vanished = {refused.record.record_id for refused in told.no_window}
    held = {r.record_id for f in told.firings for r in f.members}
    held |= {r.record_id for o in told.open_at_end for r in o.members}
    assert late == {r for r, outcome in told.outcomes.items() if outcome is Outcome.LATE}
    assert vanished == {r for r, outcome in told.outcomes.items() if outcome is Outcome.NO_WINDOW}
    # what a window dropped before it fired (a sliding one may be late where another is not) is
    # nowhere else; all others are held, and nothing is in two places
    assert held | late | vanished == known
    assert not held & late
    assert not (held | late) & vanished


@DEAR
@given(any_streams())
def test_a_record_accepted_late_is_one_that_fired_its_window_at_once(stream):
    told = stream.replay()
    fired_by = Counter(
        f.origin.after_record.record_id for f in told.firings if f.timing is Timing.LATE
    )
    accepted_late = {r for r, outcome in told.outcomes.items() if outcome is Outcome.LATE_ACCEPTED}
    if isinstance(stream.spec.window, Tumbling | Session):
        assert fired_by == Counter(accepted_late)
    else:  # of several windows an older one may have fired where the newest has not
        assert accepted_late <= fired_by.keys() <= told.outcomes.keys()


@DEAR
@given(any_streams())
def test_watermarks_and_moments_only_go_forward(stream):
    told = stream.replay()
    values = [emission.watermark_ms for emission in told.watermarks]
    assert values == sorted(set(values))
    for events in (told.watermarks, told.firings):
        times = [event.origin.at_ms for event in events]
        assert times == sorted(times)
    assert [f.seq for f in told.firings] == list(range(len(told.firings)))


@DEAR
@given(any_streams())
def test_a_window_fires_on_time_at_most_once_and_then_only_grows(stream):
    seen: dict[tuple, frozenset[str]] = {}
    for firing in stream.replay().firings:
        subject = (firing.key, firing.window)
        members = frozenset(record.record_id for record in firing.members)
        assert members > seen.get(subject, frozenset())
        assert firing.timing is Timing.LATE or subject not in seen
        assert firing.watermark_ms >= firing.window.max_timestamp_ms
        seen[subject] = members


@DEAR
@given(any_streams(), st.randoms(use_true_random=False))
def test_neither_the_order_of_the_rows_nor_their_ties_matter(stream, random):
    shuffled = list(stream.records)
    random.shuffle(shuffled)
    assert outcome(stream.replay(shuffled)) == outcome(stream.replay())


@DEAR
@given(streams(window=any_windows()))
def test_with_one_channel_it_does_not_matter_how_the_channels_are_given(stream):
    assume(any(r.arrival_ms < stream.horizon_ms for r in stream.records))
    lone = [replace(record, channel="a") for record in stream.records]
    source = stream.spec.source.model_copy(update={"channel": "channel", "channels": ("a",)})
    one = stream.spec.model_copy(update={"source": source})
    source = source.model_copy(update={"channels": "discovered"})
    found = stream.spec.model_copy(update={"source": source})
    declared, discovered = (
        Stream(spec, tuple(lone), stream.start_ms, stream.horizon_ms, stream.end_of_input).replay()
        for spec in (one, found)
    )
    assert outcome(declared) == outcome(discovered)


@DEAR
@given(any_streams(), st.integers(-30, 400))
def test_an_earlier_horizon_knows_the_beginning_of_the_same_story(stream, back_ms):
    whole = stream.replay(horizon_ms=stream.horizon_ms)
    part = stream.replay(horizon_ms=stream.horizon_ms - abs(back_ms))
    assert part.watermarks == whole.watermarks[: len(part.watermarks)]
    assert part.firings == whole.firings[: len(part.firings)]
    assert part.late == whole.late[: len(part.late)]
    assert part.outcomes.items() <= whole.outcomes.items()


@DEAR
@given(any_streams())
def test_the_end_of_the_input_fires_every_window_that_held_a_record(stream):
    held = stream.replay(horizon_ms=stream.horizon_ms)
    closed = Stream(stream.spec, stream.records, stream.start_ms, stream.horizon_ms, True).replay()
    idle = held.valve_status and held.valve_status[-1].status == "idle"
    if idle and stream.spec.watermark.combine == "splits":
        assert outcome(closed) == outcome(held)  # Flink: an idle source drops its last watermark
        return
    fired = {(f.key, f.window) for f in closed.firings}
    assert fired == {(f.key, f.window) for f in held.firings} | {
        (o.key, o.window) for o in held.open_at_end
    }
    if stream.spec.allowed_lateness < MAX_WATERMARK:
        assert closed.open_at_end == () or closed.final_watermark_ms < MAX_WATERMARK


# --------------------------------------------------------------- algorithm.md, section 2, as it is


def sequence_of(stream: Stream, record: Record) -> int:
    return record.sequence if stream.spec.source.sequence is not None else 0


def emissions(stream: Stream, channels: list[str]) -> list[tuple[str, int, Position]]:
    """(channel, candidate, position at which it is visible) of each record that has one."""
    interval_ms = stream.spec.watermark.interval_ms
    result = []
    for record in stream.records:
        if record.arrival_ms >= stream.horizon_ms:
            continue
        number = channels.index(record.channel)
        position = (record.arrival_ms, 1, sequence_of(stream, record), number)
        if interval_ms is not None:
            if interval_ms == 0:
                continue
            tick_ms = Ticks(stream.start_ms, interval_ms).after(record.arrival_ms)
            position = (tick_ms, 0, 0, number)
        if position[0] < stream.horizon_ms:
            candidate_ms = stream.spec.watermark.candidate.of(record.ts_ms)
            result.append((record.channel, candidate_ms, position))
    return result


def joined(stream: Stream) -> dict[str, tuple[int, int, int]]:
    """The first record of each channel, in the order of these, then of names."""
    first: dict[str, tuple[int, int, int]] = {}
    for record in stream.records:
        at = (record.arrival_ms, sequence_of(stream, record), record.ts_ms)
        if record.arrival_ms < stream.horizon_ms:
            first[record.channel] = min(at, first.get(record.channel, at))
    return dict(sorted(first.items(), key=lambda item: (item[1], item[0])))


def crossing(stream: Stream, threshold_ms: int) -> Position:
    """T(b): max over the channels of the first position with a candidate at or past b."""
    discovered = stream.spec.source.declared_channels is None
    first = joined(stream)
    channels = list(first) if discovered else list(stream.spec.source.declared_channels)
    offers = emissions(stream, channels)
    reached: Position | None = None
    for number, channel in enumerate(channels):
        own = [p for c, candidate_ms, p in offers if c == channel and candidate_ms >= threshold_ms]
        if stream.end_of_input:
            own.append((stream.horizon_ms - 1, 2, 0, number))
        reached = max(min(own, default=NEVER), reached or (-NEVER[0], 0, 0, 0))
        following = channels[number + 1] if discovered and number + 1 < len(channels) else None
        if following is not None:
            arrival_ms, sequence, _ = first[following]
            if reached < (arrival_ms, 1, sequence, -1):
                return reached
    return NEVER if reached is None else reached


def moment_of(position: Position) -> tuple[int, str] | None:
    causes = ("tick", "record", "end")
    return None if position == NEVER else (position[0], causes[position[1]])


def told_moment(moment: Origin | None) -> tuple[int, str] | None:
    return None if moment is None else (moment.at_ms, moment.cause.value)


@DEAR
@given(streams())
def test_crossings_are_the_latest_first_position_over_the_channels(stream):
    told = stream.replay()
    assigner = stream.spec.window.assigner
    for record in stream.records:
        for window in assigner.windows_of(record.ts_ms):
            threshold_ms = window.max_timestamp_ms
            assert told_moment(told.crossing(threshold_ms)) == moment_of(
                crossing(stream, threshold_ms)
            )


@DEAR
@given(streams())
def test_a_record_is_late_exactly_if_its_window_has_closed_before_it(stream):
    outcomes = stream.replay().outcomes
    for record in stream.records:
        if record.arrival_ms >= stream.horizon_ms:
            continue
        (window,) = stream.spec.window.assigner.windows_of(record.ts_ms)
        close_ms = cleanup_time(
            window.max_timestamp_ms, allowed_lateness_ms=stream.spec.allowed_lateness
        )
        closed = crossing(stream, close_ms)
        before = (record.arrival_ms, 1, sequence_of(stream, record), -1)
        assert (outcomes[record.record_id] is Outcome.LATE) == (closed < before)
