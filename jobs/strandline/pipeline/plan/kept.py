"""Which windows a scheduled run keeps as a run with overridden settings has published them.

These are the windows that were final by those settings at that run's horizon. Windows that were
still open are rebuilt with the pipeline's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from strandline.engine.calendar.slot_times import slot_times
from strandline.engine.history.history import History
from strandline.engine.position.clock import Clock
from strandline.engine.position.grid import Grid
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.model.command import as_options, in_words
from strandline.model.intervals import EVERYTHING, TimeRange, text_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.pipeline.plan.earlier_runs import EarlierRuns
from strandline.pipeline.plan.open_slots import closed_part, part_before
from strandline.spec.pipeline import PipelineSpec

KEPT = "windows kept from"
"""The prefix of the name of the book of late arrivals for such windows."""


@dataclass(frozen=True)
class Kept:
    """Windows that stay as a run with overridden settings has published them.

    Attributes:
        by: the run and its settings; its range is the one of these windows.
        since_ms: arrivals from here on are still to be evaluated for them; None: none can be, as
            rows are missing.
        base_ms: the midnight since which the scheduled run evaluates all arrivals again; None: all.
        before: the landing table when arrivals before `since_ms` were evaluated; None: it has the
            same rows now for the days from `base_ms` on.
    """

    by: OverriddenRange
    since_ms: int | None
    base_ms: int | None
    before: LandingLog | None = None

    @property
    def windows(self) -> TimeRange:
        """The range of their starts."""
        return self.by.windows

    @property
    def first_ms(self) -> int:
        """The first instant of the arrivals that the scheduled run evaluates again."""
        return EVERYTHING.start_ms if self.base_ms is None else self.base_ms

    @property
    def name(self) -> str:
        """The name of the book of their late arrivals."""
        return f"{KEPT} {text_of(self.windows.start_ms)}"


@dataclass(frozen=True)
class Reached:
    """A range with overridden settings that a scheduled run reaches.

    Attributes:
        by: the range, and the run that has published it.
        kept: the part that stays; None: none.
        why: why the rest is recomputed.
        rest: the parts that are recomputed.
    """

    by: OverriddenRange
    kept: Kept | None
    why: str
    rest: Sequence[TimeRange]

    def recomputed_from(self, base_ms: int | None) -> int | None:
        """The start of the first recomputed window that was final; None: there is none.

        Records that the range accepted since the run's base would be late by the pipeline's file.
        """
        horizon_ms, starts_ms = self.by.horizon_ms, [part.start_ms for part in self.rest]
        if horizon_ms is None or (base_ms is not None and base_ms >= horizon_ms):
            return None
        return min(starts_ms, default=None)

    def notes(self, pipeline: str, rebuilt: TimeRange) -> Iterator[str]:
        """The notes of a run that rebuilds a range."""
        run_id, rules = self.by.run_id, in_words(self.by.overrides)
        if self.kept is not None:
            yield (
                f"{_named(self.kept.windows)} stay as run {run_id} published them with {rules} "
                "(overridden: keep); what has arrived for them since is late"
            )
        for part in (one.shared_with(rebuilt) for one in self.rest):
            if part is not None:
                yield (
                    f"{_named(part)} were published by run {run_id} with {rules}; this run "
                    f"recomputes them by the pipeline's file ({self.why}): "
                    f"strandline backfill {pipeline} {self.by.windows.as_options} "
                    f"{as_options(self.by.overrides)} --reason … publishes them as before"
                )


def reached_by(
    touched: TimeRange, base_ms: int | None, history: History, earlier: EarlierRuns
) -> list[Reached]:
    """The ranges with overridden settings that a scheduled run reaches, in the order of their runs.

    Args:
        touched: the range of the windows to rebuild and of the older windows with late records.
        base_ms: the midnight since which all arrivals are evaluated again; None: all.
        history: everything observed below the horizon.
        earlier: the state that earlier runs have left.
    """
    ranges = earlier.state.overridden
    return [
        _reached(one, ranges, base_ms, history, earlier)
        for one in ranges
        if one.windows.overlaps(touched)
    ]


def _reached(
    one: OverriddenRange,
    ranges: Sequence[OverriddenRange],
    base_ms: int | None,
    history: History,
    earlier: EarlierRuns,
) -> Reached:
    found = history.spec.why_overridden_is_redone or _found(one, ranges, base_ms, history, earlier)
    if not isinstance(found, Kept):
        return Reached(one, None, found, [one.windows])
    first_open_ms = earlier.states_in(one.windows).first_open_ms
    rest = one.windows.outside(found.windows)
    if first_open_ms is None and not history.spec.window.merging:
        rest = []  # slots behind the last one
    return Reached(one, found, _why_rest(history), rest)


def _why_rest(history: History) -> str:
    """Why a part of a range is not kept."""
    if history.spec.window.merging:
        return "their sessions were still open at its data cut-off, or extend over an edge"
    return "they were still open at its data cut-off"


def _found(
    one: OverriddenRange,
    ranges: Sequence[OverriddenRange],
    base_ms: int | None,
    history: History,
    earlier: EarlierRuns,
) -> Kept | str:
    """The part of a range that is kept; a text: why none is."""
    windows = _final(one, history, earlier)
    if windows is None or one.horizon_ms is None:
        return _why_rest(history)
    if not _older_had_closed(windows, one, ranges, history):
        return "windows before them share their records and close later"
    by, before = replace(one, windows=windows), None
    if base_ms is None or base_ms < one.horizon_ms:
        landed = earlier.landed_before(one)
        if landed is None:
            return "which of their records have landed since is not known any more"
        before = landed.log
    until_ms = one.horizon_ms if base_ms is None else max(one.horizon_ms, base_ms)
    return Kept(by, until_ms, base_ms, before)


def _final(one: OverriddenRange, history: History, earlier: EarlierRuns) -> TimeRange | None:
    """The windows of a range that were final by its settings at its horizon; None: none were.

    Decided by the published slots; for empty slots after them, by the watermark at the time. For
    sessions decided by the records: none may extend over an edge. For results decided by the slots
    alone.
    """
    last_closed_ms, first_open_ms = states = earlier.states_in(one.windows)
    if history.spec.reads_results_of is not None:
        return closed_part(one.windows, states, history.grid.span_ms)
    rules = history.spec.under(one.overrides)
    grid, ends = Grid.of(rules), [one.windows.start_ms]
    if last_closed_ms is not None:
        ends.append(last_closed_ms + grid.span_ms)
    if one.final_until_ms is not None:
        ends.append(one.final_until_ms)
    horizon_ms = one.horizon_ms or 0
    watermark_ms = _watermark_at(horizon_ms, one, rules, history)
    if watermark_ms != MIN_WATERMARK:
        ends.append(grid.first_not_final(watermark_ms))
    final = part_before(max(ends), first_open_ms, one.windows)
    if final is not None and rules.window.merging:
        return earlier.whole_within(rules, final, horizon_ms, watermark_ms)
    return final


def _watermark_at(
    horizon_ms: int, one: OverriddenRange, rules: PipelineSpec, history: History
) -> int:
    """The watermark by a range's rules at a horizon, as far as it is known; MIN: not at all.

    By the pipeline's file it is known, within a day, at the ends of windows alone. The run that has
    published the range has noted its own.
    """
    reached_ms = history.crossings.watermark_reached(horizon_ms)
    if reached_ms != MIN_WATERMARK:
        reached_ms += (history.spec.watermark.bound_ms or 0) - (rules.watermark.bound_ms or 0)
    return reached_ms if one.watermark_ms is None else max(reached_ms, one.watermark_ms)


def _older_had_closed(
    windows: TimeRange,
    one: OverriddenRange,
    ranges: Sequence[OverriddenRange],
    history: History,
) -> bool:
    """Whether earlier windows that share records with a range had closed by its horizon.

    Otherwise a record that is late for its newest window would be accepted by an older one.
    """
    before = TimeRange(history.grid.sharing(windows).start_ms, windows.start_ms)
    ids = history.grid.ids_within(before)
    if not len(ids):
        return True
    if any(other is not one and other.windows.overlaps(before) for other in ranges):
        return False
    horizon_ms = one.horizon_ms or 0
    last = slot_times([ids[-1]], history, Clock(horizon_ms))
    return bool((last["state"] == "closed").all())


def _named(windows: TimeRange) -> str:
    return f"windows from {text_of(windows.start_ms)} to {text_of(windows.end_ms)}"
