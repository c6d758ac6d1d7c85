"""The check for stale pipelines, scheduled by time since a stale pipeline has no runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context

from strandline_airflow.alerts import alert_findings
from strandline_airflow.commands import CommandOperator


class StrandlineWatchOperator(CommandOperator):
    """Sends the alerts of a pipeline that has become stale, to the receivers in its file.

    It is stale if `strandline status` finds that arrivals or runs are missing, or if yesterday is
    not processed.
    """

    ui_color = "#f2dcdc"

    def execute(self, context: Context) -> None:
        """Read the status, and send an alarm for each new finding.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        status = self._call("status", str(self.pipeline), "--json")
        found = with_unprocessed(status, datetime.now(UTC))
        alert_findings(context, str(self.pipeline), self, found, events=("stale",))


def with_unprocessed(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The status, with a further finding if the last full day is not processed."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    until, findings = status.get("processed_up_to"), list(status.get("findings") or ())
    is_known = any(finding["name"] == "schedule" for finding in findings)
    if not is_known and (until is None or datetime.fromisoformat(until) < midnight):
        reached = "nothing is processed" if until is None else f"processed up to {until}"
        sentence = f"{reached}, and it is {now.isoformat(timespec='minutes')}"
        findings.append({"name": "schedule", "severity": "warning", "sentence": sentence})
    return {"findings": findings}
