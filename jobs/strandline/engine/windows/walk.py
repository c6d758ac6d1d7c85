"""What a window of a key does with its records one by one, where only a walk over them can tell.

It runs in Spark's workers, over one group at a time. The module travels there by its content, so
it needs nothing of the library, and its rules are plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

STILL_HELD = 2**62
"""Where a record would stop being held by its window: after every firing there can be."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a window fires, and what it lets go of then.

    Attributes:
        count: it fires at every so many records.
        delta: it fires where a value is further than this from the last that fired. Of both None:
            at the last record on time and at each late one; so does the default trigger.
        never: it does not fire at all.
        purging: each firing empties it.
        last: it keeps the last so many records.
        newest_ms: it keeps the records newer than its newest event time less this.
        near: it lets go of those whose value is this far from the last one's, or further; one
            that is no number is no distance from any.
        after: it lets go once it has fired, and not just before.
    """

    count: int | None = None
    delta: float | None = None
    never: bool = False
    purging: bool = False
    last: int | None = None
    newest_ms: int | None = None
    near: float | None = None
    after: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """The records that a window of a key accepted, in order of arrival; a column each.

    Attributes:
        late: whether the watermark had reached the window's end as the record came.
        ts_ms: its event time.
        trigger_values: what `Rules.delta` compares.
        evictor_values: what `Rules.near` compares.
        fired: whether the watermark has reached the window's end at all.
    """

    late: Sequence[bool]
    ts_ms: Sequence[int]
    trigger_values: Sequence[float]
    evictor_values: Sequence[float]
    fired: bool


@dataclass(frozen=True, slots=True)
class Walked:
    """What became of the records of a window, a column each; firings are counted from 1.

    Attributes:
        fires: whether the window fired right after the record.
        first: the first firing after the record came.
        until: the first firing that does not hold it any more; `STILL_HELD`: the window holds it.
        firings: how often the window has fired.
    """

    fires: list[bool]
    first: list[int]
    until: list[int]
    firings: int


def walk(records: Records, rules: Rules) -> Walked:
    """Walk over the records of a window as Flink does."""
    fires = _fires(records, rules)
    first, until = [0] * len(fires), [STILL_HELD] * len(fires)
    lets_go = rules.purging or _evicts(rules)
    pane: list[int] = []
    firing = 1
    for place, fires_here in enumerate(fires):
        first[place] = firing
        pane.append(place)
        if not fires_here:
            continue
        if lets_go:
            near_enough = _kept(pane, records, rules)
            told = set(pane) if rules.after else near_enough
            held = set() if rules.purging else near_enough
            for member in pane:
                if member not in held:
                    until[member] = firing + 1 if member in told else firing
            pane = [member for member in pane if member in held]
        firing += 1
    return Walked(fires, first, until, firing - 1)


def _fires(records: Records, rules: Rules) -> list[bool]:
    """After which records the window fires."""
    places = range(len(records.late))
    if rules.never:
        return [False for _ in places]
    if rules.count is not None:
        return [not (place + 1) % rules.count for place in places]
    if rules.delta is not None:
        return _beyond(records.trigger_values, rules.delta)
    last_on_time = len(places) - sum(records.late) - 1
    return [records.late[p] or (p == last_on_time and records.fired) for p in places]


def _beyond(values: Sequence[float], threshold: float) -> list[bool]:
    """Which values are further than a threshold from the first, or the last that was."""
    found = []
    reference = values[0] if values else 0.0
    for value in values:
        is_beyond = abs(value - reference) > threshold
        reference = value if is_beyond else reference
        found.append(is_beyond)
    return found


def _evicts(rules: Rules) -> bool:
    return not rules.last is rules.newest_ms is rules.near is None


def _kept(pane: Sequence[int], records: Records, rules: Rules) -> set[int]:
    """What the evictor keeps of the records in a window."""
    if rules.last is not None:
        return set(pane[-rules.last :] if rules.last else ())
    if rules.newest_ms is not None:
        oldest_ms = max(records.ts_ms[member] for member in pane) - rules.newest_ms
        return {member for member in pane if records.ts_ms[member] > oldest_ms}
    if rules.near is not None:
        values, threshold = records.evictor_values, rules.near
        last = values[pane[-1]]
        return {member for member in pane if not abs(values[member] - last) >= threshold}
    return set(pane)


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a group: those that are read, and those that are added."""

    order: tuple[str, ...]
    late: str
    ts_ms: str
    trigger_value: str
    evictor_value: str
    fired: str
    fires: str
    first: str
    until: str
    firings: str


def walk_over_groups(rules: Rules, names: Names) -> Callable[[pa.Table], pa.Table]:
    """What `applyInArrow` calls with the accepted records of each window of a key."""

    def walk_over_group(group: pa.Table) -> pa.Table:
        ordered = group.sort_by([(name, "ascending") for name in names.order])

        def column(name: str) -> list[Any]:
            values: list[Any] = ordered[name].to_pylist()
            return values

        records = Records(
            late=column(names.late),
            ts_ms=column(names.ts_ms),
            trigger_values=column(names.trigger_value),
            evictor_values=column(names.evictor_value),
            fired=column(names.fired)[0],
        )
        walked = walk(records, rules)
        added = {
            names.fires: pa.array(walked.fires, pa.bool_()),
            names.first: pa.array(walked.first, pa.int64()),
            names.until: pa.array(walked.until, pa.int64()),
            names.firings: pa.array([walked.firings] * len(walked.first), pa.int64()),
        }
        for name, values in added.items():
            ordered = ordered.append_column(name, values)
        return ordered

    return walk_over_group
