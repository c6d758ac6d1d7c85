"""The findings of audits that stand: not mended, evaluated again or acknowledged since."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from strandline.engine.position.grid import Grid
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import (
    EVERYTHING,
    TimeRange,
    merged,
    parts_outside,
    start_text_of,
    text_of,
)
from strandline.pipeline.views.audited_data import AuditedData
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.findings.check import (
    EXPECTATIONS,
    OF_THE_RANGE,
    Finding,
    findings_in,
    in_order,
    rules_in,
)

_NOT_EVALUATED = ("dropped", "dropping")
"""Steps after which the findings of a run are void."""
_OF_A_HORIZON = ("fresh_within", "silent_after", "watermark_ahead", "events_of_1970")
"""Rules about all that has arrived by a run's horizon, whatever the range of the run."""
_OF_A_RUN = (*_OF_A_HORIZON, "max_removed_share")
"""Rules about a run or its horizon, which say nothing of what earlier runs have published."""
_HAS_A_VERDICT = ("published", "rejected")
"""The last steps of runs whose audit is whole; a killed run may have evaluated a part of it."""
_IN_FULL = 3
"""The number of runs whose findings of one name are listed; of older runs only their number is."""


def findings_of_audits(read: ReadPipeline) -> list[Finding]:
    """The findings of runs' audits that stand, the gravest first, then the newest first.

    - A finding of a scheduled run about its arrival days, or about gaps, stands until its rule
      holds for the data of now.
    - A finding of another rule about published data, such as an expectation on rows, or of a run by
      hand stands until runs have evaluated all its windows again.
    - Of runs that have not published, and of rules about a run or its horizon, only the findings of
      the last scheduled run, and of later runs by hand, stand.
    - An acknowledged finding does not stand any more.
    """
    of_pipeline = _InForce(read.spec, read.store, read.state)
    place = {audit.run_id: number for number, audit in enumerate(of_pipeline.audits)}
    found = [*of_pipeline.of_gaps(), *of_pipeline.of_runs()]
    newest_first = sorted(found, key=lambda one: place[one.run_id or ""], reverse=True)
    by_name: dict[str, list[Finding]] = {}
    for one in newest_first:
        by_name.setdefault(one.name, []).append(one)
    shown = [one for of_name in by_name.values() for one in _bounded(of_name, read.state)]
    return in_order(sorted(shown, key=lambda one: place[one.run_id or ""], reverse=True))


def _bounded(found: Sequence[Finding], state: PipelineState) -> Iterator[Finding]:
    """The findings of a name by its newest runs, and one about all older runs.

    Args:
        found: the findings, the newest first.
        state: the pipeline's state, by its ledger.
    """
    runs = [*dict.fromkeys(one.run_id or "" for one in found)]
    newest, older = runs[:_IN_FULL], runs[_IN_FULL:]
    if len(older) <= 1:
        yield from found
        return
    yield from (one for one in found if one.run_id in newest)
    rest = in_order(one for one in found if one.run_id in older)
    ranges = [within for run in older if (within := state.runs[run][-1].range) is not None]
    sentence = f"the same rule by {len(older):,} earlier runs"
    if ranges:
        whole = TimeRange(min(one.start_ms for one in ranges), max(one.end_ms for one in ranges))
        sentence += f", of windows from {start_text_of(whole)} to {text_of(whole.end_ms)}"
    yield replace(rest[0], sentence=sentence, run_id=older[0])


@dataclass(frozen=True)
class _InForce(AuditedData):
    """The audits of a pipeline's runs, and the data that is published now."""

    @property
    def since(self) -> int:
        """The position of the step with which the tables were last recreated; 0: they were not."""
        published = self.state.published
        return published[0].position if published and published[0].recreated else 0

    @cached_property
    def audits(self) -> Sequence[Entry]:
        """The last step with an audit of each run that counts, in the order of the ledger.

        Runs that were reverted do not count, nor runs before the tables were last recreated.
        """
        taken_back = {pair.run.run_id for pair in self.state.taken_back}
        found = (_audited(s) for run, s in self.state.runs.items() if run not in taken_back)
        counting = [step for step in found if step is not None and step.position >= self.since]
        return sorted(counting, key=lambda step: step.position)

    @cached_property
    def latest(self) -> frozenset[str]:
        """The runs of `_latest_of`, of all runs."""
        return _latest_of(self.audits)

    @cached_property
    def latest_by_rule(self) -> Mapping[str, frozenset[str]]:
        """The runs of `_latest_of` among those that have evaluated a rule about the horizon."""

        def has(audit: Entry, rule: str) -> bool:
            # an input that has ended is not evaluated, and need not be fresh
            return audit.closed or rule in rules_in(audit.audit or ())

        return {
            rule: _latest_of([audit for audit in self.audits if has(audit, rule)])
            for rule in _OF_A_HORIZON
        }

    def of_gaps(self) -> Iterator[Finding]:
        """A finding about the gaps of published runs, unless they are acknowledged."""
        runs = [
            audit
            for audit in self.audits
            if audit.step == "published"
            and any(one.name == "gaps" for one in findings_in(audit.audit or ()))
        ]
        gaps = self.gaps(runs)
        if gaps is not None:
            yield gaps

    def of_runs(self) -> Iterator[Finding]:
        """The findings of each run, the newest first; none is found twice.

        That is, by overlapping runs, or about one horizon.
        """
        found_by_later: list[tuple[Entry, Collection[tuple[str, str]]]] = []
        evaluated: dict[str, Sequence[TimeRange]] = {}
        for audit in reversed(self.audits):
            if found := [*self._of_run(audit, evaluated)]:
                again = {
                    finding
                    for later, of_later in found_by_later
                    for finding in of_later
                    if finding[0] in _OF_A_HORIZON or _overlap(audit, later)
                }
                yield from (one for one in found if (one.name, one.sentence) not in again)
                found_by_later.append((audit, {(one.name, one.sentence) for one in found}))
            if audit.step == "published" and audit.range is not None:
                kept = [TimeRange(*one) for one in audit.kept or ()]
                parts = parts_outside([self._windows_of(audit)], kept)
                for rule in rules_in(audit.audit or ()):
                    evaluated[rule] = merged([*evaluated.get(rule, ()), *parts])

    def _of_run(
        self, audit: Entry, evaluated: Mapping[str, Sequence[TimeRange]]
    ) -> Iterator[Finding]:
        """The findings of a run that stand.

        `evaluated`: the ranges of later published runs that have evaluated a rule.
        """
        found = [
            one
            for one in findings_in(audit.audit or (), audit.run_id)
            if self._found_at(audit) > self.acknowledged_until(one.name)
            and self._is_a_rule(one.name)
        ]
        is_published = audit.step == "published"
        if is_published:
            found = [one for one in found if one.name != "gaps"]
        if is_published and audit.kind == "advance":
            names = dict.fromkeys(one.name for one in found)
            for rule in filter(self.rules.__contains__, names):
                yield from self.findings_now(rule, audit)
            found = [one for one in found if one.name not in self.rules]
        for one in found:
            is_about_rows = one.name not in _OF_A_RUN and one.severity != "info"
            if is_published and is_about_rows:
                # a run with nothing but late records of older slots has no window of its own
                by_later = evaluated.get(one.name)
                outside = parts_outside([self._windows_of(audit)], by_later or ())
                stands = by_later is None or bool(outside)
            else:
                stands = audit.run_id in self.latest_by_rule.get(one.name, self.latest)
            if stands:
                yield _with_reason(one, audit) if is_published else one

    def _found_at(self, audit: Entry) -> int:
        """The position of the step from which on the findings of a run are shown.

        A run that was rejected has shown them before it was accepted.
        """
        rejected = (one for one in self.state.runs[audit.run_id] if one.step == "rejected")
        return next(rejected, audit).position

    def _windows_of(self, audit: Entry) -> TimeRange:
        """The range of a run's windows, from the first window that has accepted a record on."""
        within, first_ms = audit.range or EVERYTHING, audit.first_accepted_ms
        if first_ms is None:
            return within
        first_start_ms = Grid.of(self.spec).starts_of(first_ms)
        return TimeRange(max(within.start_ms, first_start_ms), within.end_ms)

    def _is_a_rule(self, name: str) -> bool:
        """Whether the pipeline has a rule: a key of `quality` that is on, or an expectation."""
        quality = self.spec.quality
        if name in EXPECTATIONS:
            value = getattr(quality, name)  # may be a map
            return value is not None and value != "allow"
        return name in {*OF_THE_RANGE, *(declared.type for declared in quality.expectations)}

    def acknowledged_until(self, name: str) -> int:
        """The position of the last step that acknowledges the findings of a name; 0: none does."""
        return self._acknowledged.get(name, 0)

    @cached_property
    def _acknowledged(self) -> Mapping[str, int]:
        return {
            name: step.position
            for step in self.state.steps
            if step.step == "acknowledged"
            for name in step.acknowledged or ()
        }


def _with_reason(found: Finding, published: Entry) -> Finding:
    """A finding of a published run; a critical one with the reason why it was accepted."""
    if found.severity != "critical" or not published.reason:
        return found
    return replace(found, sentence=f"{found.sentence} (accepted: {published.reason})")


def _audited(steps: Sequence[Entry]) -> Entry | None:
    """The last step of a run with an audit; None: there is none that says what is published.

    The audits of a dropped run, and of one that waits to be published, do not.
    """
    if any(step.step in _NOT_EVALUATED or step.kind in UPKEEP for step in steps):
        return None
    last = next((step for step in reversed(steps) if step.audit is not None), None)
    return None if last is None or last.step == "prepared" else last


def _latest_of(audits: Sequence[Entry]) -> frozenset[str]:
    """The last scheduled run, and later runs by hand that no later run covers.

    A run without a verdict takes the place of none before it.

    Args:
        audits: the steps with an audit, in the order of the ledger.
    """
    found: list[Entry] = []
    for audit in audits:
        if audit.step in _HAS_A_VERDICT:
            kept = [] if audit.is_scheduled else found
            found = [one for one in kept if one.is_scheduled or not _covers(audit, one)]
        found.append(audit)
    return frozenset(one.run_id for one in found)


def _covers(later: Entry, earlier: Entry) -> bool:
    """Whether a later run's range has all of an earlier one's; None: the range is not known."""
    if earlier.range is None or later.range is None:
        return False
    return not earlier.range.outside(later.range)


def _overlap(one: Entry, other: Entry) -> bool:
    """Whether the ranges of two runs have a common part; a run without a range is over all."""
    return one.range is None or other.range is None or one.range.overlaps(other.range)
