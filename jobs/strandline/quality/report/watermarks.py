"""The report's plot of the watermarks' distance to the end of each arrival day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from math import isnan, nan
from typing import Any

import pandas as pd

from strandline.model.intervals import DAY_MS, HOUR_MS, LEAST_INSTANT_MS, day_of, midnight_of
from strandline.quality.report.figure import Figure, Series, TableBehind, lines
from strandline.quality.report.held_back_by import (
    name_of,
    offers_of,
    silent_channels,
)
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.spec.pipeline import channel_of

_MOST_CHANNELS = 8
_MOST_DAYS = 4_000


@dataclass(frozen=True)
class Watermarks:
    """The plot of the watermarks, and the channels that it does not show.

    Attributes:
        figure: a line for each channel, and for the combined watermark where `has_combined`; None
            if no channel has one.
        silent: the channels without a watermark, which hold the combined watermark back.
        left_out: the number of channels without a line; they are least behind.
        has_combined: whether the combined watermark waits for the slowest channel: none can go
            idle, and none has no watermark yet.
    """

    figure: Figure | None
    silent: tuple[str, ...]
    left_out: int
    has_combined: bool = False


def watermarks(
    channels: pd.DataFrame,
    spec: PipelineSpec,
    latest: pd.DataFrame | None = None,
    processed_ms: int | None = None,
    until: date | None = None,
) -> Watermarks:
    """The watermarks of channels, and the combined one, over the shown days.

    They go on to the last processed day, since a watermark falls behind while nothing arrives.

    Args:
        channels: see `ReportTables`.
        spec: the pipeline.
        latest: see `ReportTables`.
        processed_ms: see `ReportTables`.
        until: the last shown day; None: the last of all days.
    """
    until_now = channels if latest is None else latest
    days_over = (midnight_of(day) + DAY_MS for day in until_now["arrival_date"])
    over_ms = max([LEAST_INSTANT_MS if processed_ms is None else processed_ms, *days_over])
    last_ms = over_ms if until is None else min(over_ms, midnight_of(until) + DAY_MS)
    behind = _hours_behind(channels, until_now, spec, last_ms // DAY_MS - 1)
    known = {*_emitted(until_now, over_ms // DAY_MS - 1)["channel"]} | spec.retired_by(over_ms)
    silent = tuple(name_of(one, spec) for one in silent_channels(spec, known))
    if behind.empty:
        return Watermarks(None, silent if spec.source.channel else (), 0)
    drawn = _furthest_behind(behind, spec)
    left_out = len(behind.columns) - len(drawn)
    has_combined = not silent and spec.waits_for_all
    if len(behind.columns) > 1 and has_combined:
        drawn += _combined(behind, spec)
    return Watermarks(_figure(drawn), silent, left_out, has_combined)


def _furthest_behind(
    behind: pd.DataFrame, spec: PipelineSpec
) -> list[tuple[Series, pd.Series[float]]]:
    """The lines of the channels that are furthest behind on the last day, by name."""
    furthest = behind.iloc[-1].sort_values(ascending=False, kind="stable").index[:_MOST_CHANNELS]
    nameless = "all records" if spec.source.channel is None else "(empty)"
    return [
        (Series(name_of(str(name), spec) or nameless, f"colour-{number}"), behind[name])
        for number, name in enumerate(sorted(furthest, key=str))
    ]


def _combined(behind: pd.DataFrame, spec: PipelineSpec) -> list[tuple[Series, pd.Series[float]]]:
    """The line of the combined watermark: of an interval join, the side that is further behind.

    Windows over two sources combine the channels of both at once, as those of one source. There is
    no line if it has no value.
    """
    sources = spec.sides if spec.result == PAIRS else {"": spec}
    of_sources = [
        _combined_of(behind[[one for one in behind if str(one).startswith(prefix)]], prefix, side)
        for prefix, side in ((channel_of(name, ""), side) for name, side in sources.items())
    ]
    hours = pd.concat(of_sources, axis=1).max(axis=1, skipna=False)
    return [(Series("combined", "combined"), hours)] if hours.notna().any() else []


def _combined_of(behind: pd.DataFrame, prefix: str, spec: PipelineSpec) -> pd.Series[float]:
    """The hours of a source's watermark: the slowest channel's that takes part, or an earlier.

    It stays where it was when a channel joins behind it. There is none while a declared channel has
    none; a discovered one takes part from its first record on.
    """
    own = behind.rename(columns=lambda name: str(name).removeprefix(prefix))
    slowest: dict[int, Any] = {}
    for day in map(int, own.index):
        over_ms = (day + 1) * DAY_MS
        of_day = own.loc[day].drop([*spec.retired_by(over_ms)], errors="ignore")
        has_all = of_day.reindex(spec.waited_for(over_ms)).notna().all()
        slowest[day] = of_day.max() if has_all else nan
    ends = pd.Series(slowest.keys(), index=slowest.keys()) * (DAY_MS // HOUR_MS)
    return ends - (ends - pd.Series(slowest)).cummax()


def _figure(drawn: list[tuple[Series, pd.Series[float]]]) -> Figure:
    days = [int(day) for day in drawn[0][1].index]
    first = day_of(days[0] * DAY_MS)
    hours: list[tuple[Series, list[float | None]]] = [
        (series, [None if isnan(one) else round(one, 2) for one in of.astype(float)])
        for series, of in drawn
    ]
    texts = [["–" if one is None else f"{one:.1f}" for one in of] for _, of in hours]
    rows = [
        (day_of(day * DAY_MS).isoformat(), *(of[place] for of in texts))
        for place, day in enumerate(days)
    ]
    return lines(
        "hours from each watermark to the end of the day",
        [day - days[0] for day in days],
        hours,
        unit="h behind",
        table=TableBehind.of(("day", *(series.name for series, _ in hours)), rows),
        first=first,
    )


def _hours_behind(
    channels: pd.DataFrame, latest: pd.DataFrame, spec: PipelineSpec, last: int
) -> pd.DataFrame:
    """The hours from each channel's watermark (a column) to the end of each day (a row).

    The days go on to `last`, counted from 1970, or to the last observed one if that is later.
    A channel without a row on these days begins with its watermark from before, unless it had
    retired by then.
    """
    observed = sorted({midnight_of(day) // DAY_MS for day in channels["arrival_date"]})
    if not observed:
        return pd.DataFrame()
    first, last = observed[0], max(observed[-1], last)
    before = _emitted(latest, last)
    before = before[~before["channel"].isin([*spec.retired_by(first * DAY_MS)])]
    rows = pd.concat([_emitted(channels, last), before])
    if rows.empty:
        return pd.DataFrame()
    emitted = rows.pivot_table(index="day", columns="channel", values="watermark", aggfunc="max")
    is_short = last - first < _MOST_DAYS
    days = pd.Index(range(first, last + 1) if is_short else sorted({*observed, last}))
    watermark = emitted.reindex(emitted.index.union(days)).cummax().ffill().reindex(days)
    midnights = pd.Series([(day + 1) * DAY_MS for day in days], index=days)
    return watermark.dropna(axis=1, how="all").rsub(midnights, axis=0) / HOUR_MS


def _emitted(channels: pd.DataFrame, last: int) -> pd.DataFrame:
    """The watermarks of channels by the `day` on which they are emitted, up to the day `last`."""
    rows = offers_of(channels).dropna(subset="watermark_ms")
    rows = pd.DataFrame(
        {
            "day": (rows["at_ms"] // DAY_MS).astype("int64"),
            # hours for the eye: what a float loses of a long is not seen
            "watermark": rows["watermark_ms"].astype("float64"),
            "channel": rows["channel"].fillna(""),
        }
    )
    return rows[rows["day"] <= last]
