"""The outcome of a replay of sessions as columns of records, by the session that has taken each.

The module is shipped to the engine's workers as text: of the library it imports only `operator_io`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.engine.replay.operator_io import NEVER, Replayed, Session


@dataclass(slots=True)
class OfSessions:
    """Columns of records, where windows merge, by the sessions that have taken them."""

    session: list[int | None]
    is_unfired: list[bool]
    shown_in: list[list[int]]
    in_state_as: list[int | None]
    in_state: list[dict[str, object]]

    @classmethod
    def of(cls, done: Replayed, is_shown: Sequence[bool], ts_ms: Sequence[int]) -> OfSessions:
        """The columns of a group, by its firings in force and its event times."""
        size = len(ts_ms)
        found = cls([None] * size, [False] * size, [[] for _ in ts_ms], [None] * size, [])
        for nth, session in enumerate(done.sessions):
            fired = [done.firings[number - 1] for number in session.fired]
            shown = [one for one in fired if is_shown[one.number - 1]]
            number = -len(found.in_state)
            for place in session.taken:
                at_ms = ts_ms[place]
                found.session[place] = nth
                found.is_unfired[place] = done.is_unfired(fired, place, at_ms)
                found.shown_in[place] = done.among(shown, place, at_ms)
                if done.removed_by[place] == NEVER:
                    found.in_state_as[place] = number
            if session.is_in_state:
                found.in_state.append(_as_firing(session, number, nth))
        return found


def _as_firing(session: Session, number: int, nth: int) -> dict[str, object]:
    """The n-th session, in state, as a firing by the watermark at its end."""
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
