"""Which windows stand as a run by rules of its own published them, by the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.lake.entry import Entry
from strandline.lake.steps import standing
from strandline.model.intervals import TimeRange, text_of
from strandline.model.overrides import as_typed, in_words


@dataclass(frozen=True)
class OverriddenRange:
    """A range whose windows were published by other rules than the pipeline file's.

    Attributes:
        windows: the range, by the starts of windows.
        overrides: the rules in place of the file's, such as `{"allowed_lateness": "6h"}`.
        run_id: the run that published them.
    """

    windows: TimeRange
    overrides: Mapping[str, str]
    run_id: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "start": text_of(self.windows.start_ms),
            "end": text_of(self.windows.end_ms),
            "overrides": dict(self.overrides),
            "run_id": self.run_id,
        }


def overridden_ranges(entries: Sequence[Entry]) -> list[OverriddenRange]:
    """The ranges by other rules that no later run has published into, in the order of their runs.

    What a later run has recomputed of a range is by that run's rules; a run that was reverted
    counts nowhere.
    """
    in_force: list[OverriddenRange] = []
    for entry in standing(entries):
        within = entry.range
        if within is None:
            continue
        in_force = [
            replace(one, windows=part) for one in in_force for part in one.windows.outside(within)
        ]
        if entry.overrides:
            in_force.append(OverriddenRange(within, entry.overrides, entry.run_id))
    return in_force


def of_overridden(
    pipeline: str, entries: Sequence[Entry], within: TimeRange, *, by_hand: bool
) -> Iterator[str]:
    """What a run says of the ranges by other rules that it recomputes by the pipeline's file.

    Args:
        pipeline: its name.
        entries: the ledger.
        within: the windows that the run recomputes.
        by_hand: whether a person has asked for just this range.
    """
    for one in overridden_ranges(entries):
        if by_hand or not one.windows.overlaps(within):
            continue
        start_ms = max(one.windows.start_ms, within.start_ms)
        end_ms = min(one.windows.end_ms, within.end_ms)
        yield (
            f"windows from {text_of(start_ms)} to {text_of(end_ms)} were published by run "
            f"{one.run_id} with {in_words(one.overrides)}; this run recomputes them by the "
            f"pipeline's file: strandline backfill {pipeline} "
            f"--start {text_of(one.windows.start_ms)} --end {text_of(one.windows.end_ms)} "
            f"{as_typed(one.overrides)} --reason … publishes them as before"
        )
