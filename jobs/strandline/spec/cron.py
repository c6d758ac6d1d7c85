"""The times of a cron schedule in UTC, by croniter as in Airflow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, pairwise, takewhile
from typing import TYPE_CHECKING

from strandline.model.intervals import DAY_MS, datetime_of, instant_of

if TYPE_CHECKING:
    from croniter import croniter

_FIRST_MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
_NIGHTS = 62
"""The number of nights that are searched for a schedule's longest interval."""


def is_cron(schedule: str) -> bool:
    """Whether a text is a schedule of cron, or one of Airflow's presets such as `@once`."""
    from croniter import croniter  # noqa: PLC0415 - few ask

    return schedule.startswith("@") or bool(croniter.is_valid(schedule))


def next_after(schedule: str | None, instant_ms: int) -> int | None:
    """The first scheduled instant, in ms, after an instant.

    None if there is no schedule, it never fires, or only Airflow can read it (`@once`).
    """
    at = datetime_of(instant_ms)
    fires = _fires_from(schedule, at)
    return None if fires is None else instant_of(fires.get_next(datetime))


@cache
def longest_interval_ms(schedule: str | None) -> int:
    """The longest time in ms between two scheduled runs; a day if it is not known.

    For `0 6 * * 1-5` it is three days, from Friday to Monday.
    """
    fires = _fires_from(schedule, _FIRST_MIDNIGHT)
    if fires is None:
        return DAY_MS
    first = fires.get_next(datetime)
    later = chain([first], fires.all_next(datetime))
    within_a_day = takewhile(lambda at: at.date() == first.date(), later)
    pauses = [later - earlier for earlier, later in pairwise(within_a_day)]
    for night in range(_NIGHTS):
        midnight = _FIRST_MIDNIGHT + timedelta(days=night)
        fires.set_current(midnight)
        before = fires.get_prev(datetime)
        fires.set_current(midnight - timedelta(seconds=1))
        pauses.append(fires.get_next(datetime) - before)
    return int(max(pauses) / timedelta(milliseconds=1))


def _fires_from(schedule: str | None, at: datetime) -> croniter | None:
    """The scheduled instants after an instant; None if there is no schedule."""
    from croniter import CroniterBadDateError, croniter  # noqa: PLC0415 - few ask

    if schedule is None or not croniter.is_valid(schedule):
        return None
    fires = croniter(schedule, at)
    try:
        fires.get_next()
    except CroniterBadDateError:
        return None
    fires.set_current(at)
    return fires
