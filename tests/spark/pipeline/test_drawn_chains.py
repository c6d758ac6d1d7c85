"""Drawn decisions of people on two pipelines, the second over the results of the first.

Whatever they decide, on either, the books of both balance, and a last scheduled run and one
backfill of all leave what a replay leaves; where no decision stands, that scheduled run alone does.
Where nobody decides on the second, each of its scheduled runs leaves what it would leave as the
first one of all. What is drawn follows from the number of a life alone; a failure names it.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from chained import Chain, assert_told, found
from changes import days_of_a_life
from decided import (
    CORRECTIONS,
    DECISIONS,
    END,
    HEALED,
    LAST,
    LATENESS_ALONE,
    MISHAPS,
    Life,
    Person,
    named,
)
from lakes import a_spec
from replayed import assert_told_by_replay

from strandline.errors import InputError, RetryableError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "1"))
"""For each kind of chain."""
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
NIGHTS = 8
LENIENT = {"quality__max_removed_share": 1.0, "quality__gaps": "allow"}
HOURS: dict[str, dict[str, Any]] = {
    "hours": {},
    "sliding": {"window": {"sliding": "6h", "every": "2h"}, "watermark__bound": "3h"},
    "sessions": {"window": {"session": "2h"}, "watermark__bound": "5h"},
    "early": {"trigger": {"continuous": "20m"}},
}
"""The first windows."""
DAYS: dict[str, dict[str, Any]] = {
    "halves": {"window": {"tumbling": "12h", "offset": "15m"}},
    "patient": {"window": {"tumbling": "6h"}, "allowed_lateness": "6h"},
    "sliding": {"window": {"sliding": "12h", "every": "4h"}, "allowed_lateness": "1h"},
    "sessions": {"window": {"session": "3h"}, "allowed_lateness": "2h"},
    "every firing": {
        "source": {"pipeline": "meter", "table": "firings", "key": ["device"]},
        "window": {"tumbling": "6h"},
        "allowed_lateness": "3h",
    },
}
"""The second ones, over the results of the first."""
KINDS = [f"{one} - {two}" for one in HOURS for two in DAYS]
MORE = ("decided", "corrected", "died")
OF_THE_FIRST = tuple(one for one in DECISIONS if one != "scheduled")
OF_THE_SECOND = tuple(one for one in DECISIONS if one not in {"rows land late", "edit a row"})
HEALED_OF_THE_SECOND = tuple(one for one in OF_THE_SECOND if one in HEALED)


class Lives:
    """Those of the two pipelines of a chain, of one story."""

    def __init__(self, spark: Any, folder: Path, kind: str, number: int) -> None:
        one, _, two = kind.partition(" - ")
        self.chance = random.Random(f"{kind} {number} chained")
        rows = days_of_a_life(LAST, self.chance)
        file = {**HOURS[one], **LENIENT, "firings": True}
        self.later = {**DAYS[two], "firings": True}
        self.later["quality"] = {"max_removed_share": 1.0, "gaps": "allow"}
        hours = a_spec(**file)
        self.chain = Chain(spark, folder, hours, **self.later)
        self.first = Life(
            self.chain.hours,
            lambda rules: self.first.line.of(a_spec(**file | named(rules))),
            self.chance,
        )
        self.second = Person(
            self.chain.days,
            lambda rules: Chain(spark, folder, hours, **self.later | rules).days,
            self.chance,
            LATENESS_ALONE,
            story=self.first.story,
        )
        self.first.begin(rows)

    def night(self, decisions: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
        """The first pipeline's, of which more may befall it, and then the second one's."""
        scheduled = self.chance.random() < (0.5 if more else 0.7)  # else its days hardly pass
        others = (*OF_THE_FIRST, *more, *more)
        self.first.decide("scheduled" if scheduled else self.chance.choice(others))
        self.first.assert_balanced()
        self.second.today = max(2, self.first.today - 1)
        for what in decisions:
            self.second.decide(what)
            self.second.assert_balanced()

    def end(self) -> None:
        """All has landed, and the first pipeline has published what a replay publishes."""
        self.first.let_land(self.first.waiting)
        self.first.end()
        assert_told_by_replay(self.chain.hours, self.first.landed, END)
        self.second.line.advance(END)
        self.second.assert_balanced()

    def assert_as_if_anew(self, folder: Path) -> None:
        """The second pipeline's tables are those of its first run over the results as they are."""
        mine = self.second.line
        if not mine.ledger:
            return
        shutil.rmtree(folder, ignore_errors=True)
        anew = self.chain.of(mine.copy(folder))
        shutil.rmtree(anew.days.root)
        with suppress(InputError, RetryableError):
            anew.days.advance(str(self.second.today))
            for name, rows in found(anew).items():
                assert found(self.chain)[name] == rows, (name, self.first.story)


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("more", [(), CORRECTIONS, MISHAPS], ids=MORE)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_on_the_first_the_seconds_scheduled_runs_follow(
    spark, tmp_path, kind, more, number
):
    lives = Lives(spark, tmp_path / "lake", kind, number)
    for _ in range(NIGHTS):
        if lives.chance.random() < 0.6:
            lives.night(("scheduled",), more)
            lives.assert_as_if_anew(tmp_path / "anew")
        else:
            lives.night((), more)
    lives.end()
    assert_told(lives.chain, lives.first.landed, END)
    assert not lives.chain.days.advance(END).changed, lives.first.story


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_on_both_a_backfill_of_all_of_each_leaves_a_replays_tables(
    spark, tmp_path, kind, number
):
    lives = Lives(spark, tmp_path / "lake", kind, number)
    decisions = OF_THE_SECOND if lives.chance.random() < 0.5 else HEALED_OF_THE_SECOND
    for _ in range(NIGHTS):
        lives.night((lives.chance.choice(decisions),))
    lives.end()
    if decisions == OF_THE_SECOND:
        lives.second.end()
    assert_told(lives.chain, lives.first.landed, END)
    assert not lives.chain.days.advance(END).changed, lives.first.story
