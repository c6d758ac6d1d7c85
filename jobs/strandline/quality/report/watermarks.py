"""How far the watermarks stood behind the clock at the end of each day."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.quality.report.format import plain
from strandline.quality.report.held_back_by import silent_channels
from strandline.quality.report.theme import INK, PALETTE, styled
from strandline.spec import PipelineSpec

_MOST_CHANNELS = 8
_MOST_DAYS = 4_000
_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Watermarks:
    """The plot, and what it does not show.

    Attributes:
        figure: a line a channel and one for the combined watermark; None if no channel has one.
        silent: the channels without a watermark that hold everything back.
        left_out: how many channels have no line, the ones least behind.
    """

    figure: go.Figure | None
    silent: tuple[str, ...]
    left_out: int


def watermarks(
    channels: pd.DataFrame, spec: PipelineSpec, latest: pd.DataFrame | None = None
) -> Watermarks:
    """The progress of the watermarks, as `ReportTables` has them: `channels`, and `latest`."""
    behind = _hours_behind(channels)
    declared = spec.source.declared_channels
    said = (channels if latest is None else latest).dropna(subset=["settled_ms"])
    silent = silent_channels(spec, set(said["channel"].fillna("")))
    if behind.empty:
        return Watermarks(None, silent if spec.source.channel else (), 0)
    furthest = behind.iloc[-1].sort_values(ascending=False, kind="stable").index[:_MOST_CHANNELS]
    figure = go.Figure()
    for number, name in enumerate(sorted(furthest, key=str)):
        _add_line(figure, str(name) or "all records", behind[name], PALETTE[number], 1.5)
    if len(behind.columns) > 1 and not silent:
        # a channel takes part from its first record on, if channels are discovered
        combined = behind.max(axis=1, skipna=declared is None)
        _add_line(figure, "combined", combined, INK, 2.5)
    styled(figure, height=300, showlegend=True, hovermode="x unified")
    figure.update_xaxes(type="date", showgrid=False)
    figure.update_yaxes(title_text="hours behind", rangemode="tozero")
    return Watermarks(figure, silent, len(behind.columns) - len(furthest))


def _hours_behind(channels: pd.DataFrame) -> pd.DataFrame:
    """A row a day, a column a channel: the hours from its watermark to the day's end."""
    rows = channels.assign(
        day=[midnight_of(day) // DAY_MS for day in channels["arrival_date"]],
        channel=channels["channel"].fillna(""),
        # hours for the eye: what a float loses of a long is not seen
        **channels.filter(["settled_ms", "pending_ms"]).astype("float64"),
    )
    settled = rows.pivot_table(index="day", columns="channel", values="settled_ms", aggfunc="max")
    if settled.empty:
        return pd.DataFrame()
    first, last = int(rows["day"].min()), int(rows["day"].max())
    days = range(first, last + 1) if last - first < _MOST_DAYS else settled.index
    watermark = settled.reindex(days).cummax().ffill()
    if "pending_ms" in rows and rows["pending_ms"].notna().any():
        # what was not yet emitted at one midnight is at the next
        pending = rows.pivot_table(
            index="day", columns="channel", values="pending_ms", aggfunc="max"
        )
        emitted = pending.reindex(days).cummax().ffill().shift(1)
        watermark = watermark.combine(emitted, lambda a, b: a.where(~(b > a) & a.notna(), b))
    midnights = pd.Series([(day + 1) * DAY_MS for day in watermark.index], index=watermark.index)
    return watermark.rsub(midnights, axis=0) / _HOUR_MS


def _add_line(
    figure: go.Figure, name: str, hours: pd.Series[float], colour: str, width: float
) -> None:
    figure.add_scatter(
        x=[day_of(int(day) * DAY_MS).isoformat() for day in hours.index],
        y=hours.round(2),
        name=plain(name),
        mode="lines" if len(hours) > 2 else "lines+markers",
        line={"color": colour, "width": width},
        hovertemplate=f"{plain(name)}: %{{y:.1f}} h<extra></extra>",
    )
