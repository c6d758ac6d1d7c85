"""Drawn decisions of people between scheduled runs: whatever they are, the books balance.

They backfill, also by rules of their own, close, reopen, prepare, revert and edit rows that have
landed. A last scheduled run and one backfill of all windows leave what a replay leaves. What is
drawn follows from the number of a life alone; a failure names it.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from changes import days_of_a_life, of_days
from lakes import Line, a_spec, land
from replayed import assert_books_balance, assert_told_by_replay

from strandline.errors import InputError
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.publish.abandon import drop_run
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.views.status import status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "2"))
"""For each kind of pipeline."""
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
LAST, NIGHTS = 4, 9
BEFORE_ALL, END = "2024-02-28T00:00:00Z", str(LAST + 2)
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
LENIENT = {"quality__max_removed_share": 1.0, "quality__gaps": "allow"}
RULES: Sequence[dict[str, str]] = (
    {"allowed_lateness": "6h"},
    {"bound": "10m"},
    {"allowed_lateness": "0s", "bound": "4h"},
)
"""Rules of a run by hand alone, in place of the file's."""
OFTEN = ("scheduled", "by hand", "by other rules", "revert", "rows land late")
DECISIONS = (*OFTEN, *OFTEN, "scheduled", "again", "close", "prepare", "edit a row")


@dataclass
class Life:
    """A pipeline, its rows that have landed, those that wait, and the next midnight."""

    line: Line
    kind: str
    chance: random.Random
    landed: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    today: int = 2
    story: list[str] = field(default_factory=list)

    def let_land(self, chosen: Sequence[dict[str, Any]]) -> None:
        if chosen:
            land(self.line.folder, chosen, mode="append")
        self.landed += chosen
        self.waiting = [row for row in self.waiting if row not in chosen]

    def arrived(self) -> list[dict[str, Any]]:
        """The waiting rows that should have landed by now."""
        return [row for row in self.waiting if row["arrived_on"].day < self.today]

    def decide(self, what: str) -> None:
        """One night; what is refused by name is refused."""
        self.story.append(what)
        with suppress(InputError):
            self._do(what)

    def _do(self, what: str) -> None:
        line, chance = self.line, self.chance
        if what == "scheduled":
            self.let_land([row for row in self.arrived() if row["position"] % 5])
            line.advance(str(self.today))
            self.today = min(self.today + 1, LAST + 2)
        elif what == "rows land late":
            self.let_land(self.arrived()[:4])
        elif what == "again":
            line.advance(str(max(2, self.today - chance.randrange(1, 3))))
        elif what == "edit a row":
            at = chance.randrange(len(self.landed))
            self.landed[at] = {**self.landed[at], "amount": self.landed[at]["amount"] + 1000}
            land(line.folder, self.landed)
        elif what == "revert":
            done = PipelineState.of(line.ledger).in_force[-2:]
            if done:
                run_id = chance.choice(done).run_id
                revert_run(line.spec, line.lake, run_id, line.spark, reason="drawn")
        elif what == "prepare":
            until = str(max(2, self.today - 1))
            run_id = line.backfill("1", until, as_of=str(self.today), prepare=True).run_id
            if chance.random() < 0.7:
                publish_prepared(line.spec, line.lake, run_id, line.spark)
            else:
                drop_run(line.spec, line.lake, run_id, reason="drawn")
        else:
            self._rebuild(what)

    def _rebuild(self, what: str) -> None:
        """A run by hand over a part of what is processed, or a day more."""
        line, chance = self.line, self.chance
        first = chance.randrange(1, max(2, self.today - 1))
        last = chance.randrange(first + 1, self.today + 1)
        start, end = f"{first} {chance.choice(('00:00', '12:00'))}", f"{last} 06:00"
        more: dict[str, Any] = {"reopen": chance.random() < 0.3, "reason": "drawn"}
        if what == "by other rules":
            rules = chance.choice(RULES)
            named = {{"bound": "watermark__bound"}.get(name, name): rules[name] for name in rules}
            line = line.of(a_spec(**{**KINDS[self.kind], **LENIENT, **named}))
            more["overrides"] = rules
        more["close"] = what == "close"
        as_of = str(self.today - chance.choice((0, 0, 1)))
        line.backfill(start, end, as_of=as_of, **more)

    def assert_balanced(self) -> None:
        """Every book of each run, and the one over the tables themselves."""
        assert_books_balance(self.line)
        if self.line.ledger:
            found = status_of(self.line.spec, self.line.lake, deep=True)["findings"]
            assert [one for one in found if one["severity"] == "critical"] == [], self.story


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_people_decide_the_books_balance_and_a_backfill_of_all_leaves_a_replays_tables(
    spark, tmp_path, kind, number
):
    chance = random.Random(f"{kind} {number} decided")
    rows = days_of_a_life(LAST, chance)
    first = [row for row in of_days(rows, 1) if row["position"] % 3]
    line = Line(spark, tmp_path, a_spec(**{**KINDS[kind], **LENIENT}))
    life = Life(line, kind, chance, first, [row for row in rows if row not in first])
    land(line.folder, first)
    for _ in range(NIGHTS):
        life.decide(chance.choice(DECISIONS))
        life.assert_balanced()

    life.let_land(life.waiting)
    line.advance(END)
    life.assert_balanced()
    line.backfill(BEFORE_ALL, END, as_of=END, reopen=True)
    life.assert_balanced()
    assert_told_by_replay(line, life.landed, END)
    assert not line.advance(END).changed, life.story
