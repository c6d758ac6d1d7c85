"""Registers Strandline with Airflow: the page, its links and tabs, and a link from each task."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.plugins_manager import AirflowPlugin

from strandline_airflow.links import URL_PREFIX, ReportLink, page_path

_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='{colour}' "
    "stroke-width='2' stroke-linecap='round'><path d='M3 8c3-4 6-4 9 0s6 4 9 0'/>"
    "<path d='M3 14c3-4 6-4 9 0s6 4 9 0'/><path d='M4 20h1M10 20h1M15 20h1M20 20h1'/></svg>"
)
"""The icon, an SVG image; `_icon` makes a data URL of it, since a file would need a route of its
own, with access control."""
_QUERIES = {
    "dag": "?dag_id={DAG_ID}",
    "dag_run": "?dag_id={DAG_ID}&run_id={RUN_ID}",
    "task": "?dag_id={DAG_ID}&task_id={TASK_ID}",
}
"""The query of the page's URL, by the destination of a tab; Airflow fills in the ids."""


def external_views() -> list[dict[str, Any]]:
    """The external views that the plugin registers with Airflow."""
    look = {
        "name": "Strandline",
        "icon": _icon("%2318181b"),
        "icon_dark_mode": _icon("%23e4e4e7"),
    }
    tabs = [
        {
            **look,
            "href": page_path("/dag") + query,
            "destination": destination,
            "url_route": f"strandline_{destination}",
        }
        for destination, query in _QUERIES.items()
    ]
    nav = {"href": page_path("/"), "destination": "nav", "url_route": "strandline"}
    return [{**look, **nav, "nav_top_level": True}, *tabs]


def _icon(colour: str) -> str:
    text = _ICON.format(colour="COLOUR")
    return "data:image/svg+xml," + quote(text, safe="/:='").replace("COLOUR", colour)


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The FastAPI app of the page and the reports."""
    # Every process of Airflow loads this file; only the API server needs what that one imports.
    from strandline_airflow.page.app import app  # noqa: PLC0415

    await app(scope, receive, send)


class StrandlinePlugin(AirflowPlugin):
    """The plugin: the page, its views in Airflow's UI, and the link from a task to its report."""

    name = "strandline"
    operator_extra_links: list[Any] = [ReportLink()]  # noqa: RUF012 - so does the base class
    fastapi_apps: list[Any] = [  # noqa: RUF012
        {"app": pages, "url_prefix": URL_PREFIX, "name": "Strandline"}
    ]
    external_views: list[Any] = external_views()
