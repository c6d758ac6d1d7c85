"""The table `completeness`: a row for each slot, over all keys, with its records by outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from strandline.model.intervals import day_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strandline.model.intervals import TimeRange
    from strandline.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class Accepted:
    """The record counts of a window, over all keys.

    Attributes:
        records: accepted records.
        late_accepted: accepted records that arrived after the window had fired.
        in_newest: accepted records whose newest window it is.
        missed_pairs: records that it refused and another window accepted.
        unfired: records that were dropped with it before a firing contained them.
    """

    records: int = 0
    late_accepted: int = 0
    in_newest: int = 0
    missed_pairs: int = 0
    unfired: int = 0


def completeness(
    slots: pd.DataFrame,
    spec: PipelineSpec,
    *,
    run_id: str,
    accepted: Mapping[int, Accepted],
    refused: Mapping[tuple[int, str], int],
    gap: bool = False,
) -> pd.DataFrame:
    """The rows of `completeness` for some slots.

    Args:
        slots: the slots with a record (`Calendar.slots`), or gaps (`Gaps.listed`).
        spec: the pipeline.
        run_id: the run's id.
        accepted: the record counts of each window, by its id.
        refused: the records that no window accepted, by their newest window's id and by reason.
        gap: whether the slots are gaps.
    """
    slots = slots.reset_index(drop=True)
    starts = slots["slot_ms"].astype("int64").tolist()
    ids = slots["window_id"].astype("int64").tolist()
    counts = [accepted.get(window, Accepted()) for window in ids]
    unfired = {"unfired": _counts(window.unfired for window in counts)}
    return pd.DataFrame(
        {
            "slot_date": pd.Series([day_of(start) for start in starts], dtype=object),
            "slot_start": _timestamps(slots["slot_ms"]),
            "slot_end": _timestamps(slots["slot_end_ms"]),
            "state": slots["state"].astype(str),
            "gap": gap,
            "fired_at": _timestamps(slots["fire_at_ms"]),
            "closed_at": _timestamps(slots["close_at_ms"]),
            "on_time": _counts(window.records - window.late_accepted for window in counts),
            "late_accepted": _counts(window.late_accepted for window in counts),
            **{
                reason: _counts(refused.get((window, reason), 0) for window in ids)
                for reason in ("late", "no_window")
            },
            "missed_pairs": _counts(window.missed_pairs for window in counts),
            **(unfired if spec.may_go_unfired else {}),
            "channels_heard": _channels(slots),
            "slots": _several(slots),
            "run_id": run_id,
            "spec_fingerprint": spec.spec_fingerprint,
        }
    )


def in_ms(timestamps: pd.Series[Any]) -> pd.Series[int]:
    """Instants with a time zone, as milliseconds since 1970."""
    in_utc = pd.to_datetime(timestamps, utc=True).dt.tz_localize(None)
    return in_utc.astype("datetime64[ms]").astype("int64")


def slots_within(slots: pd.DataFrame, within: TimeRange) -> pd.DataFrame:
    """The slots that start in a range; also a row of several that begins before it and reaches in.

    Example: of one row for all hours of March, a range of its second day has a part.
    """
    starts_ms, ends_ms = in_ms(slots["slot_start"]), in_ms(slots["slot_end"])
    reaches_in = slots["slots"].notna() & (ends_ms > within.start_ms)
    reaches_in |= starts_ms >= within.start_ms
    return slots[reaches_in & (starts_ms < within.end_ms)]


def slots_outside(slots: pd.DataFrame, ranges: Iterable[TimeRange]) -> pd.DataFrame:
    """The slots that lie whole in none of some ranges."""
    starts_ms, ends_ms = in_ms(slots["slot_start"]), in_ms(slots["slot_end"])
    is_inside = pd.Series(False, index=slots.index)
    for one in ranges:
        is_inside |= (starts_ms >= one.start_ms) & (ends_ms <= one.end_ms)
    return slots[~is_inside]


def _channels(slots: pd.DataFrame) -> pd.Series[Any]:
    """The channels of each slot, empty for a gap; slots with the same channels share one list."""
    if "channels_heard" not in slots:
        return pd.Series([[] for _ in range(len(slots))], dtype=object)
    lists: dict[tuple[str, ...], list[str]] = {}
    return pd.Series(
        [
            lists.setdefault(tuple(channels), channels) if isinstance(channels, list) else []
            for channels in slots["channels_heard"]
        ],
        dtype=object,
    )


def _several(slots: pd.DataFrame) -> pd.Series[Any]:
    """The number of gaps in a row of the table; null for a single slot."""
    if "slots" not in slots:
        return pd.Series([None] * len(slots), dtype=object)
    return pd.Series([None if pd.isna(n) else int(n) for n in slots["slots"]], dtype=object)


def _counts(values: Iterable[int]) -> pd.Series[int]:
    return pd.Series(list(values), dtype="int64")


def _timestamps(milliseconds: pd.Series[Any]) -> pd.Series[pd.Timestamp]:
    # in microseconds, which reach from year 1 to 9999; pandas' own nanoseconds do not
    values = [None if pd.isna(ms) else int(ms) * 1000 for ms in milliseconds]
    timestamps = np.array(values, dtype="datetime64[us]")
    return pd.Series(timestamps, index=milliseconds.index).dt.tz_localize("UTC")
