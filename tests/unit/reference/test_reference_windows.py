"""The window operator under watermarks given by hand: Flink's own cases."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.model.lateness import MAX_WATERMARK
from strandline.model.windows import TimeWindow, TumblingWindows
from strandline.reference.answer import Outcome, Pane
from strandline.reference.records import Record
from strandline.reference.windows import GridWindowOperator


class Tens:
    """Windows of ten and one key; records are told by their event times."""

    def __init__(self, *, lateness_ms: int = 0, offset_ms: int = 0) -> None:
        assigner = TumblingWindows(10, offset_ms)
        self.operator = GridWindowOperator(assigner, allowed_lateness_ms=lateness_ms)
        self.seen = 0

    def record(self, ts_ms: int) -> Outcome:
        return self.process(ts_ms)[0]

    def fired_at_once(self, ts_ms: int) -> list[tuple[int, list[int]]]:
        return list(contents(self.process(ts_ms)[1]))

    def watermark(self, watermark_ms: int) -> list[tuple[int, list[int]]]:
        return list(contents(self.operator.advance(watermark_ms)))

    def process(self, ts_ms: int) -> tuple[Outcome, list[Pane]]:
        self.seen += 1
        return self.operator.process(Record(0, ts_ms, f"{self.seen:03d}"))


def contents(panes: Iterator[Pane] | list[Pane]) -> Iterator[tuple[int, list[int]]]:
    for pane in panes:
        yield pane.window.start_ms, [record.ts_ms for record in pane.members]


def test_a_window_fires_at_its_last_millisecond_and_not_before():
    windows = Tens()
    for ts_ms in (0, 9, 10):
        assert windows.record(ts_ms) is Outcome.ON_TIME
    assert windows.watermark(8) == []
    assert windows.watermark(9) == [(0, [0, 9])]
    assert windows.watermark(19) == [(10, [10])]


def test_without_lateness_a_record_is_late_as_soon_as_its_window_has_fired():
    windows = Tens()
    windows.watermark(8)
    assert windows.record(9) is Outcome.ON_TIME
    windows.watermark(9)
    assert windows.record(9) is Outcome.LATE
    assert windows.record(10) is Outcome.ON_TIME


def test_a_record_accepted_late_fires_its_window_again_with_all_it_holds():
    windows = Tens(lateness_ms=5)
    windows.record(1)
    assert windows.watermark(9) == [(0, [1])]
    assert windows.fired_at_once(2) == [(0, [1, 2])]
    assert windows.watermark(13) == []
    assert windows.fired_at_once(3) == [(0, [1, 2, 3])]
    assert windows.watermark(14) == []
    assert windows.record(4) is Outcome.LATE


def test_a_window_whose_first_record_comes_late_fires_only_with_its_records():
    windows = Tens(lateness_ms=5)
    windows.watermark(12)
    outcome, fired = windows.process(1)
    assert outcome is Outcome.LATE_ACCEPTED
    assert list(contents(fired)) == [(0, [1])]
    assert windows.watermark(100) == []


def test_windows_before_1970_fire_like_all_others():
    windows = Tens()
    for ts_ms in (-1, -10, -11):
        windows.record(ts_ms)
    assert windows.watermark(-12) == []
    assert windows.watermark(-11) == [(-20, [-11])]
    assert windows.watermark(-1) == [(-10, [-1, -10])]


def test_a_record_behind_the_watermark_is_not_late_while_its_window_stands():
    windows = Tens()
    windows.watermark(5)
    assert windows.record(5) is Outcome.ON_TIME
    assert windows.record(1) is Outcome.ON_TIME


def test_windows_of_one_watermark_fire_by_rising_end():
    windows = Tens()
    for ts_ms in (25, 5, 15):
        windows.record(ts_ms)
    assert windows.watermark(100) == [(0, [5]), (10, [15]), (20, [25])]


def test_state_goes_at_the_cleanup_time_and_stays_until_then():
    windows = Tens(lateness_ms=5)
    windows.record(0)
    list(windows.operator.advance(13))
    assert [pane.window for pane in windows.operator.panes()] == [TimeWindow(0, 10)]
    list(windows.operator.advance(14))
    assert windows.operator.panes() == []


def test_with_endless_lateness_nothing_is_late_and_nothing_goes_even_at_the_end():
    windows = Tens(lateness_ms=MAX_WATERMARK)
    windows.record(0)
    assert windows.watermark(1_000_000) == [(0, [0])]
    assert windows.fired_at_once(5) == [(0, [0, 5])]
    windows.watermark(MAX_WATERMARK)
    assert len(windows.operator.panes()) == 1


def test_after_the_end_of_the_input_everything_is_late():
    windows = Tens(lateness_ms=7)
    windows.watermark(MAX_WATERMARK)
    assert windows.record(10**15) is Outcome.LATE


def test_keys_have_windows_of_their_own():
    operator = GridWindowOperator(TumblingWindows(10), allowed_lateness_ms=0)
    operator.process(Record(0, 1, "1", key=("x",)))
    operator.process(Record(0, 2, "2", key=("y",)))
    fired = list(operator.advance(9))
    assert {(pane.key, len(pane.members)) for pane in fired} == {(("x",), 1), (("y",), 1)}
