"""Drawn decisions on longer rows of pipelines: chains of three, and chains over two sources.

Whatever is decided on any of them, the books balance. Where decisions are those on the first alone,
each scheduled run of a later one leaves what it would leave as the first one of all, and the last
runs leave what one run of each leaves on a lake where all has landed at once. What is drawn follows
from the number of a life alone; a failure names it.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from chained import DAYS
from changes import days_of_a_life
from decided import (
    DECISIONS,
    END,
    HEALED,
    LAST,
    LATENESS_ALONE,
    Life,
    LifeOfTwo,
    Person,
    by_side,
    named,
)
from joined import COGROUP, PAIRED
from lakes import Line, a_spec, land

from strandline.errors import InputError, RetryableError
from strandline.spec import parse_any, parse_spec
from strandline.spec.chained import ChainedSpec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from strandline.spec.pipeline import PipelineSpec

pytestmark = [pytest.mark.spark, pytest.mark.deep]

LIVES = int(os.environ.get("LIVES", "1"))
"""For each kind of row."""
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
NIGHTS = 8
LENIENT: dict[str, Any] = {"max_removed_share": 1.0, "gaps": "allow"}
TOTAL = {"aggregates": {"total": "sum(total)", "of": "count(*)"}}
OURS = {"aggregates": {"total": "sum(ours)", "of": "count(*)"}}
SIX = {"window": {"tumbling": "6h"}, "allowed_lateness": "1h"}
DAY = {"window": {"tumbling": "1d"}, "allowed_lateness": "2h"}
SLIDING = {"window": {"sliding": "12h", "every": "4h"}, "allowed_lateness": "1h"}
SESSIONS = {"window": {"session": "3h"}, "allowed_lateness": "2h"}
FIRINGS = {"source": {"pipeline": "before", "table": "firings", "key": ["device"]}}

Content = dict[str, Any]
KINDS: dict[str, tuple[Content | None, Sequence[Content]]] = {
    "three": (None, [TOTAL | SIX, TOTAL | DAY]),
    "three, sliding between": (None, [TOTAL | SLIDING, TOTAL | DAY]),
    "three, every firing": (None, [TOTAL | SIX | FIRINGS, TOTAL | DAY | FIRINGS]),
    "three, sessions at the end": (None, [TOTAL | SIX, TOTAL | SESSIONS]),
    "three, sessions between": (None, [TOTAL | SESSIONS, TOTAL | SIX]),
    "over a cogroup": (COGROUP, [OURS | SIX]),
    "over a cogroup, sliding": (COGROUP, [OURS | SLIDING | FIRINGS]),
    "over a cogroup of sessions": (COGROUP | {"window": {"session": "2h"}}, [OURS | SIX]),
    "over a window join": (PAIRED | {"window": {"tumbling": "2h"}}, [OURS | SLIDING]),
    "over a cogroup, three": (COGROUP, [OURS | SIX, TOTAL | DAY]),
}
"""The file of the first one (None: hours of one landing table), and of those after it."""
OF_THE_FIRST = (*(one for one in DECISIONS if one != "scheduled"), "maintain")
OF_LATER = (*(one for one in DECISIONS if one not in {"rows land late", "edit a row"}), "maintain")
FOLLOWING = (*("scheduled",) * 6, *(None,) * 2, "maintain")


class Row:
    """A row of pipelines over one lake, and who decides on each."""

    def __init__(self, spark: Any, folder: Path, kind: str, number: int) -> None:
        self.chance = random.Random(f"{kind} {number} in a row")
        first, later = KINDS[kind]
        self.of_two = first is not None
        common = {"firings": True, "quality": LENIENT, "spark": DAYS["spark"]}
        contents = [first | common] if first else []
        names = [first["pipeline"] if first else "meter"]
        for place, content in enumerate(later):
            name, source = f"later{place}", content.get("source", DAYS["source"])
            source = {**source, "pipeline": names[-1]}
            contents.append(common | content | {"pipeline": name, "source": source})
            names.append(name)
        self.hours = a_spec(firings=True, **{f"quality__{k}": v for k, v in LENIENT.items()})
        self.contents = contents
        self.spark, self.folder = spark, folder
        specs = self.specs()
        self.lines = [Line(spark, folder, spec) for spec in specs]
        story: list[str] = []
        kind_of_life = LifeOfTwo if self.of_two else Life
        self.first = kind_of_life(
            self.lines[0],
            lambda rules: self.lines[0].of(self.first_by(rules)),
            self.chance,
            *([LATENESS_ALONE] if self.of_two else []),
            story=story,
        )
        self.later = [
            Person(line, self.by(place), self.chance, LATENESS_ALONE, story=story)
            for place, line in enumerate(self.lines[1:], 1)
        ]

    def first_by(self, rules: Any) -> PipelineSpec:
        if self.of_two:
            return parse_spec(self.contents[0] | dict(rules), origin="row.yaml")
        return a_spec(
            firings=True, **{f"quality__{k}": v for k, v in LENIENT.items()} | named(rules)
        )

    def by(self, place: int) -> Any:
        return lambda rules: self.lines[place].of(self.specs(place, rules)[place])

    def specs(self, at: int = -1, rules: Any = None) -> list[PipelineSpec]:
        """The pipelines in their order; the one at a place by rules of its own."""
        found: list[PipelineSpec] = [] if self.of_two else [self.hours]
        for content in self.contents:
            own = content | dict(rules) if rules and len(found) == at else content
            if not found:
                found.append(parse_spec(own, origin="row.yaml"))
                continue
            spec = parse_any(own, origin="row.yaml")
            assert isinstance(spec, ChainedSpec)
            found.append(spec.over(found[-1]))
        return found

    def night(self, decide: Sequence[str | None]) -> None:
        """The first one's, then one decision for each later pipeline (None: it does not run)."""
        scheduled = self.chance.random() < 0.7
        self.first.decide("scheduled" if scheduled else self.chance.choice(OF_THE_FIRST))
        self.first.assert_balanced()
        for person, what in zip(self.later, decide, strict=True):
            person.today = max(2, self.first.today - 1)
            if what is not None:
                person.decide(what)
                person.assert_balanced()

    def assert_as_if_anew(self, folder: Path) -> None:
        """Each later pipeline's tables are those of its first run over the results as they are."""
        for person in self.later:
            mine = person.line
            if not mine.ledger:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            anew = mine.copy(folder)
            shutil.rmtree(anew.root)
            with suppress(InputError, RetryableError):
                anew.advance(str(person.today))
                self.assert_same(mine, anew)

    def assert_same(self, mine: Line, anew: Line) -> None:
        pairs = ["pairs"] if mine.spec.has_pairs_of_windows else []
        for name in [*mine.results, *pairs]:
            mine_, theirs = mine.rows(name), anew.rows(name)
            assert mine_ == theirs, (name, mine.spec.pipeline, self.first.story)

    def end(self, decided: bool) -> None:
        self.first.let_land(self.first.waiting)
        self.first.end()
        for person in self.later:
            if decided:
                person.end()
            else:
                person.line.advance(END)
                person.assert_balanced()

    def assert_as_one_run_each(self, folder: Path) -> None:
        """The tables are those of one run each on a lake where all has landed at once."""
        if self.of_two:
            for name, rows in by_side(self.first.landed).items():
                land(folder, rows, table=f"landing/{name}")
        else:
            land(folder, self.first.landed)
        for line in self.lines:
            anew = Line(self.spark, folder, line.spec)
            anew.advance(END)
            self.assert_same(line, anew)
        for line in self.lines:
            assert not line.advance(END).changed, self.first.story


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_on_the_first_of_a_row_the_others_scheduled_runs_follow(
    spark, tmp_path, kind, number
):
    row = Row(spark, tmp_path / "lake", kind, number)
    row.first.begin(rows_of(row))
    for _ in range(NIGHTS):
        run = [row.chance.choice(FOLLOWING) for _ in row.later]
        row.night(run)
        if {*run} == {"scheduled"}:
            row.assert_as_if_anew(tmp_path / "anew")
    row.end(decided=False)
    row.assert_as_one_run_each(tmp_path / "whole")


@pytest.mark.parametrize("number", range(FIRST, FIRST + LIVES))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_on_all_of_a_row_a_backfill_of_all_of_each_leaves_what_one_run_leaves(
    spark, tmp_path, kind, number
):
    row = Row(spark, tmp_path / "lake", kind, number)
    row.first.begin(rows_of(row))
    healed = row.chance.random() < 0.5
    decisions = [one for one in OF_LATER if not healed or one in {*HEALED, "maintain"}]
    for _ in range(NIGHTS):
        row.night([row.chance.choice(decisions) for _ in row.later])
    row.end(decided=not healed)
    row.assert_as_one_run_each(tmp_path / "whole")


def rows_of(row: Row) -> list[dict[str, Any]]:
    rows = days_of_a_life(LAST, row.chance, of_a_day=16 if row.of_two else 9)
    chance = row.chance
    return [one | {"side": chance.choice(("left", "right"))} if row.of_two else one for one in rows]
