"""Drawn lives of pipelines: whatever lands when, and whatever dies, the last run leaves a replay's.

The stories are those of `tests/unit/pipeline/test_memory_laws.py`, on real tables. What is drawn
follows from the number of a life alone; a failure names it.
"""

from __future__ import annotations

import os
import random
from typing import Any
from unittest.mock import patch

import pytest
from changes import days_of_a_life, of_days, owed, some_days
from killed import Killed
from lakes import Line, a_spec, instant, land
from replayed import assert_books_balance, assert_same_tables, assert_told_by_replay

from strandline.errors import AuditFailedError
from strandline.pipeline.request.request import Request
from strandline.pipeline.views.status import status_of
from strandline.quality.audit.result import Audit, AuditResult

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "2"))
"""For each kind of pipeline."""
LAST = 4
KINDS: dict[str, dict[str, Any]] = {
    "tumbling": {},
    "sliding": {"window": {"sliding": "6h", "every": "2h"}, "watermark__bound": "3h"},
    "sessions": {"window": {"session": "2h"}, "watermark__bound": "5h"},
    "discovered": {"source__channels": "discovered", "watermark__emit": "per_record"},
    "idleness": {"watermark__idleness": "5h", "watermark__bound": "1h"},
    "duplicates": {
        "source__deduplicate": {"columns": ["amount"], "within": "30h of arrival"},
        "allowed_lateness": "20h",
    },
}
HAPPENINGS = ("advance", "advance", "skip", "rebuild", "audit", "publish", "reject", "by hand")
"""What a night brings: a run, none, one that dies at a step, is rejected, or comes by hand."""


def a_story(chance: random.Random) -> list[tuple[str, int]]:
    """What happens night by night: days land whole, in parts or late, the first one first."""
    story = [("land most of", 1)]
    late = {day: chance.choice((0, 0, 1, 2)) for day in range(2, LAST + 1)}
    grows = {day: chance.choice((0, 1, 1, 2)) for day in range(1, LAST + 1)}
    for night in range(1, LAST + 1):
        lands = [day for day in late if day + late[day] == night]
        story += [("land most of", day) for day in lands]
        story += [
            ("land the rest of", day)
            for day in range(1, LAST + 1)
            if day + late.get(day, 0) + grows[day] == night
        ]
        story.append((chance.choice(HAPPENINGS), night + 1))
    return story


def live(line: Line, rows: list[dict[str, Any]], story: list[tuple[str, int]]) -> None:
    """Live a story; all that has not landed by its end lands then, and a last run follows."""
    landed: set[int] = set()

    def let_land(chosen: list[dict[str, Any]]) -> None:
        new = [row for row in chosen if row["position"] not in landed]
        if new:
            land(line.folder, new, mode="append")
        landed.update(row["position"] for row in new)

    for what, day in story:
        if what == "land most of":
            let_land([row for row in of_days(rows, day) if row["position"] % 3])
        elif what == "land the rest of":
            let_land(of_days(rows, day))
        elif what != "skip":
            happen(line, what, day)
    let_land(rows)
    line.advance(str(LAST + 2))


def happen(line: Line, what: str, day: int) -> None:
    """A run up to a day, as it goes."""
    request = Request("advance", to_ms=instant(str(day)))
    if what == "by hand":
        line.backfill(str(max(1, day - 2)), f"{day - 1} 12:00", as_of=str(day))
    elif what == "reject":
        with patch("lakes.books_alone", a_bad_audit), pytest.raises(AuditFailedError):
            line.run(request)
    elif what == "advance":
        line.run(request)
    else:

        def dies(step: str) -> None:
            if step == what:
                raise Killed

        with pytest.raises(Killed):
            line.run(request, dies)


def a_bad_audit(*_: Any, **__: Any) -> Audit:
    return Audit((AuditResult("expect_better", "windows", "critical", False, "not good"),))


@pytest.mark.parametrize("number", range(LIVES))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_lands_when_and_whichever_runs_die_the_last_leaves_what_one_go_leaves(
    spark, tmp_path, kind, number
):
    chance = random.Random(f"{kind} {number}")
    rows = days_of_a_life(LAST, chance)
    # whether a range may shrink by what lands late is asked elsewhere
    line = Line(spark, tmp_path, a_spec(**KINDS[kind], quality__max_removed_share=1.0))
    live(line, rows, a_story(chance))
    assert_told_by_replay(line, rows, str(LAST + 2))
    assert_books_balance(line)
    assert owed(line) == []
    assert status_of(line.spec, line.lake)["open_behind_watermark"] == 0


@pytest.mark.parametrize("kind", ["tumbling", "sessions"])
def test_what_a_close_has_closed_stays_closed_whatever_lands_later(spark, tmp_path, kind):
    """And all is as if everything had landed before it, and one run had followed it."""
    chance = random.Random(f"{kind} closed")
    rows = some_days(LAST, seed=chance.randrange(2**30), of_a_day=9)
    line, one_go = (Line(spark, tmp_path / name, a_spec(**KINDS[kind])) for name in "ab")

    land(line.folder, [row for row in of_days(rows, 1, 2) if row["position"] % 3])
    line.advance("3")
    line.backfill("1", "3", as_of="3", close=True)
    land(
        line.folder, [row for row in of_days(rows, 1, 2) if not row["position"] % 3], mode="append"
    )
    land(line.folder, of_days(rows, 4), mode="append")
    line.advance("5")
    land(line.folder, of_days(rows, 3), mode="append")
    line.advance("5")

    land(one_go.folder, rows)
    one_go.backfill("1", "3", as_of="3", close=True)
    one_go.advance("5")
    assert_same_tables(line, one_go)
    assert_books_balance(line)
