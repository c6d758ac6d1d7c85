"""What the advisor says of a lake is what rebuilds by these settings do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from changes import some_days
from lakes import Line, a_record, a_spec, a_week, instant, land

from strandline.errors import InputError
from strandline.model.intervals import TimeRange
from strandline.pipeline.advise.advice import Advice, Question
from strandline.pipeline.advise.advise import advise
from strandline.spec.values import parse_duration

pytestmark = pytest.mark.spark

SETTINGS = (("30m", "1h"), ("0s", "5h"), ("5h", "0s"))
"""Three settings: bound and allowed lateness; two of one sum."""
MARCH = TimeRange(instant("1"), instant("20"))


def advice_of(line: Line, within: TimeRange | None = MARCH, **asked) -> Advice:
    question = Question(Fraction("0.95"), within, **asked)
    return advise(line.spec, line.lake, question, line.spark)


def test_at_each_setting_just_as_many_records_are_lost_as_by_a_rebuild(session, tmp_path):
    line = Line(session, tmp_path, a_spec())
    land(tmp_path, a_week(days=4))
    before = line.files()
    advice = advice_of(line)
    assert line.files() == before  # nothing has been published, and nothing is
    for bound, lateness in SETTINGS:
        rules = line.of(a_spec(watermark__bound=bound, allowed_lateness=lateness))
        outcome = rules.backfill("1", "20", dry_run=True)
        (book,) = (b for b in outcome.books if not b.name.startswith("arrival day"))
        total_ms = parse_duration(bound) + parse_duration(lateness)
        assert advice.curve.lost_at(total_ms) == book.parts["late"], (bound, lateness)
        assert advice.curve.records == book.total
    assert 0 < advice.curve.lost_at(parse_duration("5h")) < advice.curve.lost_at(0)


def test_the_parts_add_up_and_each_has_a_smallest_setting_of_its_own(session, tmp_path):
    line = Line(session, tmp_path, a_spec())
    land(tmp_path, a_week())
    found = advice_of(line).to_json()
    assert found["smallest"]["share_lost"] <= 0.05
    below = [row for row in found["settings"] if row["total_ms"] < found["smallest"]["total_ms"]]
    assert all(row["share_lost"] > 0.05 for row in below)
    for parts in ("channels", "keys"):
        assert sum(part["records"] for part in found[parts]) == found["records"]
        assert sum(part["lost"] for part in found[parts]) == found["in_force"]["lost"]
        assert all(part["smallest_total_ms"] is not None for part in found[parts])
    assert [part["name"] for part in found["channels"]] == [["b"], ["a"]] or [
        part["name"] for part in found["channels"]
    ] == [["a"], ["b"]]
    worst = found["days"][0]
    assert worst["lost_by_smallest"] == max(day["lost_by_smallest"] for day in found["days"])
    finals = [r["final_after_ms"] for r in found["settings"] if r["final_after_ms"] is not None]
    assert finals == sorted(finals)  # the later the more is waited for
    assert set(found["malformed"]) == {
        *("arrival_outside_partition", "null_arrival", "null_event_time"),
        *("null_key", "undeclared_channel"),
    }


def test_of_a_range_only_its_own_records_count_but_all_move_the_watermark(session, tmp_path):
    line = Line(session, tmp_path, a_spec())
    land(tmp_path, a_week())
    middle = TimeRange(instant("3"), instant("5 12:00"))
    outcome = line.backfill("3", "5 12:00", as_of="9", dry_run=True)
    advice = advice_of(line, middle, as_of_ms=instant("9"))
    (book,) = (b for b in outcome.books if not b.name.startswith("arrival day"))
    assert advice.curve.records == book.total
    assert advice.curve.lost_at(line.spec.total_lateness_ms) == book.parts["late"]


def test_a_clock_that_is_ahead_costs_what_max_ahead_would_have_kept(session, tmp_path):
    ahead = a_record("2 10:00", "9 10:00", position=10_000)
    ahead_too = a_record("2 10:00", "9 10:00", "b", position=10_001)
    land(tmp_path, [*some_days(4), ahead, ahead_too])
    line = Line(session, tmp_path, a_spec())
    clocks = advice_of(line).clocks
    assert (clocks.records, clocks.limit_ms, clocks.is_in_force) == (2, 3_600_000, False)
    own = line.spec.total_lateness_ms
    assert clocks.without.lost_at(own) > 10 + clocks.with_limit.lost_at(own)
    careful = line.of(a_spec(source__max_ahead="1h"))
    assert advice_of(careful).curve == clocks.with_limit
    found = advice_of(careful).clocks
    assert replace(found, is_in_force=False) == clocks
    assert found.is_in_force


def test_where_no_clock_is_ahead_nothing_is_read_again(session, tmp_path, monkeypatch):
    land(tmp_path, some_days(2))
    monkeypatch.setattr("strandline.pipeline.advise.advise._Count.ahead", None)
    clocks = advice_of(Line(session, tmp_path, a_spec()), within=None).clocks
    assert (clocks.records, clocks.with_limit, clocks.without) == (0, None, None)


def test_of_no_records_the_smallest_setting_keeps_them_all(session, tmp_path):
    land(tmp_path, some_days(2))
    advice = advice_of(Line(session, tmp_path, a_spec()), TimeRange(instant("18"), instant("19")))
    assert (advice.curve.records, advice.chosen_ms, advice.windows) == (0, 0, 0)


def test_a_range_that_is_too_long_for_the_driver_is_refused(session, tmp_path, monkeypatch):
    land(tmp_path, some_days(2))
    monkeypatch.setattr("strandline.engine.losses.reached.MOST_CELLS", 3)
    with pytest.raises(InputError, match=r"more than 3 parts .*shorter range"):
        advice_of(Line(session, tmp_path, a_spec()))


def test_duplicates_are_lost_to_nobody(session, tmp_path):
    rows = some_days(3)
    land(tmp_path, rows + rows[:10])
    spec = a_spec(source__deduplicate={"columns": ["position"], "within": "1d of arrival"})
    assert advice_of(Line(session, tmp_path, spec)).curve.records == len(
        {row["position"] for row in rows}
    )
