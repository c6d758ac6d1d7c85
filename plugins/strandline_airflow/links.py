"""The way from a task to the report."""

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
    """Where Airflow serves one of the plugin's pages, below the UI's own address."""
    base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{base}{URL_PREFIX}{below}"


def report_path(pipeline: str) -> str:
    """Where Airflow serves a pipeline's report."""
    return page_path(f"/reports/{quote(pipeline, safe='')}")


@attrs.define()
class ReportLink(BaseOperatorLink):
    """A button on the task: the report of the pipeline that it ran for."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The served report; empty, hence no button, for a task without a pipeline."""
        pipeline = getattr(operator, "pipeline", None)
        return report_path(pipeline) if isinstance(pipeline, str) else ""
