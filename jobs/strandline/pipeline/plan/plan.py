"""The horizon of a run, its plan, and the closures that it keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from strandline.engine.history.history import History
from strandline.engine.kind import kind_of
from strandline.engine.position.axis import Axis
from strandline.engine.position.clock import Clock, Closure
from strandline.engine.scope import Scope
from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import (
    EVERYTHING,
    LEAST_INSTANT_MS,
    TimeRange,
    days_named,
    parts_outside,
    start_text_of,
    text_of,
)
from strandline.pipeline.plan.kept import Kept
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class Plan:
    """The plan of a run: what it rebuilds, and what is complete once it is published.

    Attributes:
        scope: the windows and older late records.
        clock: the horizon, and the inputs that have ended.
        completes_ms: the midnight up to which everything is published after it; None: the run is
            not one over everything.
        to_recompute: the arrival days to recompute before the run.
        settles: those of them that are settled once it is published.
        missing: the days with missing rows that windows of the range depend on.
        notes: notes for a person.
        kept: the windows that stay as a run with overridden settings has published them.
        by_other_rules: the ranges outside the scope's whose gaps are published by other rules than
            the run's: gaps are listed in whole runs, also across an edge of the scope.
    """

    scope: Scope
    clock: Clock
    completes_ms: int | None
    to_recompute: tuple[date, ...] = ()
    settles: tuple[date, ...] = ()
    missing: tuple[date, ...] = ()
    notes: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    by_other_rules: tuple[TimeRange, ...] = ()

    @property
    def closes_now(self) -> bool:
        """Whether the input of a part of the range ends at the horizon itself."""
        at_ms, within = self.clock.horizon_ms, self.scope.windows
        return any(
            one.at_ms == at_ms and one.windows.overlaps(within) for one in self.clock.closures
        )

    @property
    def gaps_that_stay(self) -> tuple[TimeRange, ...]:
        """The ranges whose gaps stay as they are published."""
        return (*self.scope.kept, *self.by_other_rules)


def outside_by_other_rules(
    request: Request, windows: TimeRange, state: PipelineState
) -> tuple[TimeRange, ...]:
    """The ranges outside a run's that are published by other rules than the run's."""
    if request.overrides:
        return tuple(EVERYTHING.outside(windows))
    return tuple(parts_outside([one.windows for one in state.overridden], [windows]))


def horizon_of(request: Request, landing: Landing, axis: Axis, state: PipelineState) -> int:
    """The instant before which a run knows records; never after the current time.

    A run by hand knows no less than what is published into its range, and than scheduled runs have
    processed, unless it is asked to: nothing need arrive in the last seconds before a midnight.
    """
    if request.kind == "advance":
        # a later horizon published into the range is used once the range is known
        return request.until_ms
    known = (state.largest_horizon(asked_of(request, landing.spec)), state.frontier_ms)
    known_ms = max((ms for ms in known if ms is not None), default=None)
    return landing.horizon(axis, request.as_of_ms, known_ms)


def asked_of(request: Request, spec: PipelineSpec) -> TimeRange:
    """The requested range, in whole slots."""
    return kind_of(spec).whole_slots(request.range or EVERYTHING)


def require_rows(spec: PipelineSpec, request: Request, plan: Plan) -> None:
    """Refuse a run by hand if rows that its windows need are missing from the landing table.

    Raises:
        InputError: rows are missing.
    """
    if plan.missing and request.kind == "backfill":
        raise InputError(
            "--start/--end",
            f"rows of {days_named(plan.missing)} that windows of the range need are missing from "
            f"{spec.input_in_words}",
            "land them again, leave these windows as they are published, or use what remains "
            "with --accept-loss REASON",
        )


def require_all(request: Request, plan: Plan, history: History) -> None:
    """Refuse a run with `--recreate` that would leave out windows with known records.

    Raises:
        InputError: the run would leave out windows.
    """
    if not request.recreate or plan.completes_ms is not None or history.days.events is None:
        return
    if plan.missing:
        raise InputError(
            "--recreate",
            f"rows of {days_named(plan.missing)} are missing from {history.spec.input_in_words}: "
            "windows that need them would be removed",
            "land them again, give the pipeline a new name, or use what remains with "
            "--accept-loss REASON",
        )
    events = history.days.events
    raise InputError(
        "--recreate",
        "the range leaves out windows, which would be removed: records are known from "
        f"{text_of(events.start_ms)} to {text_of(events.end_ms)}",
        "give a range that holds them all, or let advance find it",
    )


def closures_around(state: PipelineState, history: History, within: TimeRange) -> list[Closure]:
    """The closures of all windows whose records decide about a range."""
    return state.closures_in(kind_of(history.spec).decided_by(within))


def closed_in_order(
    state: PipelineState, history: History, within: TimeRange, horizon_ms: int
) -> list[Closure]:
    """The closures that decide about a range, with the older windows that were still open by then.

    Where windows share records, none may be open longer than a newer one. None was when `--close`
    was given; one may be now, since rows that made the watermark advance are missing or rules were
    edited.

    Args:
        state: the pipeline's state, by its ledger.
        history: everything observed below the horizon.
        within: the range.
        horizon_ms: the horizon.
    """
    if history.grid.sharing(within) == within:
        return closures_around(state, history, within)
    around, before_ms = kind_of(history.spec).decided_by(within), LEAST_INSTANT_MS
    in_order = []
    for closure in sorted(state.closures, key=lambda one: one.windows.start_ms):
        if closure.windows.end_ms > around.start_ms:
            reached_ms = history.crossings.watermark_reached(min(closure.at_ms, horizon_ms))
            open_ms = max(history.grid.first_open(reached_ms), before_ms)
            start_ms = min(open_ms, closure.windows.start_ms)
            in_order.append(Closure(TimeRange(start_ms, closure.windows.end_ms), closure.at_ms))
        before_ms = closure.windows.end_ms
    return [closure for closure in in_order if closure.windows.overlaps(around)]


def notes_of_closures(closures: Iterable[Closure], within: TimeRange) -> list[str]:
    """A note for each closure that a run keeps and that overlaps a range."""
    return [
        f"windows from {start_text_of(closure.windows)} to {text_of(closure.windows.end_ms)} "
        f"stay closed, since their input ended at {text_of(closure.at_ms)} (--close): what arrives "
        "from then on is late"
        for closure in closures
        if closure.windows.overlaps(within)
    ]
