"""A long life, a day at a time: days come late and grow, rules are edited, runs die, days go.

At its end the last months are what a replay of everything says, and nothing has piled up. What is
drawn follows from a seed. `make test-years` lives a year (DAYS=365), `make test-deep` a month.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from changes import landing_of
from killed import Killed
from lakes import Line, a_spec, instant, land, ms
from replayed import assert_books_balance, published, told_by_replay

from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish import apply_diff
from strandline.pipeline.manage.maintain import maintain, upkeep_of
from strandline.pipeline.manage.retention import Retention
from strandline.pipeline.request.request import Request
from strandline.pipeline.views.status import status_of

pytestmark = [pytest.mark.spark, pytest.mark.deep]

DAYS = int(os.environ.get("DAYS", "30"))
SEED = int(os.environ.get("SEED", "1"))
FIRST = date(2023, 1, 1)
RETAINED = 40
"""Days of the landing table that are kept."""
UNEDITED = min(60, DAYS // 2)
"""So many of the last days live under the same rules, and are held against the replay."""
OF_A_DAY = 10
LAGS = ((2, 40, 300, 1500), (76, 14, 8, 2))
"""By how many minutes at most records arrive behind their event time, and how often."""
EDITS = [
    {"watermark__bound": "45m"},
    {"allowed_lateness": "2h"},
    {"watermark__bound": "30m", "allowed_lateness": "1h"},
]
NOTHING_KEPT = Retention(keep_days=0, staging_days=0, report_days=0, ledger_days=0)
"""Of an upkeep that leaves what is published, what is unfinished, and no more."""
NIGHTS = ("run",) * 14 + ("skip", "rebuild", "audit", "publish", "publishing", "by hand")
"""What a night brings: a run, none, one that dies at a step or amid its commits, one by hand."""


@dataclass
class Life:
    """A pipeline's life, and all that ever landed."""

    line: Line
    chance: random.Random
    waiting: list[dict[str, Any]] = field(default_factory=list)
    landed: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0

    def day(self, number: int) -> None:
        """A day passes: its rows land, most of them in time; the night may bring a run."""
        today = FIRST + timedelta(days=number)
        self.waiting += self._rows_of(today)
        due = [row for row in self.waiting if row["lands"] <= number]
        self.waiting = [row for row in self.waiting if row["lands"] > number]
        self._land(due)
        edits_end = DAYS - UNEDITED
        if number and number % 25 == 0 and number < edits_end:
            self.line = self.line.of(a_life_spec(**EDITS[number // 25 % len(EDITS)]))
        if number % 7 == 6 and number > RETAINED:
            oldest = today - timedelta(days=RETAINED)
            landing_of(self.line).delete(f"arrived_on < '{oldest}'")
        self._night(self.chance.choice(NIGHTS), today + timedelta(days=1))
        if number % 30 == 29:
            self.upkeep()

    def upkeep(self) -> dict[str, Any]:
        """Files are put together, and all that may go does: even of a run that has just died."""
        return maintain(self.line.spec, self.line.lake, NOTHING_KEPT)

    def end(self) -> str:
        """All that is still on its way lands, and a last run follows: up to which midnight."""
        self._land(self.waiting)
        last = str(FIRST + timedelta(days=DAYS))
        self.line.advance(last)
        return last

    def _rows_of(self, today: date) -> list[dict[str, Any]]:
        midnight = datetime(today.year, today.month, today.day, tzinfo=UTC)
        number, rows = (today - FIRST).days, []
        late_day = self.chance.choice((0,) * 9 + (2,))
        for _ in range(OF_A_DAY):
            arrived = midnight + timedelta(seconds=self.chance.randrange(24 * 3600))
            lag = self.chance.randrange(self.chance.choices(*LAGS)[0])
            grows = self.chance.choice((0,) * 12 + (1, 3))
            self.number += 1
            rows.append(
                {
                    "arrived_at": arrived,
                    "happened_at": arrived - timedelta(minutes=lag),
                    "source": self.chance.choice("ab"),
                    "device": self.chance.choice(("d1", "d2", None)) if lag > 30 else "d1",
                    "amount": self.chance.randrange(90),
                    "position": self.number,
                    "arrived_on": today,
                    "lands": number + max(late_day, grows),
                }
            )
        return rows

    def _land(self, due: list[dict[str, Any]]) -> None:
        if due:
            rows = [{k: v for k, v in row.items() if k != "lands"} for row in due]
            land(self.line.folder, rows, mode="append")
            self.landed += rows

    def _night(self, what: str, up_to: date) -> None:
        request = Request("advance", to_ms=instant(str(up_to)))
        if what == "run":
            self.line.run(request)
        elif what == "by hand":
            start = up_to - timedelta(days=self.chance.randrange(2, 9))
            self.line.backfill(str(start), str(up_to), as_of=str(up_to), allow_removals=True)
        elif what == "publishing":
            with suppress(Killed), patch.object(apply_diff, "apply", self._dying()):
                self.line.run(request)
        elif what != "skip":
            with suppress(Killed):
                self.line.run(request, dies_at(what))

    def _dying(self) -> Any:
        """A publish that dies between two commits."""
        commits, publish = self.chance.randrange(3), apply_diff.apply

        def publish_or_die(*arguments: Any, **named: Any) -> None:
            nonlocal commits
            if commits == 0:
                raise Killed
            commits -= 1
            publish(*arguments, **named)

        return publish_or_die


def dies_at(step: str) -> Any:
    def progress(begins: str) -> None:
        if begins == step:
            raise Killed

    return progress


def a_life_spec(**edits: Any) -> Any:
    return a_spec(source__start=str(FIRST), quality__max_removed_share=1.0, **edits)


def test_after_a_long_life_the_last_months_are_a_replays_and_nothing_has_piled_up(spark, tmp_path):
    life = Life(Line(spark, tmp_path, a_life_spec()), random.Random(SEED))
    for number in range(DAYS):
        life.day(number)
    last = life.end()
    line = life.line

    since_ms = ms(datetime(2023, 1, 1, tzinfo=UTC) + timedelta(days=DAYS - UNEDITED + 3))
    expected, found = told_by_replay(line.spec, life.landed, last), published(line)
    for name in ("windows", "completeness"):
        assert starting_from(found[name], since_ms) == starting_from(expected[name], since_ms), name
        assert len(starting_from(found[name], since_ms)) > UNEDITED
    assert_books_balance(line)
    assert PipelineState.of(line.ledger).days_to_recompute == []
    assert status_of(line.spec, line.lake)["open_behind_watermark"] == 0

    kept = life.upkeep()["tables"]
    assert [name for name in line.files() if "meter/_staging/" in name] == []
    for name, sizes in kept.items():
        assert sizes["in_use"]["files"] <= 2 * (DAYS + 5), name
        assert sizes["stored"]["files"] <= sizes["in_use"]["files"] + 10, name
    assert upkeep_of(line.spec, line.lake, NOTHING_KEPT)["ledger"] == 0
    assert len(line.ledger) <= 3 * DAYS


def starting_from(rows: list[Any], since_ms: int) -> list[Any]:
    return [row for row in rows if row[0][0] >= since_ms]
