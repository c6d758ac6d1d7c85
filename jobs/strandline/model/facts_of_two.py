"""The facts of an arrival day of two landing tables, kept as those of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date

from strandline.model.facts import DayFacts, LandingChanges, compare

OnlyMoved = Callable[[Mapping[date, int]], Collection[date]]
_SIDES = ("left", "right")


@dataclass(frozen=True)
class SideLanded:
    """What one of both tables says now.

    Attributes:
        facts: of each arrival day.
        only_moved: see `compare`.
        by_rows: see `compare`.
    """

    facts: Mapping[date, DayFacts]
    only_moved: OnlyMoved
    by_rows: bool = False


def facts_of_two(
    left: DayFacts | None, right: DayFacts | None, version: int, table_id: str | None = None
) -> DayFacts:
    """What both tables say of a day; None: nothing has landed there.

    Their digest names those of both with their rows, so that no gain of the one hides a loss of the
    other. `version`, `table_id`: of both.
    """
    both = [_NOTHING if said is None else said for said in (left, right)]
    rows = [said.rows for said in both]
    known = [count for count in rows if count is not None]
    digest = json.dumps(
        [[said.rows, said.digest, said.landing_version, said.table_id] for said in both]
    )
    count = sum(known) if len(known) == len(rows) else None
    return DayFacts(count, digest, version, table_id=table_id)


def facts_of_side(both: DayFacts, number: int) -> DayFacts:
    """What the left (0) or the right (1) table has said of a day."""
    is_of_two = both.digest.startswith("[")
    if not is_of_two:  # neither table had the day, or a single one was read then
        return _NOTHING
    rows, digest, version, *ids = json.loads(both.digest)[number]
    return DayFacts(rows, digest, version, table_id=ids[0] if ids else None)


def changes_of_two(
    known: Mapping[date, DayFacts],
    landed: Mapping[str, SideLanded],
    *,
    frontier_ms: int | None,
    published_ms: int | None,
    first_id: str | None = None,
) -> LandingChanges:
    """`compare`, of each table for itself: what has happened to one has happened to both.

    Args:
        known: the facts of both that were kept.
        landed: of each table, by its name, what it says now.
        frontier_ms: as of `compare`.
        published_ms: as of `compare`.
        first_id: as of `compare`, of both: `ids_of_two`.
    """
    first_ids = (None, None) if first_id is None else ids_of_two(first_id)
    left, right = (
        compare(
            {day: facts_of_side(said, number) for day, said in known.items()},
            landed[name].facts,
            frontier_ms=frontier_ms,
            published_ms=published_ms,
            only_moved=landed[name].only_moved,
            by_rows=landed[name].by_rows,
            first_id=first_ids[number],
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
        recreated=(left.recreated | right.recreated) - lost,
    )


def id_of_two(left: str, right: str) -> str:
    """The ids of both tables as one."""
    return json.dumps([left, right])


def ids_of_two(of_both: str) -> tuple[str | None, str | None]:
    """The ids of both tables, see `id_of_two`; None: a single one was read then."""
    if not of_both.startswith("["):
        return None, None
    left, right = json.loads(of_both)
    return left, right


_NOTHING = DayFacts(0, "", 0)
