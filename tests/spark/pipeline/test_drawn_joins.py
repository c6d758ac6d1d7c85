"""Drawn decisions of people on pipelines of two sources, between scheduled runs.

Whatever they decide, the books balance, and a last scheduled run and one backfill of all leave
what the reference tells, and what one run leaves on a lake where all has landed at once. Where no
decision stands, the last scheduled run alone does. What is drawn follows from the number of a life
alone; a failure names it.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from changes import days_of_a_life
from decided import (
    CORRECTIONS,
    DECISIONS,
    END,
    HEALED,
    LAST,
    LATENESS_ALONE,
    MISHAPS,
    LifeOfTwo,
    by_side,
)
from joined import COGROUP, JOIN, PAIRED, Join

from strandline.spec import parse_spec
from strandline.spec.join import SIDES

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "1"))
"""For each kind of join."""
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
NIGHTS = 8
SLIDING = {"window": {"sliding": "6h", "every": "2h"}}
KINDS: dict[str, dict[str, Any]] = {
    "pairs": JOIN | {"join": {"interval": ["-3h", "90m"]}},
    "pairs of later ones": JOIN | {"join": {"interval": ["1h", "5h"], "lower_inclusive": False}},
    "cogroup": COGROUP,
    "cogroup, patient": COGROUP | {"window": {"tumbling": "6h"}, "allowed_lateness": "12h"},
    "cogroup, sliding": COGROUP | SLIDING,
    "cogroup, sessions": COGROUP | {"window": {"session": "2h"}, "firings": True},
    "window join": PAIRED | {"window": {"tumbling": "6h"}, "firings": True},
    "window join, sliding": PAIRED | SLIDING | {"firings": True},
    "window join, sessions": PAIRED | {"window": {"session": "2h"}},
    "window join, early": PAIRED
    | {"window": {"tumbling": "6h"}, "trigger": {"continuous": "1h"}, "firings": True},
}
MORE = ("decided", "corrected", "died")
IDLE = (("1h", "2h"), (None, None), (None, "5h"))
"""After what either side falls idle."""


def content_of(kind: str, chance: random.Random) -> dict[str, Any]:
    """The file of a kind, with watermarks as drawn."""
    idle = chance.choice(IDLE)
    sides = {
        name: side
        | {
            "watermark": {
                "strategy": "bounded_out_of_orderness",
                "bound": chance.choice(("30m", "1h", "3h")),
                **({"idleness": idleness} if idleness else {}),
            }
        }
        for (name, side), idleness in zip(JOIN["sources"].items(), idle, strict=True)
    }
    quality = {"max_removed_share": 1.0, "gaps": "allow"}
    return KINDS[kind] | {"sources": sides, "quality": quality}


def tables_of(join: Join) -> list[str]:
    """Those that a pipeline of two sources publishes."""
    results, pairs = join.line.results, "window" not in join.content
    results = [name for name in results if not (pairs and name == "windows")]
    return [*results, "pairs"] if pairs or join.line.spec.has_pairs_of_windows else results


def assert_told(join: Join) -> None:
    """What is published is what the reference tells."""
    pairs = "window" not in join.content
    told, found = (
        (join.told(END), join.found())
        if pairs
        else (join.told_of_windows(END), join.found_of_windows())
    )
    for name, expected in told.items():
        assert found[name] == expected, name


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("more", [(), CORRECTIONS, (*MISHAPS, *MISHAPS, "maintain")], ids=MORE)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_people_decide_on_two_sources_a_backfill_of_all_leaves_what_one_run_leaves(
    spark, tmp_path, kind, more, number
):
    chance = random.Random(f"{kind} {number} joined")
    content = content_of(kind, chance)
    rows = days_of_a_life(LAST, chance, of_a_day=16)
    rows = [row | {"side": chance.choice(SIDES)} for row in rows]
    join = Join(spark, tmp_path / "lake", content, sides={name: [] for name in SIDES})
    line, windows = join.line, "window" in content
    life = LifeOfTwo(
        line,
        lambda rules: line.of(parse_spec(content | rules, origin="near.yaml")),
        chance,
        LATENESS_ALONE if windows else (),
    )
    life.begin(rows)
    decided = chance.random() < 0.5
    decisions = DECISIONS if decided else HEALED
    decisions = (*decisions, *more)
    for _ in range(NIGHTS):
        life.decide(chance.choice(decisions))
        life.assert_balanced()

    life.let_land(life.waiting)
    join.sides = by_side(life.landed)
    anew = Join(spark, tmp_path / "anew", content, sides=join.sides)
    anew.line.advance(END)
    assert_told(anew)
    if decided:
        life.end()
    else:
        line.advance(END)
        life.assert_balanced()
    assert_told(join)
    for name in tables_of(join):
        assert line.rows(name) == anew.line.rows(name), (name, life.story)
    assert not line.advance(END).changed, life.story
