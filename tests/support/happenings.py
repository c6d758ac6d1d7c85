"""How much happens in a stream, by the reference: of several streams the law takes the richest."""

from __future__ import annotations

from collections import Counter

from strategies import Stream

from strandline.model.lateness import MAX_WATERMARK
from strandline.reference.answer import Cause, Replay, Timing

RARE = 3
"""What chance seldom brings counts so many times."""


def richness(stream: Stream) -> int:
    """How many sorts of things happen to its records and windows; rare ones weigh more."""
    return sum(RARE if is_rare else 1 for is_rare in happenings(stream.replay()).values())


def happenings(replay: Replay) -> dict[str, bool]:
    """What happens, and whether it is rare."""
    causes = {(firing.origin.cause, firing.timing) for firing in replay.firings}
    times = Counter((firing.key, firing.window) for firing in replay.firings)
    steps = {f.watermark_ms for f in replay.firings if f.origin.cause is Cause.END}
    happens = {
        "a window fires at once": ((Cause.RECORD, Timing.ON_TIME) in causes, False),
        "a window fires on a tick": ((Cause.TICK, Timing.ON_TIME) in causes, False),
        "a window fires at the end": ((Cause.END, Timing.ON_TIME) in causes, False),
        "a window fires on a step of the end": (bool(steps - {MAX_WATERMARK}), True),
        "a late record fires a window": (any(t is Timing.LATE for _, t in causes), True),
        "a window fires again and again": (max(times.values(), default=0) > 2, True),
        "one firing supersedes several": (any(len(f.supersedes) > 1 for f in replay.firings), True),
        "a record is late": (bool(replay.late), True),
        "a record has no window": (bool(replay.no_window), False),
        "a window is open": (any(not one.end_passed for one in replay.open_at_end), False),
        "a window is fired, not closed": (any(one.end_passed for one in replay.open_at_end), False),
        "the source goes idle": (bool(replay.valve_status), True),
        "an order is broken": (replay.violations > 0, True),
    }
    return {name: is_rare for name, (does, is_rare) in happens.items() if does}
