"""The report's plots of what was quarantined, and of how late it was."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from strandline.quality.report.format import duration, percent, plain
from strandline.quality.report.theme import LATE, PALETTE, styled

REFUSED = ("late", "no_window")
"""The reasons of well-formed records; all others are of malformed ones."""

_HOUR_MS = 3_600_000
_NEARLY_ALL = 95
_EXTRA_MS = tuple(minutes * 60_000 for minutes in (5, 15, 60, 120, 360, 720, 1440, 10_080))


@dataclass(frozen=True)
class Saved:
    """The late records that an extra allowed lateness would have saved."""

    extra: str
    records: int
    share: str


def quarantine_plot(quarantine: pd.DataFrame) -> go.Figure | None:
    """Quarantined records by day and reason: refused ones above, malformed ones below."""
    days = quarantine.dropna(subset=["day"])
    if days.empty:
        return None
    groups = [
        (title, reasons)
        for title, is_refused in (("refused", True), ("malformed", False))
        if (reasons := _by_size(days[days["reason"].isin(REFUSED) == is_refused]))
    ]
    figure = make_subplots(rows=len(groups), cols=1, shared_xaxes=True, vertical_spacing=0.09)
    colours = iter([*PALETTE[:5], *PALETTE[6:]] * (1 + quarantine["reason"].nunique()))
    for row, (title, reasons) in enumerate(groups, start=1):
        for reason in reasons:
            bars = days[days["reason"] == reason].sort_values("day")
            figure.add_bar(
                x=[str(day) for day in bars["day"]],
                y=bars["records"],
                name=plain(reason),
                marker={"color": LATE if reason == "late" else next(colours), "line": {"width": 0}},
                hovertemplate=f"%{{x}}<br>{plain(reason)}: %{{y:,}}<extra></extra>",
                row=row,
                col=1,
            )
        figure.update_yaxes(title_text=title, rangemode="tozero", row=row, col=1)
    legend_px = 20 * (1 + len(figure.data) // 4)
    styled(
        figure,
        height=40 + legend_px + 150 * len(groups),
        barmode="stack",
        bargap=0.1,
        showlegend=True,
    )
    figure.update_xaxes(type="date", showgrid=False)
    return figure


def lateness_plot(lateness: pd.DataFrame) -> go.Figure | None:
    """The share of the late records that each extra allowed lateness would have saved."""
    found = lateness.groupby("late_by_ms")["records"].sum().sort_index()
    if not found.sum():
        return None
    saved = found.cumsum() / found.sum() * 100
    hours = [late_by_ms / _HOUR_MS for late_by_ms in found.index]
    texts = [
        f"{duration(late_by_ms)} more saves {share:.1f} % ({total:,} records)"
        for late_by_ms, share, total in zip(found.index, saved, found.cumsum(), strict=True)
    ]
    figure = go.Figure(
        go.Scatter(
            x=[0.0, *hours],
            y=[0.0, *saved],
            text=["as it is", *texts],
            mode="lines",
            line={"color": LATE, "width": 2, "shape": "hv"},
            fill="tozeroy",
            fillcolor="rgba(213,94,0,0.12)",
            hovertemplate="%{text}<extra></extra>",
        )
    )
    styled(figure, height=260)
    # a few that are later by far would squeeze all others into the first pixels
    nearly_all = next(x for x, share in zip(hours, saved, strict=True) if share >= _NEARLY_ALL)
    end = hours[-1] if hours[-1] < 3 * nearly_all else 1.05 * nearly_all
    figure.update_xaxes(title_text="extra allowed lateness (hours)", range=[0, end])
    figure.update_yaxes(title_text="late records saved (%)", range=[0, 102])
    return figure


def saved_by(lateness: pd.DataFrame) -> tuple[Saved, ...]:
    """What some extra allowed lateness would have saved, and last the least that saves all."""
    total = int(lateness["records"].sum())
    if not total:
        return ()
    worst_ms = int(lateness["late_by_ms"].max())
    lengths_ms = [*(extra_ms for extra_ms in _EXTRA_MS if extra_ms < worst_ms), worst_ms]
    counts = [
        int(lateness["records"][lateness["late_by_ms"] <= extra_ms].sum())
        for extra_ms in lengths_ms
    ]
    return tuple(
        Saved(duration(extra_ms), count, percent(count, total))
        for extra_ms, count in zip(lengths_ms, counts, strict=True)
    )


def _by_size(days: pd.DataFrame) -> list[str]:
    """The reasons, the most frequent first."""
    totals = days.groupby("reason")["records"].sum()
    return list(totals.sort_values(ascending=False, kind="stable").index)
