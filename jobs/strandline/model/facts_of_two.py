"""The facts of an arrival day of two landing tables, stored as the facts of one table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from strandline.model.facts import DayFacts, KnownDays, LandedDays, LandingChanges, compare

_SIDES = ("left", "right")


def facts_of_two(
    left: DayFacts | None, right: DayFacts | None, version: int, table_id: str | None = None
) -> DayFacts:
    """The facts of a day of both tables as one `DayFacts`.

    The digest is a JSON list of both tables' facts, so that new rows of one table do not hide
    missing rows of the other.

    Args:
        left: the facts of the left table; None: it has no rows of the day.
        right: the facts of the right table; None: it has no rows of the day.
        version: one number for the versions of both tables.
        table_id: the ids of both tables (`id_of_two`).
    """
    both = [_NOTHING if facts is None else facts for facts in (left, right)]
    rows = [facts.rows for facts in both]
    known = [count for count in rows if count is not None]
    digest = json.dumps(
        [[facts.rows, facts.digest, facts.landing_version, facts.table_id] for facts in both]
    )
    count = sum(known) if len(known) == len(rows) else None
    return DayFacts(count, digest, version, table_id=table_id)


def facts_of_side(both: DayFacts, number: int) -> DayFacts:
    """The facts of a day of the left (0) or the right (1) table."""
    is_of_two = both.digest.startswith("[")
    if not is_of_two:  # neither table had the day, or a single one was read then
        return _NOTHING
    rows, digest, version, *ids = json.loads(both.digest)[number]
    return DayFacts(rows, digest, version, table_id=ids[0] if ids else None)


def content_of(facts: DayFacts) -> str:
    """The content of a day in one table or in two, as a text that changes with its digests.

    The table versions, which every commit increases, and `DayFacts.days_by` are no part of it.
    """
    if not facts.digest.startswith("["):
        return facts.digest.rpartition(":")[2]
    both = (facts_of_side(facts, number) for number in range(len(_SIDES)))
    return json.dumps([[side.rows, content_of(side), side.table_id] for side in both])


def changes_of_two(known: KnownDays, landed: Mapping[str, LandedDays]) -> LandingChanges:
    """The changes of each table by `compare`, combined: a change of one is a change of both.

    Args:
        known: the observed days of both; `first_id` has the ids of both.
        landed: the present facts of each table, by its name.
    """
    first_ids = (None, None) if known.first_id is None else ids_of_two(known.first_id)
    left, right = (
        compare(
            replace(
                known,
                facts={day: facts_of_side(of_day, number) for day, of_day in known.facts.items()},
                first_id=first_ids[number],
            ),
            landed[name],
        )
        for number, name in enumerate(_SIDES)
    )
    missing = left.missing | right.missing
    changed = (left.changed | right.changed) - missing
    return LandingChanges(
        changed=changed,
        rewritten=(left.rewritten | right.rewritten) - changed - missing,
        missing=missing,
        behind=left.behind | right.behind,
        recreated=(left.recreated | right.recreated) - missing,
    )


def id_of_two(left: str, right: str) -> str:
    """The ids of both tables as one."""
    return json.dumps([left, right])


def ids_of_two(joint_id: str) -> tuple[str | None, str | None]:
    """The ids of both tables from `id_of_two`; None, None: the pipeline then read one table."""
    if not joint_id.startswith("["):
        return None, None
    left, right = json.loads(joint_id)
    return left, right


_NOTHING = DayFacts(0, "", 0)
