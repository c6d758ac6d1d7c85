"""Registers Strandline with Airflow."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from strandline_airflow.links import URL_PREFIX, ReportLink
from strandline_airflow.page.external_views import external_views


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
