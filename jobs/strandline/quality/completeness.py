"""The calendar: a row for each slot, over all keys, with what became of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from strandline.engine.history import Clock, History
from strandline.model.intervals import TimeRange, day_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_GAPS = 1_000_000
"""More gaps than this in one range are counted, not listed."""
COUNTS = ("on_time", "late_accepted", "late", "no_window", "missed_pairs")


def completeness(
    slots: pd.DataFrame,
    gaps: pd.DataFrame,
    *,
    accepted: Mapping[int, tuple[int, int]],
    late: Mapping[int, int],
    spec_fingerprint: str,
    run_id: str,
) -> pd.DataFrame:
    """The rows of `completeness` for some slots.

    Args:
        slots: the slots that have a record (`History.slots`).
        gaps: the gaps to list (`History.placed`, with `slot_ms`).
        accepted: by slot: the accepted records, and those of them that fired the window at once.
        late: by slot: the late records.
        spec_fingerprint: of the pipeline.
        run_id: of the run.
    """
    both = pd.concat([slots.assign(gap=False), gaps.assign(gap=True)], ignore_index=True)
    starts = both["slot_ms"].astype("int64").tolist()
    pairs = [accepted.get(start, (0, 0)) for start in starts]
    heard = both["channels_heard"] if "channels_heard" in both else pd.Series([None] * len(both))
    return pd.DataFrame(
        {
            "slot_date": pd.Series([day_of(start) for start in starts], dtype=object),
            "slot_start": _moments(both["slot_ms"]),
            "slot_end": _moments(both["slot_end_ms"]),
            "state": both["state"].astype(str),
            "gap": both["gap"].astype(bool),
            "fired_at": _moments(both["fire_at_ms"]),
            "closed_at": _moments(both["close_at_ms"]),
            "on_time": pd.array([count - again for count, again in pairs], dtype="int64"),
            "late_accepted": pd.array([again for _, again in pairs], dtype="int64"),
            "late": pd.array([late.get(start, 0) for start in starts], dtype="int64"),
            "no_window": pd.array([0] * len(starts), dtype="int64"),
            "missed_pairs": pd.array([0] * len(starts), dtype="int64"),
            "channels_heard": pd.Series(
                [channels if isinstance(channels, list) else [] for channels in heard], dtype=object
            ),
            "run_id": run_id,
            "spec_fingerprint": spec_fingerprint,
        }
    )


def count_gaps(history: History, within: TimeRange) -> int:
    """How many slots of a range are empty although earlier and later ones have records."""
    known = _known_slots(history)
    if known is None:
        return 0
    step = history.grid.windows.step_ms
    first = max(known.start_ms, history.grid.windows.ceil_start(within.start_ms))
    last = min(known.end_ms, within.end_ms)
    starts = history.well_formed["slot_ms"]
    filled = starts[(starts >= first) & (starts < last)].nunique()
    return max(-(-(last - first) // step) - int(filled), 0)


def list_gaps(history: History, within: TimeRange, clock: Clock) -> pd.DataFrame:
    """The gaps of a range, placed like slots; none if there are more than `MOST_GAPS`."""
    known = _known_slots(history)
    starts: list[int] = []
    if known is not None and 0 < count_gaps(history, within) <= MOST_GAPS:
        windows = history.grid.windows
        first = max(known.start_ms, windows.ceil_start(within.start_ms))
        filled = set(history.well_formed["slot_ms"].unique().tolist())
        every = range(first, min(known.end_ms, within.end_ms), windows.step_ms)
        starts = [start for start in every if start not in filled]
    gaps = history.placed(starts, clock)
    return gaps.assign(slot_ms=pd.Series(starts, dtype="int64", index=gaps.index))


def _known_slots(history: History) -> TimeRange | None:
    """From the first slot with a record to the last one, which is left out."""
    starts = history.well_formed["slot_ms"]
    return TimeRange(int(starts.min()), int(starts.max())) if len(starts) else None


def _moments(milliseconds: pd.Series[Any]) -> pd.Series[pd.Timestamp]:
    # in microseconds, which reach from year 1 to 9999; pandas' own nanoseconds do not
    values = [None if pd.isna(ms) else int(ms) * 1000 for ms in milliseconds]
    moments = np.array(values, dtype="datetime64[us]")
    return pd.Series(moments, index=milliseconds.index).dt.tz_localize("UTC")
