"""The facts of an arrival day of two landing tables, kept as those of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import date

from strandline.model.facts import DayFacts, LandingChanges, compare

OnlyMoved = Callable[[Mapping[date, int]], Collection[date]]
_SIDES = ("left", "right")


def facts_of_two(left: DayFacts | None, right: DayFacts | None, version: int) -> DayFacts:
    """What both tables say of a day; None: nothing has landed there.

    Their digest names those of both with their rows, so that no gain of the one hides a loss of the
    other. `version`: of both.
    """
    both = [_NOTHING if said is None else said for said in (left, right)]
    rows = [said.rows for said in both]
    known = [count for count in rows if count is not None]
    digest = json.dumps([[said.rows, said.digest, said.landing_version] for said in both])
    return DayFacts(sum(known) if len(known) == len(rows) else None, digest, version)


def facts_of_side(both: DayFacts, number: int) -> DayFacts:
    """What the left (0) or the right (1) table has said of a day."""
    is_of_two = both.digest.startswith("[")
    if not is_of_two:  # neither table had the day, or a single one was read then
        return _NOTHING
    rows, digest, version = json.loads(both.digest)[number]
    return DayFacts(rows, digest, version)


def changes_of_two(
    known: Mapping[date, DayFacts],
    landed: Mapping[str, tuple[Mapping[date, DayFacts], OnlyMoved]],
    *,
    observed: Collection[date],
    frontier_ms: int | None,
    published_ms: int | None,
) -> LandingChanges:
    """`compare`, of each table for itself: what has happened to one has happened to both.

    Args:
        known: the facts of both that were kept.
        landed: of each table, by its name, what it says now, and `only_moved`.
        observed: as of `compare`.
        frontier_ms: as of `compare`.
        published_ms: as of `compare`.
    """
    left, right = (
        compare(
            {day: facts_of_side(said, number) for day, said in known.items()},
            landed[name][0],
            observed=observed,
            frontier_ms=frontier_ms,
            published_ms=published_ms,
            only_moved=landed[name][1],
        )
        for number, name in enumerate(_SIDES)
    )
    lost = left.lost | right.lost
    changed = (left.changed | right.changed) - lost
    return LandingChanges(
        changed=changed,
        rewritten=(left.rewritten | right.rewritten) - changed - lost,
        lost=lost,
        behind=left.behind | right.behind,
        unknown=left.unknown | right.unknown,
    )


_NOTHING = DayFacts(0, "", 0)
