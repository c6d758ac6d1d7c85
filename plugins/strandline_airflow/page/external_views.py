"""The places of the page in Airflow's UI: its navigation, and tabs of DAGs, runs and tasks."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from strandline_airflow.links import page_path

_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='{colour}' "
    "stroke-width='2' stroke-linecap='round'><path d='M3 8c3-4 6-4 9 0s6 4 9 0'/>"
    "<path d='M3 14c3-4 6-4 9 0s6 4 9 0'/><path d='M4 20h1M10 20h1M15 20h1M20 20h1'/></svg>"
)
"""The icon as a data URL: a file would need a route, and so protection."""
_HERE = {"dag": "?dag_id={DAG_ID}", "dag_run": "?dag_id={DAG_ID}&run_id={RUN_ID}"}
_HERE["task"] = "?dag_id={DAG_ID}&task_id={TASK_ID}"


def external_views() -> list[dict[str, Any]]:
    """The external views that the plugin registers with Airflow."""
    look = {
        "name": "Strandline",
        "icon": _icon("%2318181b"),
        "icon_dark_mode": _icon("%23e4e4e7"),
    }
    beside = [
        {
            **look,
            "href": page_path("/dag") + asked,
            "destination": destination,
            "url_route": f"strandline_{destination}",
        }
        for destination, asked in _HERE.items()
    ]
    nav = {"href": page_path("/"), "destination": "nav", "url_route": "strandline"}
    return [{**look, **nav, "nav_top_level": True}, *beside]


def _icon(colour: str) -> str:
    text = _ICON.format(colour="COLOUR")
    return "data:image/svg+xml," + quote(text, safe="/:='").replace("COLOUR", colour)
