"""Which windows stand as a run by rules of its own published them, by the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.lake.entry import Entry
from strandline.lake.steps import standing
from strandline.model.intervals import TimeRange, text_of


@dataclass(frozen=True)
class OverriddenRange:
    """A range whose windows were published by other rules than the pipeline file's.

    Attributes:
        windows: the range, by the starts of windows.
        overrides: the rules in place of the file's, such as `{"allowed_lateness": "6h"}`.
        run_id: the run that published them.
        horizon_ms: what arrived before it for these windows is judged: by that run, or by the last
            scheduled run since that has left them as they are.
        landing_version: of the landing table that this run has read; None: of an old ledger.
        landing_id: the table that it is a version of.
    """

    windows: TimeRange
    overrides: Mapping[str, str]
    run_id: str
    horizon_ms: int | None = None
    landing_version: int | None = None
    landing_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "start": text_of(self.windows.start_ms),
            "end": text_of(self.windows.end_ms),
            "overrides": dict(self.overrides),
            "run_id": self.run_id,
        }

    def judged_by(self, run: Entry, windows: TimeRange) -> OverriddenRange:
        """Some of its windows, once a run has judged what has arrived for them."""
        return replace(
            self,
            windows=windows,
            horizon_ms=run.horizon_ms,
            landing_version=run.landing_version,
            landing_id=run.landing_id,
        )


def overridden_ranges(entries: Sequence[Entry]) -> list[OverriddenRange]:
    """The ranges by other rules that no later run has recomputed, in the order of their runs.

    What a later run has recomputed of a range is by that run's rules, but for the windows that it
    has `kept`; a run that was reverted counts nowhere.
    """
    in_force: list[OverriddenRange] = []
    for entry in standing(entries):
        within = entry.range
        if within is None:
            continue
        in_force = [part for one in in_force for part in _after(entry, within, one)]
        if entry.overrides:
            of_run = OverriddenRange(within, entry.overrides, entry.run_id)
            in_force.append(of_run.judged_by(entry, within))
    return in_force


def _after(run: Entry, within: TimeRange, one: OverriddenRange) -> Iterator[OverriddenRange]:
    """What a run over a range leaves of an overridden one."""
    others = [one.windows]
    for start_ms, end_ms in run.kept or ():
        kept = TimeRange(start_ms, end_ms)
        if (common := kept.shared_with(one.windows)) is not None:
            yield one.judged_by(run, common)
        others = [part for other in others for part in other.outside(kept)]
    for other in others:
        yield from (replace(one, windows=part) for part in other.outside(within))
