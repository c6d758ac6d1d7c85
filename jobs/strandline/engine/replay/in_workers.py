"""The replay of a partition in a worker of the engine: Arrow in, Arrow out, one call a group.

The module is shipped to the workers as text, since this library is not installed there. Of the
library it imports modules of this room alone, which are shipped with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from strandline.engine.replay.grouped import bounds_of, in_order
from strandline.engine.replay.of_sessions import OfSessions
from strandline.engine.replay.operator_io import (
    NEVER,
    OF_A_RECORD,
    Firing,
    Records,
    Replayed,
    Rules,
    Session,
)
from strandline.engine.replay.window_operator import replay

_NUMBER, _FLAG, _NUMBERS = pa.int64(), pa.bool_(), pa.list_(pa.int64())
_EARLIER = pa.struct([("start_ms", _NUMBER), ("end_ms", _NUMBER), ("firing", _NUMBER)])
FIRING = pa.struct(
    [
        ("number", _NUMBER),
        ("start_ms", _NUMBER),
        ("end_ms", _NUMBER),
        ("time_ms", _NUMBER),
        ("reaches_ms", _NUMBER),
        ("late", _FLAG),
        ("ended_ms", _NUMBER),
        ("session", _NUMBER),
        ("firing", _NUMBER),
        ("replaces_before", _FLAG),
        ("is_shown", _FLAG),
        ("supersedes", pa.list_(_EARLIER)),
    ]
)
"""A firing: the fields of `Firing`; when the input of its session had ended; the number of the
session in the group; its number in its window; whether it replaces the one before, and whether none
replaces it; all firings that it replaces, where windows merge."""
_OF_EACH = {
    "late": _FLAG,
    "first": _NUMBER,
    "until": _NUMBER,
    "is_unfired": _FLAG,
}
_OF_MERGING = {
    "is_refused": _FLAG,
    "session": _NUMBER,
    "in_start_ms": _NUMBER,
    "in_end_ms": _NUMBER,
    "shown_in": _NUMBERS,
    "in_state_as": _NUMBER,
    "in_state": pa.list_(FIRING),
}
_OF_OTHERS = {"is_shown": _FLAG, "is_in_state": _FLAG}


def types_of(rules: Rules) -> dict[str, pa.DataType]:
    """The columns that a replay adds to records, by name: fields of `Replayed`, and others.

    `is_unfired`: whether the record has left the state before a firing found it (where windows do
    not merge: whether none has found it yet); `firings`: the firings that it causes, or that the
    watermark causes between it and the next record. Where windows do not merge, `is_shown`: whether
    a firing in force contains it; `is_in_state`: whether it is in state at the end.

    Where they merge, `is_refused`: whether the record is late; `session`: the number of its session
    in the group; `shown_in`: the firings in force that contain it; `in_state_as`: the number of the
    window in state that contains it; `in_state`, of the last record of a group: its windows in
    state, in the form of firings that have still to come, with numbers below 1, and `is_shown` if
    they have not fired at their end.
    """
    own = _OF_MERGING if rules.merging else _OF_OTHERS
    return {**_OF_EACH, **own, "firings": pa.list_(FIRING)}


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a replay by name.

    Attributes:
        group: the columns that identify a group.
        order: the columns that order the records of a group.
        records: the columns for the fields of `Records`, in order; None: the rules do not need it.
        until_ms: the column of a group's watermark at the end; null: MAX_WATERMARK.
        added: the columns of `types_of`, in order.
        compared: columns whose values are compared, each with a text for where one is null.
        longest_ms: the largest allowed length of a record's own window, with a text for where one
            is longer; None: any length is allowed.
    """

    group: tuple[str, ...]
    order: tuple[str, ...]
    records: tuple[str | None, ...]
    until_ms: str
    added: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]
    longest_ms: tuple[int, str] | None = None


@dataclass(slots=True)
class _Firings:
    """The fields of `FIRING` that are derived after the replay of a group."""

    nth: list[int] = field(default_factory=list)
    replaces_before: list[bool] = field(default_factory=list)
    is_shown: list[bool] = field(default_factory=list)

    @classmethod
    def of(cls, firings: Sequence[Firing]) -> _Firings:
        found, last_of = cls(), dict[tuple[int, int], int]()
        for firing in firings:
            window = (firing.start_ms, firing.end_ms)
            before = last_of.get(window)
            found.nth.append(1 if before is None else found.nth[before - 1] + 1)
            found.replaces_before.append(before in firing.supersedes)
            last_of[window] = firing.number
        superseded = {*chain.from_iterable(firing.supersedes for firing in firings)}
        shown = {*last_of.values()} - superseded
        found.is_shown = [firing.number in shown for firing in firings]
        return found


class _Partition:
    """The added columns of a partition, group after group."""

    def __init__(self, rules: Rules) -> None:
        self._rules, self._types = rules, types_of(rules)
        self._records: dict[str, list[object]] = {n: [] for n in self._types if n != "firings"}
        self._firings: dict[str, list[object]] = {name: [] for name in FIRING.names}
        self._caused: list[int] = []

    def add(self, done: Replayed, ts_ms: Sequence[int]) -> None:
        """Add the outcome of a group, whose records have these event times."""
        firings = _Firings.of(done.firings)
        if self._rules.merging:
            self._add_of_merging(done, ts_ms, firings)
        else:
            last = len(done.firings)
            lifetimes = zip(done.first, done.until, strict=True)
            self._extend(
                self._records,
                is_unfired=[first > last for first in done.first],
                is_shown=[first <= last < until for first, until in lifetimes],
                is_in_state=[by == NEVER for by in done.removed_by],
            )
        self._extend(
            self._records,
            late=done.late,
            first=done.first,
            until=done.until,
        )
        caused = [0] * len(done.first)
        for firing in done.firings:
            caused[firing.after] += 1
        self._caused += caused
        self._add_firings(done, firings)

    def _add_of_merging(self, done: Replayed, ts_ms: Sequence[int], firings: _Firings) -> None:
        of_each = OfSessions.of(done, firings.is_shown, ts_ms)
        self._extend(
            self._records,
            is_refused=done.refused,
            session=of_each.session,
            in_start_ms=done.starts_ms,
            in_end_ms=done.ends_ms,
            is_unfired=of_each.is_unfired,
            shown_in=of_each.shown_in,
            in_state_as=of_each.in_state_as,
            in_state=[*([[]] * (len(ts_ms) - 1)), of_each.in_state],
        )

    def _add_firings(self, done: Replayed, firings: _Firings) -> None:
        fired = done.firings
        sessions: list[tuple[int | None, Session | None]] = [(None, None)] * len(fired)
        for nth, session in enumerate(done.sessions):
            for number in session.fired:
                sessions[number - 1] = nth, session

        supersedes: list[list[dict[str, int]] | None] = [None] * len(fired)
        if self._rules.merging and self._rules.lists_superseded:
            # the lists of a session share their entries, of which there may be millions
            windows = [
                {"start_ms": one.start_ms, "end_ms": one.end_ms, "firing": nth}
                for one, nth in zip(fired, firings.nth, strict=True)
            ]
            supersedes = [[windows[n - 1] for n in done.superseded_by(one)] for one in fired]

        self._extend(
            self._firings,
            number=[firing.number for firing in fired],
            start_ms=[firing.start_ms for firing in fired],
            end_ms=[firing.end_ms for firing in fired],
            time_ms=[firing.time_ms for firing in fired],
            reaches_ms=[firing.reaches_ms for firing in fired],
            late=[firing.late for firing in fired],
            ended_ms=[session and session.ended_ms for _, session in sessions],
            session=[nth for nth, _ in sessions],
            firing=firings.nth,
            replaces_before=firings.replaces_before,
            is_shown=firings.is_shown,
            supersedes=supersedes,
        )

    @staticmethod
    def _extend(columns: dict[str, list[object]], **values: Sequence[object]) -> None:
        for name, of_group in values.items():
            columns[name] += of_group

    def columns(self) -> Iterator[pa.Array]:
        """The columns of `types_of`."""
        for name, values in self._records.items():
            yield pa.array(values, self._types[name])
        fields = [pa.array(self._firings[f.name], f.type) for f in FIRING]
        offsets = pa.array([0, *accumulate(self._caused)], pa.int32())
        firings = pa.StructArray.from_arrays(fields, fields=[*FIRING])
        yield pa.ListArray.from_arrays(offsets, firings)


def replay_partition(
    batches: Iterable[pa.RecordBatch], names: Names, rules: Rules
) -> Iterator[pa.RecordBatch]:
    """Replay all groups of a partition, whose records come in any order.

    Args:
        batches: all records of the partition; `mapInArrow` gives them.
        names: the names of their columns.
        rules: the trigger and the evictor.

    Raises:
        ValueError: a value to compare is null, or a record's own window is too long.
    """
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    ordered = in_order(pa.Table.from_batches(parts), [*names.group, *names.order])
    for name, problem in names.compared:
        if ordered[name].null_count:
            raise ValueError(OF_A_RECORD + problem)
    if names.longest_ms is not None:
        most_ms, problem = names.longest_ms
        starts, ends = (ordered[str(name)] for name in names.records[:2])
        if pc.max(pc.subtract(ends, starts)).as_py() > most_ms:
            raise ValueError(OF_A_RECORD + problem)
    for name, values in zip(names.added, _replayed(ordered, names, rules), strict=True):
        ordered = ordered.append_column(name, values)
    yield from ordered.combine_chunks().to_batches()


def _replayed(ordered: pa.Table, names: Names, rules: Rules) -> Iterator[pa.Array]:
    """The added columns of ordered records, replayed group after group."""
    columns = [[] if name is None else ordered[name].to_pylist() for name in names.records]
    bounds = bounds_of(ordered, names.group)
    until_ms = ordered[names.until_ms].take(pa.array(bounds[:-1])).to_pylist()
    partition = _Partition(rules)
    for number, (begin, end) in enumerate(pairwise(bounds)):
        records = Records(*(column[begin:end] for column in columns))
        partition.add(replay(records, rules, until_ms[number]), records.ts_ms)
    return partition.columns()
