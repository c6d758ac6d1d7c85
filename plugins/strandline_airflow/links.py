"""Links from a task to the pages of its pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import attrs
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/strandline"


def page_path(below: str) -> str:
    """The path of one of the plugin's pages, relative to the address of Airflow's UI."""
    base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{base}{URL_PREFIX}{below}"


def report_path(pipeline: str) -> str:
    """The path of a pipeline's report, relative to the address of Airflow's UI."""
    return page_path(f"/reports/{quote(pipeline, safe='')}")


@attrs.define()
class ReportLink(BaseOperatorLink):
    """The button of a task that opens the report of its pipeline."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The report's path; empty for a task without a pipeline, which then has no button."""
        pipeline = getattr(operator, "pipeline", None)
        return report_path(pipeline) if isinstance(pipeline, str) else ""
