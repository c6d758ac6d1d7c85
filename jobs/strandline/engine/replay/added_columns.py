"""The columns that a replay adds to records: their outcome, in Arrow, group after group.

The module is shipped to the engine's workers as text: of the library it imports only `operator_io`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from strandline.engine.replay.operator_io import NEVER, Replayed, Rules, Session

ADDED = "_strandline_replay_"
"""The prefix of the names of added columns."""
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
"""A firing as a struct: fields of `Firing`, and further ones.

The further fields are when the input of its session ended, in ms; the number of the session in the
group; the number of the firing in its window; whether it supersedes the firing before; whether it
is in force; and, where windows merge, all firings that it supersedes."""
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
    """The types of the columns that a replay adds to records, by name without ADDED.

    They are fields of `Replayed`, and the following. A firing is *in force* unless a later firing
    supersedes it.

    `is_unfired`: whether the record left the state before a firing contained or evicted it (where
    windows do not merge: also a record in state that no firing has contained yet); `firings`: the
    firings that it causes, or that the watermark causes between it and the next record.

    Where windows do not merge, `is_shown`: whether a firing in force contains the record;
    `is_in_state`: whether it is in state at the end.

    Where they merge, `is_refused`: whether the record is late; `session`: the number of its session
    in the group; `shown_in`: the firings in force that contain it; `in_state_as`: the number of the
    window in state that contains it; `in_state`, only for the last record of a group: the group's
    windows in state, in the form of future firings, with numbers below 1, and `is_shown` if they
    have not fired at their end.
    """
    own = _OF_MERGING if rules.merging else _OF_OTHERS
    return {**_OF_EACH, **own, "firings": pa.list_(FIRING)}


_Columns = Mapping[str, Sequence[object]]
"""The values of a group's records or firings, by the name of their column or field."""


class AddedColumns:
    """The added columns of a partition, while its groups are replayed one after the other."""

    def __init__(self, rules: Rules) -> None:
        """Start without a record."""
        self._rules, self._types = rules, types_of(rules)
        self._records: dict[str, list[object]] = {n: [] for n in self._types if n != "firings"}
        self._firings: dict[str, list[object]] = {name: [] for name in FIRING.names}
        self._caused: list[int] = []

    def add(self, done: Replayed, ts_ms: Sequence[int]) -> None:
        """Add the outcome of a group; `ts_ms`: the event times of its records, in ms."""
        fired = _of_firings(done, self._rules)
        _extend(self._firings, fired)
        caused = [0] * len(done.first)
        for firing in done.firings:
            caused[firing.after] += 1
        self._caused += caused
        merging = self._rules.merging
        own = _of_sessions(done, fired["is_shown"], ts_ms) if merging else _of_window(done)
        _extend(self._records, own)
        _extend(self._records, {"late": done.late, "first": done.first, "until": done.until})

    def columns(self) -> Iterator[tuple[str, pa.Array]]:
        """The columns of `types_of`, with their names."""
        for name, values in self._records.items():
            yield ADDED + name, pa.array(values, self._types[name])
        fields = [pa.array(self._firings[f.name], f.type) for f in FIRING]
        offsets = pa.array([0, *accumulate(self._caused)], pa.int32())
        firings = pa.StructArray.from_arrays(fields, fields=[*FIRING])
        yield f"{ADDED}firings", pa.ListArray.from_arrays(offsets, firings)


def _extend(columns: dict[str, list[object]], of_group: _Columns) -> None:
    for name, values in of_group.items():
        columns[name] += values


def _of_firings(done: Replayed, rules: Rules) -> _Columns:
    """The fields of `FIRING` for the firings of a group."""
    fired, nth, last_of = done.firings, list[int](), dict[tuple[int, int], int]()
    replaces_before = []
    for firing in fired:
        window = (firing.start_ms, firing.end_ms)
        before = last_of.get(window)
        nth.append(1 if before is None else nth[before - 1] + 1)
        replaces_before.append(before in firing.supersedes)
        last_of[window] = firing.number
    superseded = {*chain.from_iterable(firing.supersedes for firing in fired)}
    shown = {*last_of.values()} - superseded

    sessions: list[tuple[int | None, Session | None]] = [(None, None)] * len(fired)
    for place, session in enumerate(done.sessions):
        for number in session.fired:
            sessions[number - 1] = place, session
    return {
        "number": [firing.number for firing in fired],
        "start_ms": [firing.start_ms for firing in fired],
        "end_ms": [firing.end_ms for firing in fired],
        "time_ms": [firing.time_ms for firing in fired],
        "reaches_ms": [firing.reaches_ms for firing in fired],
        "late": [firing.late for firing in fired],
        "ended_ms": [session and session.ended_ms for _, session in sessions],
        "session": [place for place, _ in sessions],
        "firing": nth,
        "replaces_before": replaces_before,
        "is_shown": [firing.number in shown for firing in fired],
        "supersedes": _superseded(done, nth, rules),
    }


def _superseded(
    done: Replayed, nth: Sequence[int], rules: Rules
) -> Sequence[list[dict[str, int]] | None]:
    """All firings that each firing supersedes; `nth`: the number of each firing in its window."""
    fired = done.firings
    if not (rules.merging and rules.lists_superseded):
        return [None] * len(fired)
    # the lists of a session share their entries, of which there may be millions
    windows = [
        {"start_ms": one.start_ms, "end_ms": one.end_ms, "firing": number}
        for one, number in zip(fired, nth, strict=True)
    ]
    return [[windows[number - 1] for number in done.superseded_by(one)] for one in fired]


def _of_window(done: Replayed) -> _Columns:
    """The columns of records that depend on their window, where windows do not merge."""
    last = len(done.firings)
    lifetimes = zip(done.first, done.until, strict=True)
    return {
        "is_unfired": [first > last for first in done.first],
        "is_shown": [first <= last < until for first, until in lifetimes],
        "is_in_state": [by == NEVER for by in done.removed_by],
    }


def _of_sessions(done: Replayed, is_shown: Sequence[object], ts_ms: Sequence[int]) -> _Columns:
    """The columns of records that depend on their session, where windows merge.

    Args:
        done: the outcome of a group's replay.
        is_shown: whether each of its firings is in force.
        ts_ms: the event time of each record.
    """
    size = len(ts_ms)
    of_session: list[int | None] = [None] * size
    is_unfired = [False] * size
    shown_in: list[list[int]] = [[]] * size
    in_state_as: list[int | None] = [None] * size
    in_state: list[dict[str, object]] = []
    for nth, session in enumerate(done.sessions):
        fired = [done.firings[number - 1] for number in session.fired]
        shown = [one for one in fired if is_shown[one.number - 1]]
        number = -len(in_state)
        for place in session.taken:
            at_ms = ts_ms[place]
            of_session[place] = nth
            is_unfired[place] = done.is_unfired(fired, place, at_ms)
            shown_in[place] = done.among(shown, place, at_ms)
            if done.removed_by[place] == NEVER:
                in_state_as[place] = number
        if session.is_in_state:
            in_state.append(_as_firing(session, number, nth))
    return {
        "is_refused": done.refused,
        "session": of_session,
        "in_start_ms": done.starts_ms,
        "in_end_ms": done.ends_ms,
        "is_unfired": is_unfired,
        "shown_in": shown_in,
        "in_state_as": in_state_as,
        "in_state": [*([[]] * (size - 1)), in_state],
    }


def _as_firing(session: Session, number: int, nth: int) -> dict[str, object]:
    """A session in state as a future firing, by the watermark at its end."""
    max_timestamp_ms = session.end_ms - 1
    return {
        "number": number,
        "start_ms": session.start_ms,
        "end_ms": session.end_ms,
        "time_ms": max_timestamp_ms,
        "reaches_ms": max_timestamp_ms,
        "session": nth,
        "is_shown": session.is_open,
    }
