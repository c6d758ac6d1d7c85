"""The ranges in force of published runs: closed ranges (`--close`), and overridden ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.engine.position.clock import Closure
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.to_publish import ToPublish
from strandline.model.intervals import TimeRange, parts_outside


@dataclass(frozen=True)
class OverriddenRange:
    """A range whose windows were published with overridden rules.

    Attributes:
        windows: the range of window starts.
        overrides: the overriding rules, such as `{"allowed_lateness": "6h"}`.
        run_id: the run that published them.
        horizon_ms: the horizon up to which arrivals for these windows were evaluated, by that run
            or by the last scheduled run that has kept them.
        landing_version: the version of the landing table that this run has read.
        landing_id: the landing table's id; None: written by the first release candidate.
        watermark_ms: the watermark by these rules at the data cut-off of the run; None: not known,
            as of a run by an earlier version of the program.
        final_until_ms: see `ToPublish.final_until_ms`.
    """

    windows: TimeRange
    overrides: Mapping[str, str]
    run_id: str
    horizon_ms: int | None = None
    landing_version: int | None = None
    landing_id: str | None = None
    watermark_ms: int | None = None
    final_until_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The range as a JSON document."""
        return {
            **self.windows.to_json(),
            "overrides": dict(self.overrides),
            "run_id": self.run_id,
        }

    def evaluated_by(self, run: Entry, windows: TimeRange) -> OverriddenRange:
        """A part of the range after a run has evaluated arrivals for it."""
        return replace(
            self,
            windows=windows,
            horizon_ms=run.horizon_ms,
            landing_version=run.landing_version,
            landing_id=run.landing_id,
        )


def overridden_ranges(
    runs: Iterable[Entry], steps_of: Mapping[str, Sequence[Entry]]
) -> list[OverriddenRange]:
    """The overridden ranges that no later run has recomputed, in the order of their runs.

    A part that a later run has recomputed has that run's rules, except windows that it has `kept`.

    Args:
        runs: the published steps in force, in order.
        steps_of: the steps of each run by its id.
    """
    ranges: list[OverriddenRange] = []
    for run in runs:
        within = run.range
        if within is None:
            continue
        ranges = [part for one in ranges for part in _after(run, within, one)]
        if run.overrides:
            noted = _noted_by(steps_of[run.run_id])
            of_run = OverriddenRange(
                within,
                run.overrides,
                run.run_id,
                watermark_ms=noted.watermark_ms,
                final_until_ms=noted.final_until_ms,
            )
            ranges.append(of_run.evaluated_by(run, within))
    return ranges


def _noted_by(steps: Sequence[Entry]) -> ToPublish:
    """The publish of a run as noted when it began; empty: it has not begun."""
    begun = (step for step in reversed(steps) if step.step == "publishing")
    return next((step.to_publish for step in begun), ToPublish())


def _after(run: Entry, within: TimeRange, one: OverriddenRange) -> Iterator[OverriddenRange]:
    """The parts of an overridden range that remain after a run."""
    kept = [TimeRange(start_ms, end_ms) for start_ms, end_ms in run.kept or ()]
    for windows in kept:
        if (common := windows.shared_with(one.windows)) is not None:
            yield one.evaluated_by(run, common)
    for part in parts_outside([one.windows], [*kept, within]):
        yield replace(one, windows=part)


def closures(runs: Iterable[Entry]) -> list[Closure]:
    """The closures in force; for each part, the last run that closed or reopened it decides.

    Args:
        runs: the published steps in force, in order.
    """
    found: list[Closure] = []
    for run in runs:
        if run.range is None or run.horizon_ms is None:
            continue
        if run.closed or run.reopened:
            found = [rest for closure in found for rest in without(closure, run.range)]
        if run.closed:
            found.append(Closure(run.range, run.horizon_ms))
    return found


def without(closure: Closure, reopened: TimeRange) -> list[Closure]:
    """The parts of a closure outside of a range."""
    return [Closure(part, closure.at_ms) for part in closure.windows.outside(reopened)]


def with_missing_days(steps: Sequence[Entry]) -> Iterator[Entry]:
    """The steps that name the days with missing rows, the newest first, each with all of them.

    Days whose missing rows a run accepts are among them until the run has published.
    """
    for step in reversed(steps):
        if step.lost is None:
            continue
        if not step.accepted_loss or step.step == "published":
            yield step
        elif accepted := step.to_publish.accepted:
            yield replace(step, lost=sorted({*step.lost, *accepted}))
