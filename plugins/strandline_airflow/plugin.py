"""Registers Strandline with Airflow."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from strandline_airflow.links import URL_PREFIX, ReportLink


async def reports(scope: Any, receive: Any, send: Any) -> None:
    """The app that serves the reports."""
    # Every process of Airflow loads this file; only the API server needs what that one imports.
    from strandline_airflow.reports import app  # noqa: PLC0415

    await app(scope, receive, send)


class StrandlinePlugin(AirflowPlugin):
    """The link from a task to its report, and the reports themselves."""

    name = "strandline"
    operator_extra_links: list[Any] = [ReportLink()]  # noqa: RUF012 - so does the base class
    fastapi_apps: list[Any] = [  # noqa: RUF012
        {"app": reports, "url_prefix": URL_PREFIX, "name": "Strandline reports"}
    ]
