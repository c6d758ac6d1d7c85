"""What has become of the days of two landing tables that are observed together."""

from __future__ import annotations

from datetime import date

from strandline.model.facts import DayFacts
from strandline.model.facts_of_two import changes_of_two, facts_of_two

DAY, NEXT = date(2024, 3, 1), date(2024, 3, 2)


def facts(rows: int, digest: str = "") -> DayFacts:
    return DayFacts(rows, digest or f"of {rows}", 1)


def found(known, left, right, moved=()):
    return changes_of_two(
        known,
        {"left": (left, lambda days: set(moved)), "right": (right, lambda days: set(moved))},
        observed={*known},
        frontier_ms=2**60,
        published_ms=2**60,
    )


BOTH = {DAY: facts_of_two(facts(5), facts(7), 1)}


def test_what_one_table_gains_does_not_hide_what_the_other_has_lost():
    changes = found(BOTH, {DAY: facts(4)}, {DAY: facts(9)})
    assert (changes.lost, changes.changed) == ({DAY}, frozenset())


def test_a_day_on_which_the_other_table_gets_its_first_rows_has_changed():
    known = {DAY: facts_of_two(facts(5), None, 1)}
    assert known[DAY].rows == 5
    changes = found(known, {DAY: facts(5)}, {DAY: facts(1)})
    assert (changes.changed, changes.behind) == ({DAY}, frozenset())


def test_rows_that_only_moved_have_not_changed():
    changes = found(BOTH, {DAY: facts(5, "elsewhere")}, {DAY: facts(7)}, moved=[DAY])
    assert (changes.rewritten, changes.changed, changes.lost) == ({DAY}, frozenset(), frozenset())


def test_a_new_day_of_either_table_is_behind_the_frontier():
    assert found(BOTH, {DAY: facts(5)}, {DAY: facts(7), NEXT: facts(1)}).behind == {NEXT}


def test_a_day_that_has_gone_from_both_is_lost_and_one_that_neither_had_is_not():
    known = BOTH | {NEXT: DayFacts(0, "", 1)}
    assert found(known, {}, {}).lost == {DAY}


def test_a_day_that_one_table_alone_was_read_of_is_observed_again():
    changes = found({DAY: facts(5, "1a2b")}, {DAY: facts(5, "1a2b")}, {DAY: facts(7)})
    assert (changes.changed, changes.lost) == ({DAY}, frozenset())
