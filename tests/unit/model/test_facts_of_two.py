"""What has become of the days of two landing tables that are observed together."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from strandline.model.facts import DayFacts, KnownDays, LandedDays
from strandline.model.facts_of_two import changes_of_two, content_of, facts_of_two, id_of_two

DAY, NEXT = date(2024, 3, 1), date(2024, 3, 2)


def facts(rows: int, digest: str = "") -> DayFacts:
    return DayFacts(rows, digest or f"of {rows}", 1)


def found(known, left, right, moved=(), first_id=None):
    landed = {"left": left, "right": right}
    return changes_of_two(
        KnownDays(known, frontier_ms=2**60, published_ms=2**60, first_id=first_id),
        {name: LandedDays(side, lambda days: set(moved)) for name, side in landed.items()},
    )


BOTH = {DAY: facts_of_two(facts(5), facts(7), 1)}


def test_what_one_table_gains_does_not_hide_what_the_other_has_lost():
    changes = found(BOTH, {DAY: facts(4)}, {DAY: facts(9)})
    assert (changes.missing, changes.changed) == ({DAY}, frozenset())


def test_a_day_on_which_the_other_table_gets_its_first_rows_has_changed():
    known = {DAY: facts_of_two(facts(5), None, 1)}
    assert known[DAY].rows == 5
    changes = found(known, {DAY: facts(5)}, {DAY: facts(1)})
    assert (changes.changed, changes.behind) == ({DAY}, frozenset())


def test_rows_that_only_moved_have_not_changed():
    changes = found(BOTH, {DAY: facts(5, "elsewhere")}, {DAY: facts(7)}, moved=[DAY])
    assert (changes.rewritten, changes.changed, changes.missing) == (
        {DAY},
        frozenset(),
        frozenset(),
    )


def test_a_new_day_of_either_table_is_behind_the_frontier():
    assert found(BOTH, {DAY: facts(5)}, {DAY: facts(7), NEXT: facts(1)}).behind == {NEXT}


def test_a_day_that_has_gone_from_both_is_lost_and_one_that_neither_had_is_not():
    known = BOTH | {NEXT: DayFacts(0, "", 1)}
    assert found(known, {}, {}).missing == {DAY}


def test_a_day_that_one_table_alone_was_read_of_is_observed_again():
    changes = found({DAY: facts(5, "1a2b")}, {DAY: facts(5, "1a2b")}, {DAY: facts(7)})
    assert (changes.changed, changes.missing) == ({DAY}, frozenset())


def test_of_two_tables_the_one_that_was_created_anew_is_named_by_its_id():
    """An old digest names no ids: then the tables are those that the ledger names first."""
    ours, theirs = replace(facts(5), table_id="ours"), replace(facts(7), table_id="theirs")
    both = {DAY: facts_of_two(ours, theirs, 1, id_of_two("ours", "theirs"))}
    same = found(both, {DAY: ours}, {DAY: theirs})
    assert (same.changed, same.rewritten, same.recreated) == (frozenset(),) * 3
    anew = replace(theirs, table_id="another")
    assert found(both, {DAY: ours}, {DAY: anew}, moved=[DAY]).recreated == {DAY}

    old = {DAY: replace(BOTH[DAY], digest='[[5, "of 5", 1], [7, "of 7", 1]]')}
    assert found(old, {DAY: ours}, {DAY: anew}).changed == frozenset()
    assert found(old, {DAY: ours}, {DAY: anew}, first_id="of one").changed == frozenset()
    first_id = id_of_two("ours", "theirs")
    assert found(old, {DAY: ours}, {DAY: anew}, first_id=first_id).changed == {DAY}


def test_the_content_of_a_day_is_the_same_whatever_the_days_go_by():
    def of(prefix: str) -> list[DayFacts]:
        one, other = facts(5, f"{prefix}17"), facts(7, f"{prefix}-4")
        return [one, facts_of_two(one, other, 1), facts_of_two(None, other, 1)]

    of_then = [content_of(each) for each in of("")]
    assert len({*of_then}) == 3
    assert of_then == [content_of(each) for each in of("1a2b3c4d:")]
