"""The request of a run, and the command that makes it once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal

from strandline.errors import InputError
from strandline.model.command import in_words, option_of
from strandline.model.intervals import (
    DAY_MS,
    LEAST_INSTANT_MS,
    TimeRange,
    day_of,
    midnight_before,
    text_of,
)

if TYPE_CHECKING:
    from strandline.lake.ledger.entry import Entry
    from strandline.spec.pipeline import PipelineSpec

MOST_SHOWN = 10_000
"""The default number of windows of each kind in a preview."""


@dataclass(frozen=True)
class Request:
    """One call of `backfill` (a range) or `advance` (up to an instant).

    Attributes:
        kind: `backfill` rebuilds `range`; `advance` does what a scheduled run does.
        to_ms: for `advance`: M is the last midnight not after this instant.
        as_of_ms: the horizon, if the caller sets it.
        close: whether the input of the range has ended at the horizon.
        reopen: whether a range that was closed may be rebuilt as not closed.
        started_by: the scheduled run that does this rebuild first, in which windows that an earlier
            run has closed stay so; None: a run over them at another horizon is refused, unless it
            may `reopen` them.
        dry_run: whether nothing is written.
        run_key: the caller's run, shared by its retries; None: a new run.
        now_ms: the current time, which no horizon exceeds; None: not checked (conformance and
            benchmarks only).
        accept_loss: the reason to use days with missing rows as they are now; None: they stay as
            observed.
        recreate: whether the result replaces everything that was published before.
        allow_removals: whether any share of the range's published windows may be removed.
        overrides: settings that override the pipeline's file for a run by hand, as written:
            `allowed_lateness`, `bound`. The given spec already has them.
        not_ready_ms: the requested midnight of a scheduled run, if its day is not ready yet
            (`ready`); None: it is.
        not_published_ms: the requested midnight of a scheduled run, if the pipeline whose results
            it reads has not published so far (`known`); None: it has.
        prepare: whether the run only stages its changes, for `runs publish`.
        preview_rows: the largest number of windows of each kind in a preview.
        max_bytes: the limit of bytes to read of the landing table; None: the pipeline's limit.
    """

    kind: Literal["backfill", "advance"]
    range: TimeRange | None = None
    to_ms: int | None = None
    as_of_ms: int | None = None
    close: bool = False
    reopen: bool = False
    started_by: Request | None = None
    dry_run: bool = False
    reason: str | None = None
    requested_by: str | None = None
    run_key: str | None = None
    now_ms: int | None = None
    accept_loss: str | None = None
    recreate: bool = False
    allow_removals: bool = False
    max_bytes: int | None = None
    prepare: bool = False
    preview_rows: int = MOST_SHOWN
    overrides: Mapping[str, str] = field(default_factory=dict)
    not_ready_ms: int | None = None
    not_published_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse a future horizon, contradictory options, and missing reasons.

        Raises:
            InputError: the horizon lies after the current time; a dry run shall keep its staging;
                or an option without its required reason.
        """
        if self.prepare and self.dry_run:
            raise InputError("--prepare", "contradicts --dry-run", "give one of them")
        self._require_reasons()
        if self.kind == "advance":
            self._require_past("--to", self.until_ms)
        elif self.as_of_ms is not None:
            self._require_past("--as-of", self.as_of_ms)

    def _require_reasons(self) -> None:
        for option in [*(["--recreate"] if self.recreate else []), *self._overriding]:
            if not (self.reason or "").strip():
                raise InputError(option, "no reason", "say why with --reason TEXT")
        lasting = {"--recreate": self.recreate, "--accept-loss": self.accept_loss}
        for option, given in lasting.items():
            if given and self._overriding:
                raise InputError(
                    option,
                    f"is for more than one run, and {self._overriding[0]} for one alone",
                    "do it in two runs, or edit the pipeline's file",
                )

    def _require_past(self, option: str, horizon_ms: int) -> None:
        if self.now_ms is not None and horizon_ms > self.now_ms:
            raise InputError(
                option,
                f"{text_of(horizon_ms)} has not come yet: it is {text_of(self.now_ms)}",
                "the arrivals before it are not complete yet; give an instant that has passed",
            )

    @property
    def _overriding(self) -> list[str]:
        return [option_of(name) for name in self.overrides]

    @property
    def until_ms(self) -> int:
        """M: the last midnight not after `to_ms`."""
        return midnight_before(self.to_ms or 0)

    def ready(self, after_ms: int | None) -> Request:
        """The same request.

        A scheduled run up to the last midnight whose day is ready by the clock.

        Args:
            after_ms: how long after its end a day is ready (`source.ready_after`); None: at once.
        """
        if self.kind != "advance" or after_ms is None or self.now_ms is None:
            return self
        ready_ms = midnight_before(self.now_ms - after_ms)
        if self.until_ms <= ready_ms:
            return self
        return replace(self, to_ms=ready_ms, not_ready_ms=self.until_ms)

    def known(self, until_ms: int | None) -> Request:
        """The same request; a scheduled run no further than its source is known.

        Args:
            until_ms: the midnight up to which all that it reads has landed; None: not known.
        """
        if self.kind != "advance" or until_ms is None or self.until_ms <= until_ms:
            return self
        return replace(self, to_ms=until_ms, not_published_ms=self.until_ms)

    @property
    def is_shown_first(self) -> bool:
        """Whether the run shows its changes and publishes nothing: a dry or a prepared run."""
        return self.dry_run or self.prepare

    @property
    def notes(self) -> list[str]:
        """Notes about how the request was understood."""
        notes = []
        if self.not_ready_ms is not None:
            notes.append(
                f"the day before {text_of(self.not_ready_ms)} is not ready (source.ready_after): "
                f"this run goes up to {text_of(self.until_ms)}"
            )
        if self.not_published_ms is not None and self.until_ms == LEAST_INSTANT_MS:
            notes.append(
                "source.pipeline has not published all up to any midnight, so there are no results "
                "to count: run strandline advance for that pipeline first"
            )
        elif self.not_published_ms is not None:
            notes.append(
                f"source.pipeline has not published all up to {text_of(self.not_published_ms)}: "
                f"this run goes up to {text_of(self.until_ms)}"
            )
        return notes


def of_overrides(overrides: Mapping[str, str], spec: PipelineSpec) -> Iterator[str]:
    """A note about the rules of a run alone, and about the later runs that need its windows."""
    if not overrides:
        return
    why = spec.why_overridden_is_redone
    scheduled = (
        "leave its windows that are final as they are (overridden: keep)"
        if why is None
        else f"that need its windows recompute them by the pipeline's file ({why})"
    )
    yield (
        f"of this run alone, {in_words(overrides)}: its observations are not kept; "
        f"scheduled runs {scheduled}"
    )


def arrival_days(
    until_ms: int, reached_ms: int | None, known: Collection[date], changed: Iterable[date]
) -> list[date]:
    """The arrival days that a scheduled run processes: [P, M) and the changed days, in order.

    P is the earlier of the frontier and the day before M; without a frontier, the first day.

    Args:
        until_ms: M.
        reached_ms: the frontier before the run; None: there is none.
        known: the observed arrival days.
        changed: the days that the run recomputes.
    """
    end = day_of(until_ms)
    first = min(known, default=end)
    if reached_ms is not None:
        first = day_of(min(until_ms - DAY_MS, reached_ms))
    processed = (first + timedelta(number) for number in range((end - first).days))
    return sorted({*processed, *changed})


def command_of(request: Request) -> list[str]:
    """The words of the command that makes a request, without its pipeline.

    Without the options of a dry run, and of who asks. What a scheduled run has started is made by
    the command of that run. Example: `["backfill", "--start", "2024-03-01T00:00:00Z", "--end",
    "2024-03-02T00:00:00Z", "--as-of", "2024-03-05T00:00:00Z", "--prepare"]`.
    """
    asked = request.started_by or request
    return [asked.kind, *_of_windows(asked), *_of_effects(asked)]


def _of_windows(request: Request) -> Iterator[str]:
    """The options that say which windows are computed, from which arrivals and by which rules."""
    if request.kind == "advance":
        yield from ("--to", text_of(request.until_ms))
    if request.range is not None:
        yield from request.range.as_options.split()
    for name, value in request.overrides.items():
        yield from (option_of(name), value)
    if request.as_of_ms is not None:
        yield from ("--as-of", text_of(request.as_of_ms))


def _of_effects(request: Request) -> Iterator[str]:
    """The options that say what a run may change, and why."""
    flags = {
        "--close": request.close,
        "--reopen": request.reopen,
        "--recreate": request.recreate,
        "--allow-removals": request.allow_removals,
        "--prepare": request.prepare,
    }
    yield from (option for option, given in flags.items() if given)
    values = {
        "--accept-loss": request.accept_loss,
        "--max-bytes": request.max_bytes,
        "--preview-rows": None if request.preview_rows == MOST_SHOWN else request.preview_rows,
        "--reason": request.reason,
    }
    for option, value in values.items():
        if value is not None:
            yield from (option, str(value))


def known_command_of(steps: Sequence[Entry]) -> Sequence[str] | None:
    """`command_of` a run, by its steps; None: an earlier version has written them."""
    kept = (step.to_publish.command for step in reversed(steps))
    return next((command for command in kept if command is not None), None)
