"""Drawn decisions of people between scheduled runs: whatever they are, the books balance.

They backfill, also by rules of their own, close, reopen, prepare, revert and edit rows that have
landed. A last scheduled run and one backfill of all windows leave what a replay leaves. What is
drawn follows from the number of a life alone; a failure names it.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from changes import days_of_a_life
from decided import CORRECTIONS, DECISIONS, END, HEALED, LAST, MISHAPS, Life, named
from lakes import Line, a_spec
from replayed import assert_told_by_replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "2"))
"""For each kind of pipeline."""
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
NIGHTS = 9
BY_ORDER = {"firings": True, "source__sequence": "position"}
KINDS: dict[str, dict[str, Any]] = {
    "tumbling": {},
    "long lateness": {"watermark__bound": "2h", "allowed_lateness": "12h"},
    "days": {"window": {"tumbling": "1d"}, "allowed_lateness": "1d"},
    "sliding": {"window": {"sliding": "6h", "every": "2h"}, "watermark__bound": "3h"},
    "cumulative": {"window": {"cumulative": "6h", "step": "2h"}, "watermark__bound": "1h"},
    "sessions": {"window": {"session": "2h"}, "watermark__bound": "5h"},
    "idleness": {"watermark__idleness": "5h", "watermark__bound": "1h"},
    "discovered": {"source__channels": "discovered", "watermark__emit": "per_record"},
    "early": {"trigger": {"continuous": "20m"}, "firings": True},
    "early sliding": {
        "window": {"sliding": "6h", "every": "2h"},
        "watermark__bound": "3h",
        "trigger": {"continuous": "1h", "purging": True},
        "firings": True,
    },
    "counted": {"trigger": {"count": 2}, **BY_ORDER},
    "counted sliding": {
        "window": {"sliding": "6h", "every": "2h"},
        "watermark__bound": "3h",
        "trigger": {"count": 3, "purging": True},
        **BY_ORDER,
    },
    "counted sessions": {
        "window": {"session": "2h"},
        "watermark__bound": "5h",
        "trigger": {"count": 2},
        **BY_ORDER,
    },
    "by a value": {"trigger": {"delta": 5, "of": "amount"}, **BY_ORDER},
    "evicting": {
        "window": {"tumbling": "6h"},
        "trigger": {"continuous": "1h"},
        "evictor": {"time": "2h"},
        **BY_ORDER,
    },
    "the last two": {"evictor": {"count": 2}, "allowed_lateness": "4h", **BY_ORDER},
    "of all time": {"window": {"count": 4, "every": 2}, **BY_ORDER},
    "duplicates": {
        "source__deduplicate": {"columns": ["amount"], "within": "30h of arrival"},
        "allowed_lateness": "20h",
    },
}
EDITS: tuple[dict[str, Any], ...] = (
    {"allowed_lateness": "0s"},
    {"allowed_lateness": "6h"},
    {"watermark__bound": "10m"},
    {"watermark__bound": "3h"},
    {"watermark__idleness": "4h"},
    {"watermark__idleness": ...},
    {"source__channels": ["a"]},
    {"source__channels": ["a", "b"]},
    {"source__valid": "amount < 95"},
    {"source__valid": ...},
    {"aggregates": {"total": "sum(amount)", "mean": "avg(amount)", "most": "max(amount)"}},
)
"""Of the pipeline's file, between two nights; the windows stay."""
DEATHS = (*MISHAPS, *MISHAPS, "maintain")
EDITED = ("tumbling", "days", "sliding", "cumulative", "sessions", "early", "the last two")
LENIENT = {"quality__max_removed_share": 1.0, "quality__gaps": "allow"}


def begun(
    spark: Any, folder: Path, kind: str, chance: random.Random
) -> tuple[Life, dict[str, Any]]:
    """A life of a kind of pipeline on its first day, and the file, which may be edited."""
    rows = days_of_a_life(LAST, chance)
    file = {**KINDS[kind], **LENIENT}
    line = Line(spark, folder, a_spec(**file))
    life = Life(line, lambda rules: line.of(a_spec(**file | named(rules))), chance)
    life.begin(rows)
    return life, file


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("more", [(), CORRECTIONS, MISHAPS], ids=["decided", "corrected", "died"])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_people_decide_the_books_balance_and_a_backfill_of_all_leaves_a_replays_tables(
    spark, tmp_path, kind, more, number
):
    chance = random.Random(f"{kind} {number} decided")
    life, _ = begun(spark, tmp_path, kind, chance)
    for _ in range(NIGHTS):
        life.decide(chance.choice([*DECISIONS, *more, *more]))
        life.assert_balanced()

    life.let_land(life.waiting)
    life.end()
    assert_told_by_replay(life.line, life.landed, END)
    assert not life.line.advance(END).changed, life.story


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("kind", EDITED)
def test_however_its_file_is_edited_meanwhile_a_backfill_of_all_leaves_what_the_last_one_says(
    spark, tmp_path, kind, number
):
    chance = random.Random(f"{kind} {number} edited")
    life, file = begun(spark, tmp_path, kind, chance)
    for _ in range(NIGHTS):
        if chance.random() < 0.4:
            edit = chance.choice(EDITS)
            file |= edit
            life.line = life.line.of(a_spec(**file))
            life.story.append(f"edited: {edit}")
        life.decide(chance.choice([*DECISIONS, "maintain"]))
        life.assert_balanced()

    life.let_land(life.waiting)
    life.end()
    assert_told_by_replay(life.line, life.landed, END)
    assert not life.line.advance(END).changed, life.story


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("more", [CORRECTIONS, DEATHS], ids=["moved", "died"])
@pytest.mark.parametrize("kind", KINDS)
def test_where_no_decision_stands_the_last_scheduled_run_leaves_a_replays_tables(
    spark, tmp_path, kind, more, number
):
    chance = random.Random(f"{kind} {number} {'moved' if more is CORRECTIONS else 'died'}")
    life, _ = begun(spark, tmp_path, kind, chance)
    for _ in range(NIGHTS):
        life.decide(chance.choice([*HEALED, *more]))
        life.assert_balanced()

    life.let_land(life.waiting)
    life.line.advance(END)
    life.assert_balanced()
    assert_told_by_replay(life.line, life.landed, END)
    assert not life.line.advance(END).changed, life.story
