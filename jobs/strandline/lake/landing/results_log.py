"""The log of a pipeline's landing that consists of another pipeline's results."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from operator import attrgetter

from deltalake.exceptions import DeltaError

from strandline.errors import InputError, RetryableError
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.read import ConsistentTables, published_tables
from strandline.lake.store.commits import days_changed
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import is_whole
from strandline.model.intervals import (
    DAY_MS,
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    midnight_of,
)
from strandline.spec.chained import ResultsSpec
from strandline.spec.joined import TwoSourcesSpec
from strandline.spec.pipeline import PipelineSpec

_READ = ("firings", "windows")
"""The tables of the other pipeline from which results are read."""


def log_of(lake: Lake, spec: PipelineSpec) -> LandingLog | None:
    """The log of a pipeline's landing; None if only a catalog knows the table's location.

    Raises:
        InputError: the table does not exist, or the other pipeline has published nothing.
        RetryableError: the other pipeline has not yet run by its current rules.
    """
    if isinstance(spec, ResultsSpec):
        return ResultsLog.published(lake, spec)
    if isinstance(spec, TwoSourcesSpec):
        return JoinedLog.joined(lake, spec)
    return LandingLog.of(lake, spec)


@dataclass(frozen=True)
class ResultsLog(LandingLog):
    """The log of the other pipeline's table `firings` after a publication.

    Attributes:
        tables: the other pipeline's tables after the publication.
        state: the other pipeline's state after the publication.
    """

    tables: ConsistentTables
    state: PipelineState

    @classmethod
    def published(cls, lake: Lake, spec: ResultsSpec) -> ResultsLog:
        """The log of the newest results.

        Raises:
            InputError: nothing is published.
            RetryableError: the results are published by other rules than the pipeline now has.
        """
        upstream = spec.upstream
        place = f"{spec.pipeline}: source.pipeline"
        tables = published_tables(lake, upstream.pipeline)
        state = tables.state.until(tables.step.position)
        # what one run alone went by (`overrides`) are not the rules of the pipeline
        rules = [run.spec_fingerprint for run in state.published if not run.overrides]
        if rules[-1:] != [upstream.spec_fingerprint]:
            problem = f"{upstream.pipeline} has not run yet by the present rules of its file"
            raise RetryableError(place, problem, f"run {upstream.pipeline} first")
        table = tables.store.table("firings")
        if table is None:
            problem = f"{upstream.pipeline} has no table firings yet"
            raise InputError(place, problem, f"run {upstream.pipeline} first")
        return cls(tables.store.uri("firings"), table, tables, state)

    @property
    def input_id(self) -> str:
        """See `LandingLog`; every publication makes another input, since it moves the watermark.

        Upkeep and erasure do not move it: the rows that they change are seen by their files.
        """
        last = max((run.position for run in self.state.published), default=0)
        return f"{self.table_id}@{last}"

    def goes_on_since(self, input_id: str, before_ms: int) -> bool:
        """Whether the watermark of arrivals before an instant is as it was for an earlier input.

        So it is if scheduled runs alone have published since, each from a midnight on that is not
        before the instant, and none of them by other rules, with less, or with days again.

        Args:
            input_id: the earlier input.
            before_ms: the instant.
        """
        known = int(input_id.rpartition("@")[2])
        since = (run for run in self.state.published if run.position > known)
        return all(_goes_on(run, before, before_ms) for run, before in self._with_state(since))

    def changed_otherwise_since(self, version: int) -> set[date] | None:
        """The dates of results that changed since a version but by scheduled runs that go on.

        They have evaluated days again, or were changed by hand, by a revert or an erasure. None: it
        may be any date, since commits have been cleaned up.
        """
        since = (
            step
            for step in self.state.whole
            if step.step != "maintained" and (step.versions or {}).get("firings", -1) > version
        )
        dates: set[date] = set()
        for step, before in self._with_state(since):
            if _goes_on(step, before, LEAST_INSTANT_MS):
                continue
            first = max(version, (before.versions or {}).get("firings", -1))
            until = (step.versions or {})["firings"]
            changed = days_changed(self.table, "window_date", first, until)
            if changed is None:
                return None
            dates |= changed
        return dates

    def _with_state(self, steps: Iterable[Entry]) -> Iterator[tuple[Entry, PipelineState]]:
        """Each of some steps, in order, with the state before it; the ledger is folded once."""
        state, folded = PipelineState(), 0
        for step in steps:
            number = bisect_left(self.state.steps, step.position, key=attrgetter("position"))
            state, folded = state.after(self.state.steps[folded:number]), number
            yield step, state

    @property
    def dates(self) -> set[date]:
        """The dates of all results."""
        days = self.files.get("partition.window_date", ())
        return {date.fromisoformat(str(day)[:10]) for day in days}

    @property
    def known_until_ms(self) -> int:
        """The midnight up to which all results are published; the smallest instant if none is."""
        reached_ms = self.state.frontier_ms
        return LEAST_INSTANT_MS if reached_ms is None else reached_ms

    @property
    def horizon_ms(self) -> int:
        """The instant up to which all results are known.

        It is the midnight `known_until_ms`, or the horizon of a run over all records. A run over a
        part of them may have a later horizon, which counts for this part only.
        """
        if not self.dates:
            return self.known_until_ms
        first, last = (midnight_of(day) for day in (min(self.dates), max(self.dates)))
        known_ms = known_over(self.state, TimeRange(first, last + DAY_MS))
        return self.known_until_ms if known_ms is None else max(self.known_until_ms, known_ms)

    def at(self, version: int) -> ResultsLog | None:
        """See `LandingLog`: all tables after the last step of the ledger with this version.

        `version` is of the table `firings`.
        """
        versions = {(step.versions or {}).get("firings"): step for step in self.state.whole}
        then = versions.get(version)
        if then is None:
            return None
        store = self.tables.store.at(then.versions or {})
        try:
            table = store.table("firings")
        except DeltaError:
            return None
        if table is None:
            return None
        state = self.state.until(then.position)
        return ResultsLog(self.uri, table, ConsistentTables(store, then, state), state)

    def readable_at(self, version: int) -> ResultsLog | None:
        """See `LandingLog`; also of the table `windows`."""
        then = self.at(version)
        if then is None:
            return None
        try:
            both = [
                (then.tables.store.table(name), self.tables.store.table(name)) for name in _READ
            ]
        except DeltaError:
            return None
        whole = all(a is not None and b is not None and is_whole(a, b) for a, b in both)
        return then if whole else None

    def source_log(self, log: LandingLog) -> LandingLog:
        """The log of the other pipeline's landing table as its publications have read it last.

        A run that was prepared before other runs, and published after them, has read less.
        """
        runs = [run for run in self.state.in_force if run.landing_version is not None]
        ids = {run.landing_id for run in runs[-1:]}
        versions = [run.landing_version or 0 for run in runs if run.landing_id in ids]
        version = max(versions, default=log.version)
        # where it is not there any more, what has landed since is judged with it
        is_as_read = version == log.version or any(map(log.is_another, ids))
        return log if is_as_read else log.nearest_to(version)


def _goes_on(run: Entry, before: PipelineState, before_ms: int) -> bool:
    """Whether a scheduled run has evaluated only what arrived from an instant on.

    Args:
        run: the published step of a run.
        before: the state of its pipeline before this step.
        before_ms: the instant.
    """
    by_the_file = run.kind == "advance" and not (run.overrides or run.recreated)
    if run.settled or run.accepted_loss is not None or not by_the_file:
        return False
    reached_ms = before.frontier_ms
    if reached_ms is None or before.after([run]).days_to_recompute:
        return False
    return run.completes_ms is not None and before_ms <= reached_ms < run.completes_ms


def known_over(state: PipelineState, results: TimeRange) -> int | None:
    """The horizon as of which all results of a range are published; None if there is none.

    It is the horizon of the newest run over all records that is over the whole range, or of a later
    run over a part of it if that is earlier. A run that leaves windows out does not show what has
    fired by its horizon. Reverted runs do not count.
    """
    known_ms = END_OF_INSTANTS_MS
    for run in reversed(state.published_into(results)):
        within = run.range
        if within is None or run.horizon_ms is None:
            continue
        known_ms = min(known_ms, run.horizon_ms)
        is_whole = within.start_ms <= results.start_ms and results.end_ms <= within.end_ms
        if is_whole and run.completes_ms is not None:
            return known_ms
    return None
