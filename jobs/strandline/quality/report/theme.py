"""What the report's plots look like."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

INK = "#1f2933"
FAINT = "#616e7c"
RULE = "#e4e7eb"
SOFT = "#f5f7fa"
PAPER = "rgba(0,0,0,0)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# Okabe and Ito: told apart by every kind of colour vision
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7300", "#999999")
LATE = "#d55e00"


def styled(figure: go.Figure, *, height: int, **layout: Any) -> go.Figure:
    """A figure in the report's style; its width is that of the page."""
    axis = {
        "gridcolor": RULE,
        "linecolor": RULE,
        "zerolinecolor": RULE,
        "tickfont": {"color": FAINT, "size": 11},
        "title": {"font": {"color": FAINT, "size": 12}, "standoff": 8},
        "automargin": True,
    }
    figure.update_layout(
        template="none",
        height=height,
        autosize=True,
        margin={"l": 56, "r": 16, "t": 8, "b": 32},
        font={"family": FONT, "color": INK, "size": 12},
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        hoverlabel={"bgcolor": "white", "bordercolor": RULE, "font": {"color": INK, "size": 12}},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure.update_layout(**layout)
