"""What people decide between scheduled runs, drawn by the chance of a life."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lakes import Line, land
from power_cut import died_before_commit
from replayed import assert_books_balance

from strandline.errors import AuditFailedError, InputError, RetryableError
from strandline.lake.ledger.state import PipelineState
from strandline.pipeline.manage.maintain import maintain
from strandline.pipeline.manage.retention import Retention
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.publish.abandon import drop_run
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.views.status import status_of
from strandline.quality.audit.result import Audit, AuditResult
from strandline.spec.join import SIDES

if TYPE_CHECKING:
    import random

Rules = Mapping[str, str]
RULES: Sequence[Rules] = (
    {"allowed_lateness": "6h"},
    {"bound": "10m"},
    {"allowed_lateness": "0s", "bound": "4h"},
)
"""Rules of a run by hand alone, in place of the file's."""
LATENESS_ALONE: Sequence[Rules] = ({"allowed_lateness": "6h"}, {"allowed_lateness": "0s"})
"""The same where a run has no bound of its own."""
OFTEN = ("scheduled", "by hand", "by other rules", "revert", "rows land late")
DECISIONS = (*OFTEN, *OFTEN, "scheduled", "again", "close", "prepare", "edit a row")
HEALED = tuple(one for one in DECISIONS if one not in {"by other rules", "close"})
"""Those of which no scheduled run lets anything stand: the next one leaves a replay's tables."""
MISHAPS = ("dies", "dies", "rejected")
"""Of runs: one dies at one of its commits, one is rejected by its audit."""
CORRECTIONS = ("move a row", "move a row", "another key", "another channel", "lose a row")
"""Of rows that have landed."""
AT_ONCE = Retention(keep_days=0, staging_days=0, report_days=0, ledger_days=0)
"""Upkeep that keeps nothing that it may remove."""
_REJECTED_BY = "expect_quiet"
"""No rule of the pipeline, so its finding does not stand: the one of the rejected run does."""
_REJECTED = "the last scheduled run was rejected"
BEFORE_ALL, LAST = "2024-02-28T00:00:00Z", 4
END = str(LAST + 2)


def named(rules: Rules) -> dict[str, str]:
    """Rules of a run as changes of `lakes.a_spec`."""
    return {{"bound": "watermark__bound"}.get(name, name): said for name, said in rules.items()}


@dataclass
class Person:
    """Who decides on the runs of one pipeline.

    Attributes:
        line: the pipeline.
        by: the pipeline by rules of one run alone.
        chance: of the life.
        rules: those that are drawn of; none: no run has rules of its own.
        today: the next midnight.
        is_cut_off: the last run has died, and none has been since.
        story: what has been decided.
    """

    line: Line
    by: Callable[[Rules], Line]
    chance: random.Random
    rules: Sequence[Rules] = RULES
    today: int = 2
    is_cut_off: bool = False
    story: list[str] = field(default_factory=list)

    def decide(self, what: str) -> None:
        """One night; what is refused by name is refused."""
        self.story.append(f"{self.line.spec.pipeline}: {what}")
        try:
            self._do(what)
        except InputError:
            self.story[-1] += " (refused)"
        except RetryableError as waits:
            # the only runs of a pipeline whose results it reads went by rules of their own
            assert "has not run yet by the present rules of its file" in str(waits)

    def _do(self, what: str) -> None:
        line, chance = self.line, self.chance
        if what == "scheduled":
            line.advance(str(self.today))
        elif what == "dies":
            self._die()
        elif what == "rejected":
            self._reject()
        elif what == "again":
            line.advance(str(max(2, self.today - chance.randrange(1, 3))))
        elif what == "revert":
            done = PipelineState.of(line.ledger).in_force[-2:]
            if done:
                run_id = chance.choice(done).run_id
                revert_run(line.spec, line.lake, run_id, line.spark, reason="drawn")
        elif what == "maintain":
            if line.ledger:
                maintain(line.spec, line.lake, AT_ONCE)
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
        if what == "by other rules" and self.rules:
            rules = chance.choice(self.rules)
            line, more["overrides"] = self.by(rules), rules
        more["close"] = what == "close"
        as_of = str(self.today - chance.choice((0, 0, 1)))
        line.backfill(start, end, as_of=as_of, **more)

    def _die(self) -> None:
        """Only the first commits of a run are made; it may be tried again."""
        what = self.chance.choice(("scheduled", "by hand"))
        before = self.chance.getstate()
        number = self.chance.randrange(1, 12)
        with died_before_commit(number, self.line.folder) as reached:
            self._run_to_its_end(what)
        self.story[-1] += f" before commit {number} of {what}: {[*reached]}"
        if self.chance.random() < 0.5:
            self.story[-1] += ", tried again"
            after = self.chance.getstate()
            self.chance.setstate(before)
            self._run_to_its_end(what)
            self.chance.setstate(after)
        else:
            self.is_cut_off = bool(reached)

    def _run_to_its_end(self, what: str) -> None:
        if what == "scheduled":
            self.line.advance(str(self.today))
        else:
            self._rebuild(what)

    def _reject(self) -> None:
        """The audit of a scheduled run, or of one by hand, fails; somebody may accept it."""
        audited = self.line
        self.line = replace(audited, audited=True)
        try:
            with patch("strandline.quality.audit.run.audit", _unmet):
                self._run_to_its_end(self.chance.choice(("scheduled", "by hand")))
        except AuditFailedError:
            self.story[-1] += " (it was)"
            if self.chance.random() < 0.4:
                self.story[-1] += ", accepted"
                run_id = self.line.ledger[-1].run_id
                lake, spark = self.line.lake, self.line.spark
                publish_prepared(self.line.spec, lake, run_id, spark, accept="drawn")
        finally:
            self.line = audited

    def assert_balanced(self) -> None:
        """Every book of each run, and the one over the tables themselves."""
        if self.is_cut_off:
            self.is_cut_off = False
            return
        assert_books_balance(self.line)
        if self.line.ledger:
            found = status_of(self.line.spec, self.line.lake, deep=True)["findings"]
            critical = [one for one in found if one["severity"] == "critical"]
            assert [one for one in critical if _REJECTED not in one["sentence"]] == [], self.story

    def end(self) -> None:
        """A last scheduled run, and one by hand over all windows."""
        self.line.advance(END)
        self.assert_balanced()
        self.line.backfill(BEFORE_ALL, END, as_of=END, reopen=True)
        self.assert_balanced()


def _unmet(*_: Any, **__: Any) -> Audit:
    """An audit that fails."""
    said = AuditResult(_REJECTED_BY, "windows", "critical", success=False, figures="no")
    return Audit((said,))


@dataclass
class Life(Person):
    """A pipeline over landed rows: those that have landed, and those that wait."""

    landed: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)

    def let_land(self, chosen: Sequence[dict[str, Any]]) -> None:
        if chosen:
            self.land(chosen, mode="append")
        self.landed += chosen
        self.waiting = [row for row in self.waiting if row not in chosen]

    def land(self, rows: Sequence[dict[str, Any]], **more: Any) -> None:
        land(self.line.folder, rows, **more)

    def arrived(self) -> list[dict[str, Any]]:
        """The waiting rows that should have landed by now."""
        return [row for row in self.waiting if row["arrived_on"].day < self.today]

    def _do(self, what: str) -> None:
        if what == "scheduled":
            self.let_land([row for row in self.arrived() if row["position"] % 5])
            super()._do(what)
            self.today = min(self.today + 1, LAST + 2)
        elif what == "rows land late":
            self.let_land(self.arrived()[:4])
        elif what == "edit a row":
            at = self.chance.randrange(len(self.landed))
            self.landed[at] = {**self.landed[at], "amount": self.landed[at]["amount"] + 1000}
            self.land(self.landed)
        elif what in CORRECTIONS:
            self._correct(what)
        else:
            super()._do(what)

    def _correct(self, what: str) -> None:
        """A row lands again as another one, or is accepted as lost."""
        at = self.chance.randrange(len(self.landed))
        row = self.landed.pop(at)
        if what == "move a row":
            by = timedelta(minutes=self.chance.choice((-2000, -300, -40, 40, 300, 2000)))
            self.landed.insert(at, row | {"happened_at": row["happened_at"] + by})
        elif what == "another key":
            device = {"d1": "d2", "d2": "d1"}[row["device"]]
            self.landed.insert(at, row | {"device": device})
        elif what == "another channel":
            source = {"a": "b", "b": "a"}[row["source"]]
            self.landed.insert(at, row | {"source": source})
        self.land(self.landed)
        if what == "lose a row":
            until = str(max(self.today, row["arrived_on"].day + 1))
            self.line.advance(until, accept_loss="drawn", allow_removals=True)

    def begin(self, rows: Sequence[dict[str, Any]]) -> None:
        """Some rows of the first day have landed, all others wait."""
        first = [row for row in rows if row["arrived_on"].day == 1 and row["position"] % 3]
        self.land(first)
        self.landed = first
        self.waiting = [row for row in rows if row not in first]


def by_side(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    rows = list(rows)
    return {name: [row for row in rows if row["side"] == name] for name in SIDES}


class LifeOfTwo(Life):
    """Its rows are of either landing table, as their `side` says."""

    def land(self, rows: Sequence[dict[str, Any]], **more: Any) -> None:
        for name, chosen in by_side(rows).items():
            super().land(chosen, table=f"landing/{name}", **more)
