"""`fresh_within`: whether records still arrive; and whether scheduled runs still happen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from strandline.model.intervals import DAY_MS, HOUR_MS, LEAST_INSTANT_MS, text_of
from strandline.quality.figures import duration, exact_duration
from strandline.quality.findings.check import Check, Finding
from strandline.spec.cron import longest_interval_ms, next_after
from strandline.spec.quality import DEFAULT

_GRACE_MS = 2 * HOUR_MS
"""The allowed delay of a run, or of its last record, after its scheduled time."""


def fresh_within_ms(fresh_within: int | str | None, schedule: str | None) -> int | None:
    """The longest allowed time from the last arrival to the horizon, in ms; None: no limit.

    By default it is the longest interval of the schedule plus two hours.
    """
    if fresh_within != DEFAULT:
        return fresh_within if isinstance(fresh_within, int) else None
    return longest_interval_ms(schedule) + _GRACE_MS


def check_of_freshness(
    last_arrival_ms: int | None,
    horizon_ms: int,
    within_ms: int,
    of: str = "",
    where: str | None = None,
) -> Check:
    """The check on the time from the last arrival to the horizon.

    It fails for a source without any record.

    Args:
        last_arrival_ms: the last arrival, of two sources the last well-formed one; None: nothing
            has arrived yet.
        horizon_ms: the instant up to which the run has read arrivals.
        within_ms: the longest allowed time without an arrival.
        of: the source, if there are two.
        where: the key of the condition without which rows are not read; None: all rows are.
    """
    name, source = "fresh_within", f" from {of}" if of else ""
    arrival = "well-formed arrival" if of else "arrival"  # of two sources the others are not known
    if where is not None:
        source += f" of the rows that {where} keeps"
    horizon = text_of(horizon_ms)
    if last_arrival_ms is None:
        row = "well-formed row" if of else "row with a readable arrival time"
        sentence = f"no {row}{source} has arrived yet, before the data cut-off {horizon}"
        return Check(name, "warning", horizon_ms - LEAST_INSTANT_MS, within_ms, sentence, of)
    silence_ms = max(horizon_ms - last_arrival_ms, 0)
    last = text_of(last_arrival_ms)
    limit = exact_duration(within_ms)
    if silence_ms <= within_ms:
        lag = f"{duration(silence_ms)} before the data cut-off {horizon}"
        sentence = f"last {arrival}{source} {last}, {lag}; within {limit}"
    else:
        lag = f"{exact_duration(silence_ms)} before the data cut-off {horizon}"
        sentence = f"no {arrival}{source} since {last}: {lag}, at most {limit} may be"
    return Check(name, "warning", silence_ms, within_ms, sentence, of)


@dataclass(frozen=True)
class ScheduledRun:
    """A past run of `advance`.

    Attributes:
        until_ms: the midnight up to which it processed the pipeline.
        at_ms: the time of its last step in the ledger.
    """

    until_ms: int
    at_ms: int


def not_run_since(
    schedule: str | None, runs: Iterable[ScheduledRun], now_ms: int
) -> Finding | None:
    """The finding that a scheduled run is missing; None if none is known to be missing.

    Only runs near the current time count as scheduled. A pipeline whose history is filled by hand,
    as in the demo, is not known to be scheduled.

    Args:
        schedule: the pipeline's cron expression; None: it is run by hand.
        runs: the past runs.
        now_ms: the current time.
    """
    in_time_ms = longest_interval_ms(schedule) + DAY_MS + _GRACE_MS
    kept_up = [run.at_ms for run in runs if 0 <= run.at_ms - run.until_ms <= in_time_ms]
    due_ms = next_after(schedule, max(kept_up)) if kept_up else None
    if due_ms is None or now_ms <= due_ms + _GRACE_MS:
        return None
    sentence = (
        f"not run since {text_of(max(kept_up))}: by its schedule {schedule!r} the next run was due "
        f"at {text_of(due_ms)}"
    )
    return Finding("schedule", "warning", sentence)
